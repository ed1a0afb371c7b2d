"""A long text as passages, by which an archived page is searched and paged.

Splitting is cheap and never segments words, because every page is split but few are ever queried; what answers a query is
chosen piece by piece, in `passages`.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import NamedTuple

from pagefile.text.sentences import sentences
from pagefile.text.synopsis.kinds import rows_kind
from pagefile.text.units import Units, json_commas, units

_HEADINGS = re.compile(r"\n(?=#{1,6} |<h[1-6][ >])")
_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*+\n)++")
_FINISHED_LINES = re.compile(r"[.!?。！？:：;；…][\"'”’」』）)\]】》*_]{0,3}\r?\n")
_LINES = re.compile(r"\n")
_BLOCK_TAGS = re.compile(
    r"</(?:p|div|li|tr|ul|ol|h[1-6]|section|article|table|head|body|script|style)>|<br ?/?>", re.IGNORECASE
)
_CLOSING_TAGS = re.compile(r"</[A-Za-z][^<>]*+>")
#: Starts with a single character class, which makes the search fast.
_SENTENCE_ENDS = re.compile(
    r"[。！？….!?](?:(?<=[。！？…])[。！？…]*[\"'”’」』）)\]】》]*\s*|(?<![.!?]{2})[.!?]*+[\"'”’」』）)\]】》]*+\s+)"
)
#: How much text around a sentence end is needed to confirm it.
_AROUND = 80
#: How many candidates are checked, nearest first.
_ASKED = 8
#: In a string of JSON: the end of a word, of a sentence, of a line; and escapes, which are never cut.
_STRING_MARKS = re.compile(
    r"(\s)|([。！？]|[.!?](?=[ \\]))|((?:\\r)?(?:\\n)+)|\\(?:u[dD][89abAB]\w\w\\u\w{4}|u\w{4}|.)", re.DOTALL
)
_LONGEST_ESCAPE = 12
#: A shorter value is never cut, however short the passages.
_LONGEST_VALUE = 400
_SOFT = re.compile(r"[\s，、,;；]")
#: Joins or modifies adjacent characters: not a place to cut.
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a page, and its offsets in the page, in characters."""

    start: int
    end: int
    text: str
    #: What encloses it: the path of JSON, a heading, the header of a table, a definition.
    where: str = ""


