"""The texts of archived pages: which part of one is shown, and what replaces it if it is missing."""

import re
from collections.abc import Mapping
from uuid import UUID

from pagefile.errors import HandleNotFoundError, InvalidArgumentError, PagePurgedError
from pagefile.records import Step
from pagefile.text.passages import page_slice, render_excerpt, select, split
from pagefile.text.words import terms
from pagefile.tiers.base import off_loop
from pagefile.window.measure import Count
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL

#: What these tools return is already archived: it is never archived again.
LOADING_TOOLS = frozenset({LOAD_TOOL, SEARCH_TOOL})
#: The tool by which a model recalls turns, and how our answer to it begins: others may have a tool of the
#: same name.
RECALL_TOOL = "recall"
_RECALLED = re.compile(r"(?:- )?\[\d{4}-\d\d-\d\d[\] ]")
#: Precedes the beginning of a page if none of its passages matches.
_NOTHING_MATCHED = "[没有匹配的段落，以下是开头 / no passage matches, this is the beginning]\n"
#: Replaces the passages if the best one exceeds the requested length.
_NOTHING_FITS = (
    "[{tokens} tokens 放不下任何段落，请给更大的 limit / no passage fits into {tokens} tokens, ask for more]"
)
#: From this many characters on, processing a text would block the event loop.
THREAD_FROM_CHARS = 20_000


async def excerpt(text: str, query: str, budget_tokens: int, count: Count) -> str:
    """The passages of a text that answer a query, in order, with their positions, within a budget."""

    def choose() -> str:
        passages = split(text)
        wanted = set(terms(query))
        chosen = select(passages, query, budget=budget_tokens, cost=count)
        if not chosen:
            return _NOTHING_FITS.format(tokens=budget_tokens)
        if any(wanted.intersection(terms(passage.text)) for passage in chosen):
            return render_excerpt(chosen, len(text))
        room = budget_tokens - count(_NOTHING_MATCHED)
        chosen = select(passages, query, budget=room, cost=count)
        return _NOTHING_MATCHED + render_excerpt(chosen, len(text))

    return await off_loop(choose, len(text), THREAD_FROM_CHARS)


def is_quoted(tool: str, result: str) -> bool:
    """Whether a result is an answer of our own reading tools: archived, it would be found instead of what it quotes."""
    return tool in LOADING_TOOLS or (tool == RECALL_TOOL and _RECALLED.match(result) is not None)


def loaded_uuid(step: Step) -> str | None:
    """The page a loading step asked for."""
    if step.tool != LOAD_TOOL or not isinstance(step.input, Mapping):
        return None
    uuid = step.input.get("uuid")
    return uuid if isinstance(uuid, str) else None


def checked_uuid(uuid: object) -> str:
    """A well-formed uuid, or an error that says where to find one."""
    try:
        return str(UUID(str(uuid).strip()))
    except ValueError as error:
        raise HandleNotFoundError(
            f"{str(uuid)[:80]!r} is not a uuid: copy it from the placeholder, which begins with 📎."
        ) from error


def explained(error: HandleNotFoundError) -> str:
    """What the model reads instead of a page: an explanation it can act on, in both languages."""
    if isinstance(error, PagePurgedError):
        return f"[存档已清理 / archive purged] {error}"
    return f"[未找到存档 / archive not found] {error}"


def fitting_slice(text: str, offset: int, limit: int | None, budget_tokens: int, count: Count) -> str:
    """A part as `slice_of` gives it, shortened until it fits a budget."""
    part = slice_of(text, offset, limit)
    while len(part) > 1 and (tokens := count(part)) > budget_tokens:
        part = slice_of(text, offset, max(1, len(part) * budget_tokens // tokens - 1))
    return part


def slice_of(text: str, offset: int, limit: int | None) -> str:
    """At most `limit` characters from `offset`, without splitting an image, a table, a code block or a value.

    Reading on from `offset + len(result)` tiles the text exactly.
    """
    if offset > len(text):
        raise InvalidArgumentError(f"offset is {offset}, the page has {len(text)} characters.")
    if limit is None:
        return text[offset:]
    _, end = page_slice(text, offset, limit)
    return text[offset:end]
