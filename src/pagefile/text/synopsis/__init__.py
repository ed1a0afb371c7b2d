"""What a page says about itself while out of the window: 200 to 500 characters, written without a model.

Chooses how a text is described, and ensures that a synopsis is never empty and never too long.
"""

import re
from collections.abc import Callable
from itertools import islice

from pagefile.text.sentences import Language, cjk_share
from pagefile.text.sources import references
from pagefile.text.synopsis.binary import describe_bytes
from pagefile.text.synopsis.documents import describe_dialogue, describe_form, describe_text
from pagefile.text.synopsis.exchange import describe_exchanged
from pagefile.text.synopsis.grids import csv_grid, describe_grid, grid_in, vertical_grid
from pagefile.text.synopsis.kinds import Kind, Recognised, line_count, parsed_lines, recognise
from pagefile.text.synopsis.logs import describe_log, describe_log_rows, has_levels
from pagefile.text.synopsis.markup import describe_html, describe_markdown, describe_xml, visible
from pagefile.text.synopsis.objects import describe_lines, describe_unread, describe_value
from pagefile.text.synopsis.programs import describe_code, describe_yaml
from pagefile.text.synopsis.records import unpaired
from pagefile.text.synopsis.repository import describe_hits_in_files, describe_places, describe_repository
from pagefile.text.synopsis.runs import describe_run, run_in
from pagefile.text.synopsis.searches import describe_hits, describe_references, hits_in
from pagefile.text.synopsis.traces import begins_trace, describe_trace, trace_in
from pagefile.text.synopsis.unwrap import Content, said, text_inside, unwrapped
from pagefile.text.synopsis.wording import Voice, once, plain_text, squeeze

#: The minimum length of a synopsis, if the text has that much to say.
LEAST_CHARS = 200
#: How often text inside JSON is looked into.
_DEPTH = 3
#: How many JSON lines are examined.
_ASKED_LINES = 2_000
#: Names and levels are English in any log and JSON has English keys: less Chinese than in prose makes it Chinese.
_CHINESE_SHARE = 0.1
#: With less Chinese than in prose, but some, a text may be for readers of either language: code with comments, logs, records.
_PROSE_SHARE = 0.25

_DESCRIBE: dict[Kind, Callable[[str, Voice], list[str]]] = {
    "csv": lambda text, say: describe_grid(csv_grid(text), say),
    "tsv": lambda text, say: describe_grid(csv_grid(text), say),
    "html": describe_html,
    "markdown": describe_markdown,
    "xml": describe_xml,
    "yaml": describe_yaml,
    "log": describe_log,
    "code": describe_code,
    "search": describe_references,
    "text": describe_text,
}
#: Kinds that are not taken for the output of a command, whatever is quoted in them.
_CERTAIN: frozenset[Kind] = frozenset({"html", "xml", "search"})


def is_mixed(text: str) -> bool:
    """Whether a text has some Chinese, but too little to say in which language to describe it."""
    return 0 < _chinese_share(text) < _PROSE_SHARE


def synopsis(text: str, *, max_chars: int = 500, mixed: Language | None = None) -> str:
    """What the text is and says, on one line of at most `max_chars` characters, the most useful first.

    Never empty unless the text or `max_chars` is; deterministic. What a tool wraps its answer in is looked through;
    data, documents, code, logs and the output of commands are described by what is in them, other text by its own
    sentences, in the language of the text, or in `mixed` if it is mixed. Images and bytes are named, never shown.
    """
    if not text or max_chars <= 0:
        return ""
    content, found = _opened(text)
    if (
        found.kind == "text"
        and content.text is text
        and len(text) <= LEAST_CHARS
        and squeeze(text, max_chars)
    ):
        return squeeze(text, max_chars)
    say = Voice(_is_chinese(content.text, mixed))
    parts = _parts(content.text, found, say)
    opening = "".join(parts[:2])[:200]
    # What the wrapping says is said once.
    around = [note for note in said(content, say) if squeeze(note, 30).rstrip("…") not in opening]
    described = say.assemble([*around, *parts], max_chars)
    if len(described) >= min(LEAST_CHARS, max_chars, len(text)):
        return described
    return _extended(described, content.text, say, max_chars)


