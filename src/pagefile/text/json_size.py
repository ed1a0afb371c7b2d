"""How many values a JSON text has, found without reading it: a list of millions of numbers becomes gigabytes of objects."""

import re

#: A reader that makes objects of this many values takes some tens of milliseconds.
MAX_VALUES = 50_000
#: A larger text is looked through, and read, in a thread.
THREAD_FROM_BYTES = 200_000
_BEFORE_VALUES = (b",", b"[", b"{", b":")
_TOKEN = re.compile(rb'[",\[{:]')
#: A part of a string, so that other threads get their turn. Possessive: no position is looked at twice.
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.){0,20000}+', re.DOTALL)
_QUOTE = ord('"')


def has_many_values(text: bytes, limit: int = MAX_VALUES) -> bool:
    """Whether a JSON text has more than `limit` values, keys included. Takes no longer for a longer list."""
    if len(text) <= limit or sum(map(text.count, _BEFORE_VALUES)) <= limit:
        return False
    # Text has commas, too: only those between values count.
    values = strings = place = 0
    while values <= limit and (token := _TOKEN.search(text, place)) is not None:
        place = token.end()
        if text[token.start()] != _QUOTE:
            values += 1
            continue
        place, strings = _after_string(text, place), strings + 1
        if strings > values + 1:
            # Two strings without anything between them: no JSON, and the reader will say so at once.
            return False
    return values > limit


def _after_string(text: bytes, place: int) -> int:
    """Where a string ends that begins before this place."""
    while (found := _INSIDE.match(text, place)) is not None and found.end() > place:
        place = found.end()
    return place + 1
