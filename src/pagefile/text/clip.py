"""Shows the beginning and the end of a text that is too long, and says how much is missing in between."""

import re

from pagefile.text.scripts import language

#: Where to cut, best first.
_BOUNDARIES = (re.compile(r"\n"), re.compile(r"[。！？；]|[.!?;](?=\s)"), re.compile(r"[\s，、,]"))
#: Below this there is no room for two ends and a marker: only the beginning is shown.
_SMALLEST = 60


def clip(text: str, max_chars: int) -> str:
    """The text if it fits, else its head and tail around a marker with the number of characters left out.

    Never longer than `max_chars`. Both ends are moved to the nearest line, sentence or word boundary.
    """
    if len(text) <= max_chars:
        return text
    if max_chars < _SMALLEST:
        return cut(text, max_chars)
    zh = language(text[:4000]) == "zh"
    room = max_chars - len(_marker(len(text), zh=zh))
    head = _head(text, room * 2 // 3)
    tail = _tail(text, room - room * 2 // 3)
    return head + _marker(len(text) - len(head) - len(tail), zh=zh) + tail


def cut(text: str, max_chars: int) -> str:
    """The beginning of a text up to a boundary, with an ellipsis if something is missing."""
    if len(text) <= max_chars:
        return text
    if max_chars <= 0:
        return ""
    return _head(text, max_chars - 1).rstrip() + "…"


def _marker(missing: int, *, zh: bool) -> str:
    return f"\n…（此处略去 {missing} 字）…\n" if zh else f"\n… ({missing} characters left out) …\n"


def _head(text: str, room: int) -> str:
    """At most `room` characters from the beginning; up to a quarter is sacrificed for a better boundary."""
    floor = room - room // 4
    for boundary in _BOUNDARIES:
        # Look one character further: a word that ends at the limit is complete if a space follows it.
        ends = [min(room, match.end()) for match in boundary.finditer(text, floor, room + 1)]
        if ends:
            return text[: ends[-1]]
    return text[:room]


def _tail(text: str, room: int) -> str:
    """At most `room` characters from the end, starting after a boundary."""
    start = len(text) - room
    for boundary in _BOUNDARIES:
        match = boundary.search(text, start, start + room // 4)
        if match:
            return text[match.end() :].lstrip(" ")
    return text[start:]