def _opened(text: str) -> tuple[Content, Recognised]:
    """What is inside all wrapping, and what it is."""
    content = unwrapped(text)
    for _ in range(_DEPTH):
        found = recognise(content.text)
        inner = text_inside(found.value, len(content.text)) if found.value is not None else None
        if inner is None:
            return content, found
        opened = unwrapped(inner.text)
        content = Content(opened.text, (*content.notes, *inner.notes, *opened.notes), opened.lines)
    return content, recognise(content.text)


def _is_chinese(text: str, mixed: Language | None) -> bool:
    share = _chinese_share(text)
    return mixed == "zh" if mixed and 0 < share < _PROSE_SHARE else share >= _CHINESE_SHARE


def _chinese_share(text: str) -> float:
    middle = len(text) // 2
    return cjk_share(text[:3000] + text[middle : middle + 1000] + text[-500:])


def _parts(text: str, found: Recognised, say: Voice) -> list[str]:
    if found.kind in ("json", "jsonl") or found.value is not None:
        return _data(text, found, say)
    if (parts := describe_bytes(text, say)) is not None:
        return parts
    if (parts := describe_exchanged(text, say)) is not None:
        return parts
    if found.kind not in _CERTAIN:
        parts = describe_repository(text, say) or _command(text, found.kind, say)
    return parts or _DESCRIBE[found.kind](text, say)


def _data(text: str, found: Recognised, say: Voice) -> list[str]:
    if found.kind == "jsonl":
        rows = list(islice(parsed_lines(text), _ASKED_LINES))
        return describe_log_rows(rows, line_count(text.strip()), say) or describe_lines(rows, text, say)
    if found.value is None:
        return describe_unread(text, say)
    hits = hits_in(found.value)
    return describe_hits(hits, found.value, say) if hits else describe_value(unpaired(found.value), text, say)


def _command(text: str, kind: Kind, say: Voice) -> list[str] | None:
    """What a command printed: a run of tests or a build, hits, a table, a traceback."""
    if (grid := vertical_grid(text)) is not None:
        return describe_grid(grid, say)
    if (run := run_in(text)) is not None:
        return describe_run(run, say)
    if kind in ("csv", "tsv"):
        return None
    if kind == "code":
        trace = trace_in(text) if begins_trace(text) else None
        return describe_trace(trace, say) if trace is not None else describe_hits_in_files(text, say)
    if kind == "log":
        grid = None if has_levels(text) else grid_in(text)
        return describe_grid(grid, say) if grid is not None else describe_dialogue(text, say)
    if (parts := describe_form(text, say) or describe_places(text, say)) is not None:
        return parts
    if (grid := grid_in(text)) is not None:
        return [*_all_rows(text, say), *describe_grid(grid, say)]
    trace = trace_in(text)
    return describe_trace(trace, say) if trace is not None else None


def _all_rows(text: str, say: Voice) -> list[str]:
    """How many rows there are in all, where a table says below it that it shows a part."""
    found = re.search(r"(\d[\d,]*) rows(?= [x(×]|, \d+ shown)", text[-300:])
    return [say(f"共 {found[1]} 行", f"{found[1]} rows in all")] if found else []


def _extended(described: str, text: str, say: Voice, max_chars: int) -> str:
    """A synopsis that is too short, with the beginning of the text."""
    if describe_bytes(text, say) is not None:
        return described
    head = text[: next((start for start, _ in references(text) if start > LEAST_CHARS), 8000)][:8000]
    seen = visible(head) if "</" in head else head
    opening = squeeze(once(plain_text(seen)), max_chars) or squeeze(head, max_chars)
    if described and opening[:60] in described:
        return described
    if not described:
        blank = say(f"空白文本，{len(text):,} 字符", f"Blank text of {len(text):,} characters")
        return opening or blank[:max_chars]
    label = say("开头：", " Begins: ")
    room = max_chars - len(described) - len(label)
    if room < 20 or not opening:
        return described
    return described + label + squeeze(opening, min(room, LEAST_CHARS + 100))
