"""What replaces an archived page in a window, in fixed wording, and how to recognise it."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from string import Formatter

from pagefile.records import JsonValue, Page, Step
from pagefile.text.sentences import clip, cut
from pagefile.text.unseen import without_unseen
from pagefile.window.wording import WORDINGS, ZH, Wording

RULE = "━" * 37
SUMMARY_SHOWN = 200
SOURCES_SHOWN = 3
#: The maximum number of tokens of a placeholder.
MAX_TOKENS = 350

#: Characters shown of query, each source and summary, from generous to tight.
_FITS: tuple[tuple[int, int, int], ...] = (
    (500, 200, SUMMARY_SHOWN),
    (160, 80, 160),
    (80, 60, 100),
    (40, 40, 60),
    (20, 20, 30),
)

#: Column limit of a query.
QUERY_CHARS = 500
#: Characters of query and synopsis beside a uuid, and where many pages are named.
ABOUT_SHOWN = (60, 80)
ABOUT_TIGHT = (40, 40)

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_LONG = re.compile(rf"^📎 \[(?:工具结果存档|archived tool result): ({_UUID})\]\n{RULE}\n")
_SHORT = re.compile(rf"^📎 \[(?:存档|archived):({_UUID})\]")
_LOADED = re.compile(rf"{_SHORT.pattern} (?:已加载([0-9]+)字|([0-9]+) characters loaded) ")
_IN_VIEW = re.compile(rf"{_SHORT.pattern} (?:已在上文|in view above)")
_SHORT_LINE = re.compile(rf"{_SHORT.pattern}.*", re.MULTILINE)
#: How much is kept of an answer that names no page, and how many pages are named if it has no placeholders.
_ANSWER_SHOWN = 200
_PAGES_NAMED = 10

#: The prompt block about archived results.
GUIDE = ZH.guide

#: Begins what the loading tool is given for a turn instead of an archived page.
TURN_HANDLE = "turn:"
LOAD_TOOL = "load_tool_history"
SEARCH_TOOL = "search_tool_history"


def message_handle(turn_id: str, number: int) -> str:
    """What the loading tool is given for one message of a turn."""
    return f"{TURN_HANDLE}{turn_id}#{number}"


def placeholder(page: Page, count: Callable[[str], int] | None = None, wording: Wording = ZH) -> str:
    """The long form: what it was, how long, what is in it, and how to load it; at most 350 tokens if counted."""
    for shown in _FITS:
        text = _long(page, wording, *shown)
        if count is None or count(text) <= MAX_TOKENS:
            return text
    return short_placeholder(page, wording)


def short_placeholder(page: Page, wording: Wording = ZH) -> str:
    """The one-line form for tight budgets; it keeps the call that loads the page."""
    about = " ".join(_quoted(page.result_summary).split())[:40]
    return wording.short.format(uuid=page.uuid, chars=page.length, about=about)


def loaded_chars(note: str) -> int | None:
    """The number of characters loaded, according to the note that remains of a load; None if this is not such a note."""
    found = _LOADED.match(note)
    return None if found is None else int(found[2] or found[3])


def in_view_note(page: Page, wording: Wording = ZH) -> str:
    """What the load tool answers for a page that the window shows whole already."""
    return wording.in_view.format(uuid=page.uuid)


def says_in_view(answer: str) -> bool:
    return _IN_VIEW.match(answer) is not None


#: What only a placeholder may say: its rules, its head, and calls of the tools that lead back.
_OURS = re.compile(rf"━{{3,}}|📎 *\[[^\]\n]*\]?|(?:{LOAD_TOOL}|{SEARCH_TOOL})\([^)\n]*\)?")


def _quoted(text: str) -> str:
    """Words of a result or a call, as a placeholder may quote them: they cannot pass for its own."""
    return _OURS.sub("…", without_unseen(text))


def _long(page: Page, wording: Wording, query_shown: int, source_shown: int, summary_shown: int) -> str:
    sources = [f"- {_quoted(source)[:source_shown]}" for source in page.sources[:SOURCES_SHOWN]]
    return _long_template(wording).format(
        uuid=page.uuid,
        tool=page.tool,
        query=_quoted(page.query_summary)[:query_shown],
        time=page.created.isoformat(timespec="seconds"),
        chars=page.length,
        summary=_quoted(page.result_summary)[:summary_shown],
        sources="\n".join(sources) or wording.no_sources,
    )


@cache
def _long_template(wording: Wording) -> str:
    lines = [
        wording.archived,
        RULE,
        wording.tool + "{tool}",
        wording.query + "{query}",
        wording.time + "{time}",
        wording.length,
        RULE,
        wording.summary,
        "{summary}",
        "",
        wording.sources,
        "{sources}",
        RULE,
        wording.call,
    ]
    return "\n".join(lines)


# -- in another language -------------------------------------------------------------------------------------------------
#
# Placeholders are stored in the turns. A window in another language than they were written in shows them in its own.

#: What a value in a template looks like; most are anything on one line.
_VALUES = {
    "uuid": _UUID,
    "chars": "[0-9]+",
    "count": "[0-9]+",
    "summary": r"[\s\S]*?",
    "sources": r"[\s\S]*?",
}


def reworded(text: str, wording: Wording) -> str:
    """A text of ours with every placeholder in it in this wording; what they quote stays as it is."""
    if text.startswith(_marks(wording)):
        return text  # nearly always: it is in this wording already
    for other in WORDINGS.values():
        if other is not wording and any(mark in text for mark in _marks(other)):
            for pattern, like in _templates(other, wording):
                text = pattern.sub(partial(_filled, like, other.no_sources, wording.no_sources), text)
    return text


def spoken_in(placeholder: str) -> Wording:
    """The wording in which a placeholder of ours was written."""
    return next((one for one in WORDINGS.values() if placeholder.startswith(_marks(one))), ZH)


def _filled(template: str, none: str, no_sources: str, found: re.Match[str]) -> str:
    values = found.groupdict()
    if values.get("sources") == none:
        values["sources"] = no_sources
    return template.format(**values)


@cache
def _marks(wording: Wording) -> tuple[str, str]:
    """How placeholders begin in this wording, and in no other."""
    return wording.archived.partition("{")[0], wording.short.partition("{")[0]


@cache
def _templates(old: Wording, new: Wording) -> tuple[tuple[re.Pattern[str], str], ...]:
    """How each of our texts is recognised in one wording, and the same text in the other."""
    pairs = [(_long_template(old), _long_template(new)), (old.toc_more, new.toc_more)]
    pairs += [(old.note, new.note), (old.short, new.short), (old.loaded, new.loaded)]
    pairs.append((old.in_view, new.in_view))
    return tuple((_recognising(template), like) for template, like in pairs)


def _recognising(template: str) -> re.Pattern[str]:
    """A pattern for what a template makes, with a group for each of its values."""
    pattern, seen = "", set[str]()
    for literal, name, _, _ in Formatter().parse(template):
        pattern += re.escape(literal)
        if name:
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>{_VALUES.get(name, '.*?')})"
            seen.add(name)
    return re.compile(f"^{pattern}$", re.MULTILINE)


# -- on one line ---------------------------------------------------------------------------------------------------------


def query_summary(value: JsonValue) -> str:
    """What a tool was asked, on one line."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(" ".join(text.split()), QUERY_CHARS)


