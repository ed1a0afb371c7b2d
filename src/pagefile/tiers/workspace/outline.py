"""A table of contents in a few lines: its chapters, and as much below them as fits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from pagefile.tiers.workspace.found import is_whole, page_range
from pagefile.tiers.workspace.results import KEYS, Plain

_NO_TITLES = (*KEYS["children"], "metadata", "meta")
#: Further entries are not read: the rest is in the archived page.
MAX_ENTRIES = 5_000
#: Longer titles are cut.
TITLE_CHARS = 60
#: The key under which a table of contents says how many of its lines were left out.
LEFT_OUT = "left_out"
_MAX_DEPTH = 12
#: A title, and the page number after dots or a gap.
_LED_TO = re.compile(r"(.*[^ \t.…·])[ \t.…·]{2,}([0-9]+)")
_DOTTED = re.compile(r"^\d+((?:\.\d+)+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a table of contents."""

    level: int
    title: str
    pages: str = ""


def entries(toc: Mapping[str, Plain]) -> list[Entry]:
    """Its lines in order, chapters at level 0; a single title above everything is left out."""
    return _lifted(list(islice(_walk(dict(toc), -1), MAX_ENTRIES)))


def compact(lines: Sequence[Entry], max_lines: int) -> dict[str, Plain]:
    """A table of contents with only the upper levels, as many as fit; `entries` can read it."""
    deepest = max((entry.level for entry in lines), default=0)
    while deepest > 0 and sum(entry.level <= deepest for entry in lines) > max_lines:
        deepest -= 1
    kept = [entry for entry in lines if entry.level <= deepest][:max_lines]
    items: list[Plain] = [{"title": one.title, "level": one.level, "pages": one.pages} for one in kept]
    return {"items": items, LEFT_OUT: len(lines) - len(kept)}


def left_out(toc: Mapping[str, Plain]) -> int:
    found = toc.get(LEFT_OUT)
    return found if isinstance(found, int) else 0


def chapters(lines: Sequence[Entry]) -> list[str]:
    return [entry.title for entry in lines if entry.level == 0]


def outline(lines: Sequence[Entry], max_chars: int, more: str, besides: int = 0) -> str:
    """As many levels as fit, at least the first chapters; `more` has a {count} of the missing lines, `besides` included."""
    if not lines or max_chars <= 0:
        return ""
    for deepest in range(max(entry.level for entry in lines), -1, -1):
        shown = [_line(entry) for entry in lines if entry.level <= deepest]
        missing = len(lines) - len(shown) + besides
        told = "\n".join([*shown, *([more.format(count=missing)] if missing else [])])
        if len(told) <= max_chars:
            return told
    room = max_chars - len(more.format(count=len(lines) + besides))
    titles = [_line(entry) for entry in lines if entry.level == 0]
    taken = accumulate(len(title) + 1 for title in titles)
    shown = [title for title, chars in zip(titles, taken, strict=True) if chars <= room]
    told = "\n".join([*shown, more.format(count=len(lines) - len(shown) + besides)])
    return told if len(told) <= max_chars else ""


def _line(entry: Entry) -> str:
    return f"{'  ' * entry.level}- {entry.title}{f' {entry.pages}' if entry.pages else ''}"


def _lifted(found: list[Entry]) -> list[Entry]:
    """The lines with the topmost level at 0, without a single title above all others."""
    if not found:
        return []
    top = min(entry.level for entry in found)
    if len(found) > 1 and found[0].level == top and all(entry.level > top for entry in found[1:]):
        return _lifted(found[1:])
    return [Entry(entry.level - top, entry.title, entry.pages) for entry in found]


def _walk(value: Plain, level: int) -> Iterator[Entry]:
    if level > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield from _text_lines(value, max(0, level))
    elif isinstance(value, dict):
        yield from _node(value, level)
    elif isinstance(value, list):
        # A flat list gives the depth of each entry in `level`.
        depths = [_depth(inner) for inner in value]
        known = {depth for depth in depths if depth is not None}
        least = min(known, default=0)
        flat = len(known) > 1 and not any(_children(inner) for inner in value if isinstance(inner, dict))
        for inner, depth in zip(value, depths, strict=True):
            yield from _walk(inner, level + (depth or least) - least if flat else level)


def _depth(value: Plain) -> int | None:
    found = (value.get("level"), value.get("depth")) if isinstance(value, dict) else ()
    whole = (depth for depth in found if isinstance(depth, int) and is_whole(depth))
    return next((min(depth, _MAX_DEPTH) for depth in whole), None)


def _children(value: Mapping[str, Plain]) -> list[Plain]:
    found = (value.get(name) for name in KEYS["children"])
    return [inner for inner in found if inner and isinstance(inner, list | dict)]


def _node(value: Mapping[str, Plain], level: int) -> Iterator[Entry]:
    children = _children(value)
    title = _title(value, has_children=bool(children))
    if title and "\n" in title and not children:
        yield from _text_lines(title, max(0, level))
        return
    if title:
        yield Entry(level, " ".join(title.split())[:TITLE_CHARS], _pages(value))
    for inner in children:
        yield from _walk(inner, level + 1 if title else level)
    # Otherwise the keys are the titles of chapters.
    for key, inner in () if title or children else value.items():
        if isinstance(inner, list | dict) and key.strip() and key not in _NO_TITLES:
            pages = _pages(inner) if isinstance(inner, dict) else ""
            yield Entry(level, " ".join(key.split())[:TITLE_CHARS], pages)
            yield from _walk(inner, level + 1)


def _title(value: Mapping[str, Plain], *, has_children: bool) -> str:
    number = next((str(value[name]) for name in KEYS["number"] if isinstance(value.get(name), str | int)), "")
    titles = (value.get(name) for name in KEYS["title"])
    title = next((found for found in titles if isinstance(found, str) and found.strip()), "")
    if not title:
        return number if has_children else ""
    return title if not number or title.startswith(number) else f"{number} {title}"


def _pages(value: Mapping[str, Plain]) -> str:
    told = value.get("pages")
    if isinstance(told, str):
        return " ".join(told.split())[:20]
    return page_range(value, KEYS["toc_first_page"], KEYS["toc_last_page"])


def _text_lines(text: str, level: int) -> Iterator[Entry]:
    """A plain-text table of contents, one entry per line; headings, numbers or indentation give the depth."""
    for line in text.splitlines():
        bare = line.strip()
        title = bare.lstrip("#").lstrip("-*+•").strip()
        if not title:
            continue
        led = _LED_TO.fullmatch(title)
        title, page = led.groups() if led else (title, "")
        title = " ".join(title.split())
        dotted = _DOTTED.match(title)
        hashes = len(bare) - len(bare.lstrip("#"))
        indent = (len(line) - len(line.lstrip())) // 2
        depth = dotted[1].count(".") if dotted else max(0, hashes - 1) or indent
        yield Entry(level + min(depth, _MAX_DEPTH), title[:TITLE_CHARS], f"P{page}" if page else "")