def split(text: str, *, target_chars: int = 1200, max_chars: int = 4000) -> list[Passage]:
    """The passages of a text, about `target_chars` long: joined, they are the text again.

    Cuts fall before headings, at blank lines, line ends, sentence ends, in this order. Images, links, code
    blocks, tables, tags, JSON values and rows of CSV are never cut; one longer than `max_chars` becomes a
    passage on its own. A long text inside JSON is cut like one outside, never in an escape. Only text without
    any boundary is cut at `max_chars`.
    """
    target = max(2, target_chars)
    limits = _Limits(target // 2, target, target * 3 // 2, max(max_chars, target))
    cuts = pairwise([0, *_cuts(units(text), limits)])
    return [Passage(start, end, text[start:end]) for start, end in cuts]


#: A shorter unit is never cut if it fits: an image, a link.
_SHORT_UNIT = 300


def page_slice(text: str, offset: int, limit: int) -> tuple[int, int]:
    """The range to show for `offset` and `limit`: at most `limit` characters, splitting no unit that fits.

    The start moves back to the beginning of the unit it falls into, then the end moves back to the beginning
    of the unit it would split. A long unit before which less than half of `limit` would be shown, or that is all
    there is, is cut: JSON and tables at the end of a line or value. The end is always after `offset` (unless the text has ended or `limit` is 0), so that paging on
    from it terminates.
    """
    start = min(max(0, offset), len(text))
    end = min(len(text), start + max(0, limit))
    if start == end:
        return start, end
    found = units(text)
    if (around := found.around(start)) is not None and around[1] - around[0] <= limit:
        start, end = around[0], min(len(text), around[0] + limit)
    if (behind := found.around(end)) is not None:
        first = max(start, offset)
        if behind[0] > first and (behind[1] - behind[0] <= _SHORT_UNIT or 2 * (behind[0] - first) >= limit):
            return start, behind[0]
        least = first + 1
        if found.layout == "json":
            # Not inside an escape, and rather at the end of a line or sentence.
            return start, _string_end(text, behind[0], (max(least, end - limit // 4), least), end)
        if behind[0] > first:
            return start, max(least, text.rfind("\n", first + limit // 2, end) + 1) if "\n" in text[
                first + limit // 2 : end
            ] else end
    return start, end


# -- splitting ---------------------------------------------------------------------------------------------------------


class _Limits(NamedTuple):
    """The length of a passage: minimum, target, preferred maximum, maximum."""

    least: int
    target: int
    near: int
    most: int


def _cuts(found: Units, limits: _Limits) -> Iterator[int]:
    """Where passages end; the last is the end of the text."""
    choose = {"json": _comma, "rows": _row_end, "text": _boundary}[found.layout]
    jsonl = found.layout == "rows" and rows_kind(found.text) == "jsonl"
    start = 0
    while len(found.text) - start > limits.near:
        end = choose(found, start, limits)
        if jsonl and end - start > limits.most:
            # An overlong row of JSON lines is cut like JSON; a broken one is not cut.
            row = found.text[start:end]
            commas = json_commas(row)
            inner = [len(row)] if commas is None else _cuts(Units(row, "json", [], [], *commas), limits)
            yield from (start + cut for cut in inner)
        else:
            yield end
        start = end
    if start < len(found.text):
        yield len(found.text)


def _comma(found: Units, start: int, limits: _Limits) -> int:
    """The shallowest comma within reach, nearest to the target."""
    low = bisect_left(found.commas, start + limits.least)
    high = bisect_right(found.commas, start + limits.most)
    if low < high:
        shallowest = min(found.depths[low:high])
        places = [found.commas[at] for at in range(low, high) if found.depths[at] == shallowest]
        return next(_by_distance(places, start + limits.target))
    if low and found.commas[low - 1] > start:
        return found.commas[low - 1]
    end = found.commas[high] if high < len(found.commas) else len(found.text)
    if end - start <= max(limits.most, _LONGEST_VALUE):
        return end
    return _string_end(found.text, start, (start + limits.least, start), start + limits.near)


def _string_end(text: str, start: int, low: tuple[int, int], high: int) -> int:
    """Where to cut a long string of JSON: after a line, a sentence, or a word, the last up to `high`, else between characters.

    `start` is not inside an escape. `low`: earliest cut at a boundary, and earliest cut between characters.
    """
    best, place, safe = 0, 0, high
    for mark in _STRING_MARKS.finditer(text, start, high + _LONGEST_ESCAPE):
        if mark.start() < high < mark.end():
            safe = mark.start()
        if mark.end() > high:
            break
        rank = mark.lastindex or 0
        if mark.end() >= low[0] and rank and rank >= best:
            best, place = rank, mark.end()
    return place or (safe if safe > low[1] else high)


def _row_end(found: Units, start: int, limits: _Limits) -> int:
    """The end of the row nearest to the target; an overlong row is a passage on its own."""
    best = _legal(found, _LINES, start + limits.least, start + limits.most, start + limits.target)
    best = best or _legal(found, _LINES, start, start + limits.least, start + limits.least)
    place = start + limits.most
    while best is None:
        place = found.text.find("\n", place) + 1 or len(found.text)
        best = place if found.span(place) is None else None
    return best


def _boundary(found: Units, start: int, limits: _Limits) -> int:
    """The best boundary within reach: by kind first, then by distance to the target."""
    ideal, low = start + limits.target, start + limits.least
    near, most = start + limits.near, start + limits.most
    preferred = (_HEADINGS, _BLANK_LINES, _FINISHED_LINES, _LINES, _BLOCK_TAGS)
    attempts = chain(
        (_legal(found, pattern, low, near, ideal) for pattern in preferred),
        (_sentence_end(found, low, reach, ideal) for reach in (near, most)),
        (_legal(found, pattern, low, most, ideal) for pattern in (_LINES, _CLOSING_TAGS)),
    )
    best = next((place for place in attempts if place is not None), None)
    return _anywhere(found, start, low, most) if best is None else best


def _legal(found: Units, pattern: re.Pattern[str], low: int, high: int, ideal: int) -> int | None:
    """The end of a match outside all protected spans, nearest to the ideal position."""
    places = [match.end() for match in pattern.finditer(found.text, low, high)]
    return next((place for place in _by_distance(places, ideal) if found.span(place) is None), None)


def _by_distance(places: Sequence[int], ideal: int) -> Iterator[int]:
    """Ascending positions: those up to the ideal one backwards, then the others."""
    over = bisect_right(places, ideal)
    yield from reversed(places[:over])
    yield from places[over:]


def _sentence_end(found: Units, low: int, high: int, ideal: int) -> int | None:
    """The sentence end nearest to the ideal position: candidates are confirmed by `sentences` with their context."""
    places = [match.end() for match in _SENTENCE_ENDS.finditer(found.text, low, high)]
    for place in islice(_by_distance(places, ideal), _ASKED):
        start = max(0, place - _AROUND)
        ends = accumulate(map(len, sentences(found.text[start : place + _AROUND])), initial=start)
        if place in ends and found.span(place) is None:
            return place
    return None


def _anywhere(found: Units, start: int, low: int, most: int) -> int:
    """Without a boundary: around a unit if one is in the way, else between words, else between characters."""
    if most >= len(found.text):
        return len(found.text)
    if (unit := found.span(most)) is not None:
        return unit[0] if unit[0] > start else unit[1]
    if (best := _legal(found, _SOFT, low, most, most)) is not None:
        return best
    place, text = most, found.text
    while place > low and (
        text[place] in _JOINERS or text[place - 1] == "\u200d" or unicodedata.combining(text[place])
    ):
        place -= 1
    return place if place > low and found.span(place) is None else most