def described(page: Page, shown: tuple[int, int] = ABOUT_SHOWN) -> str:
    """Which page it is, on one line: its tool, what was asked, and the head of its synopsis."""
    query, about = (" ".join(_quoted(text).split()) for text in (page.query_summary, page.result_summary))
    return f"{page.tool}: {cut(query, shown[0])} | {cut(about, shown[1])}"


def step_note(
    step: Step,
    wording: Wording = ZH,
    page: Page | None = None,
    *,
    words: str = "",
    shown: tuple[int, int] = ABOUT_SHOWN,
) -> str:
    """The one-line form of a step's page, in these words; without the page, from what the turn knows about it."""
    asked = _quoted(query_summary(step.input))
    said = described(page, shown) if page else f"{step.tool}: {cut(asked, shown[0])}"
    words = wording.purged if page and page.purged else words or wording.note
    return words.format(uuid=step.page, said=said, chars=step.page_chars or len(step.result))


def loaded_note(page: Page, chars: int, wording: Wording = ZH) -> str:
    """What a turn keeps of a load."""
    return wording.loaded.format(uuid=page.uuid, chars=chars, said=described(page))


def answer_note(step: Step) -> str:
    """What remains of an answer of our own reading tools that has no page: the placeholders of the pages it quotes."""
    if lines := {found[1]: found[0] for found in _SHORT_LINE.finditer(step.result)}:
        return "\n".join(lines.values())
    uuids = list(dict.fromkeys(re.findall(_UUID, step.result)))[:_PAGES_NAMED]
    calls = [f'{LOAD_TOOL}(uuid="{uuid}")' for uuid in uuids]
    return "\n".join([clip(step.result, _ANSWER_SHOWN), *calls])


def placeholder_uuid(text: str) -> str | None:
    """The uuid of a placeholder; None for any other text, such as one that merely quotes a placeholder."""
    found = _LONG.match(text) or _SHORT.match(text)
    return found.group(1) if found else None
