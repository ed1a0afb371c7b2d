"""Archived pages for callers and models: loading whole, by question or by part, and the two tools for models.

What models are told about these tools is in `standalone/tools.toml`.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pagefile.engine.arguments import at_least
from pagefile.engine.engine import Engine
from pagefile.errors import HandleNotFoundError, PagefileError
from pagefile.records import JsonValue, Page, Scope, Turn, checked_text
from pagefile.text.words import terms
from pagefile.tiers import page_in
from pagefile.tiers.archive import Archive
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL, in_view_note, loaded_chars, short_placeholder
from pagefile.window.wording import WORDINGS

logger = logging.getLogger("pagefile")

#: Hits shown to a model that searches its history.
_HITS_SHOWN = 5
_PASSAGE_SHOWN = 400


async def load_text(
    engine: Engine,
    scope: Scope,
    uuid: str,
    *,
    query: str | None,
    offset: int,
    limit: int | None,
    counted: bool = True,
    budget_tokens: int | None = None,
) -> str:
    """A page: whole, the passages that answer a query, or a part. With `counted=False` it does not count as a load.

    Passages take at most `budget_tokens`, by default a quarter of the window.
    """
    start = at_least(0, offset, "offset")
    most = None if limit is None else at_least(1, limit, "limit")
    load = engine.tier(Archive).load if counted else engine.store.pages.load
    _, text = await load(scope, page_in.checked_uuid(uuid))
    if query is None:
        return page_in.slice_of(text, start, most)
    if start > len(text):
        raise page_in.behind_the_end(start, text)
    asked = page_in.Asked(checked_text(query, "query"), start, most)
    return await engine.tier(Archive).part(text, asked, budget_tokens or engine.settings.window_tokens // 4)


async def call_tool(
    engine: Engine, scope: Scope, open_turn: Turn | None, name: str, arguments: Mapping[str, object]
) -> str:
    """The text the model reads as the result of its call; never an exception."""
    if name not in {LOAD_TOOL, SEARCH_TOOL}:
        return f"[未知工具 / unknown tool] {name!r}: use {LOAD_TOOL} or {SEARCH_TOOL}."
    try:
        if name == LOAD_TOOL:
            return await _load(engine, scope, open_turn, arguments)
        return await _search(engine, scope, str(arguments.get("query") or "").strip())
    except HandleNotFoundError as error:
        return page_in.explained(error)
    except PagefileError as error:
        engine.failed("archive", error)
        return f"[存档暂不可用 / archive unavailable] {error}"


async def _load(engine: Engine, scope: Scope, open_turn: Turn | None, arguments: Mapping[str, object]) -> str:
    archive = engine.tier(Archive)
    page, text = await archive.load(scope, str(arguments.get("uuid") or ""))
    asked = page_in.Asked.by(arguments)
    if not asked.in_part and archive.in_view(scope, open_turn and open_turn.id, page.uuid):
        return in_view_note(page, WORDINGS[engine.settings.language])
    room = engine.settings.window_tokens // 2 - _loaded_tokens(open_turn)
    if room < page_in.LEAST_EXCERPT_TOKENS:
        return (
            f"[窗口已满 / window full] {page.uuid}: the pages loaded in this turn fill half of the window already. "
            "Answer with what is there, or ask for passages in the next turn."
        )
    return await _answer(engine, page, text, asked, open_turn and open_turn.user, room)


async def _answer(
    engine: Engine, page: Page, text: str, asked: page_in.Asked, question: str | None, room: int
) -> str:
    """The part of a page that is asked for, within `room` tokens."""
    if not asked.in_part:
        if page.tokens <= room:
            return text
        asked = page_in.Asked(question or page.query_summary)
    part = await engine.tier(Archive).part(text, asked, room)
    start = asked.offset or 0
    if start >= len(text):
        return part
    return part + _more(page, start if asked.query else start + len(part))


async def loaded_again(engine: Engine, scope: Scope, turn: Turn, number: int) -> str | None:
    """What a step of a turn loaded, read from its page again; None if the length differs from what was recorded."""
    step = turn.steps[number]
    if step.page is None:
        return None
    found = await engine.store.pages.load(scope, step.page)
    given: Mapping[str, JsonValue] = step.input if isinstance(step.input, Mapping) else {}
    asked = page_in.Asked.by(given)
    room, before = engine.settings.window_tokens // 2, replace(turn, steps=turn.steps[:number])
    answers = [
        *await _by_hand(engine, scope, step.page, given),
        # Either the turn was recorded afterwards, or it was open when the tool was called.
        await _answer(engine, *found, asked, None, room),
        await _answer(engine, *found, asked, turn.user, room - _loaded_tokens(before)),
    ]
    chars = loaded_chars(step.result)
    return next((text for text in answers if len(text) == chars), None)


async def _by_hand(engine: Engine, scope: Scope, uuid: str, asked: Mapping[str, Any]) -> list[str]:
    """What `load` returns for these arguments, unless it rejects them."""
    query, offset, limit = asked.get("query"), asked.get("offset") or 0, asked.get("limit")
    try:
        return [await load_text(engine, scope, uuid, query=query, offset=offset, limit=limit, counted=False)]
    except PagefileError:
        return []


def _more(page: Page, read_to: int) -> str:
    """How to read on: a model continues only if it is told how."""
    if read_to >= page.length:
        return ""
    call = f'load_tool_history(uuid="{page.uuid}", offset={read_to}, limit=4000)'
    return f"\n[共 {page.length} 字，继续阅读 / {page.length} characters in all, read on: {call}]"


async def _search(engine: Engine, scope: Scope, query: str) -> str:
    if not query:
        return "[缺少参数 / missing argument] query: say what to look for."
    home = scope if scope.user is None else Scope(scope.tenant, scope.user)
    hits = await engine.tier(Archive).search(home, query, _HITS_SHOWN)
    if not hits:
        return f"[无结果 / nothing found] {query}"
    return "\n\n".join(
        short_placeholder(hit.page, WORDINGS[engine.settings.language])
        + f"\n{hit.page.tool}: {hit.page.query_summary} ({hit.page.created:%Y-%m-%d})\n{_around_match(hit.passage, query)}"
        for hit in hits
    )


def _loaded_tokens(open_turn: Turn | None) -> int:
    steps = () if open_turn is None else open_turn.steps
    return sum(step.page_tokens for step in steps if step.tool == LOAD_TOOL)


def _around_match(passage: str, query: str) -> str:
    """The part of a passage that the query is about, if the passage is too long to show."""
    if len(passage) <= _PASSAGE_SHOWN:
        return passage
    folded = passage.casefold()
    found = [term for term in terms(query) if term in folded]
    # The rarest term best indicates why the passage was found.
    telling = min(found, key=lambda term: (folded.count(term), -len(term)), default="")
    start = max(0, min(len(passage) - _PASSAGE_SHOWN, folded.find(telling) - _PASSAGE_SHOWN // 2))
    return passage[start : start + _PASSAGE_SHOWN]
