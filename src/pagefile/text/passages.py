"""A long text as passages, by which an archived page is searched, quoted and paged.

Splitting is cheap and never segments words, because every page is split but few are ever queried; only
`select` looks at words.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import NamedTuple

from pagefile.text.bm25 import WordIndex
from pagefile.text.sentences import clip, language, sentences
from pagefile.text.synopsis.kinds import kind, rows_kind
from pagefile.text.units import Units, json_commas, protected, units
from pagefile.text.words import terms

#: How many passages are segmented per query (about 150,000 characters); if there are more, the likeliest.
MOST_SEGMENTED = 120
#: A passage counts as an answer from this share of the best score on.
ANSWERS = 0.25
#: Kinds of text that may be shown in part: their head and tail still say something.
_CLIPPABLE = frozenset({"text", "markdown", "log", "search"})
#: A shorter part of a passage is useless as an answer.
_SMALLEST_PART = 80

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
_SOFT = re.compile(r"[\s，、,;；]")
_DIGITS = re.compile(r"\d+")
_HEADING_LINE = re.compile(r"(?:\A|\n)#{1,6} +([^\n]+)")
#: Joins or modifies adjacent characters: not a place to cut.
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a page, and its offsets in the page, in characters."""

    start: int
    end: int
    text: str


def split(text: str, *, target_chars: int = 1200, max_chars: int = 4000) -> list[Passage]:
    """The passages of a text, about `target_chars` long: joined, they are the text again.

    Cuts fall before headings, at blank lines, line ends, sentence ends, in this order. Images, links, code
    blocks, tables, tags, JSON values and rows of CSV are never cut; one longer than `max_chars` becomes a
    passage on its own. Only text without any boundary is cut at `max_chars`.
    """
    target = max(2, target_chars)
    limits = _Limits(target // 2, target, target * 3 // 2, max(max_chars, target))
    cuts = pairwise([0, *_cuts(units(text), limits)])
    return [Passage(start, end, text[start:end]) for start, end in cuts]


def select(
    passages: Sequence[Passage], query: str, *, budget: int, cost: Callable[[str], int]
) -> list[Passage]:
    """The passages that answer the query, best first until the budget is used, returned in the order of the text.

    If none does, the first passages that fit. What `render_excerpt` writes around a passage is counted. The
    best one is clipped if it alone exceeds the budget; if it contains something that must not be cut, the
    next best takes its place. Offsets always refer to the full passage.
    """
    if not passages:
        return []
    total, zh = passages[-1].end, _in_chinese(passages)

    def price(passage: Passage) -> int:
        return cost(_marker(passage.start, passage.end, total, zh=zh) + passage.text + "\n")

    answering = _answering(passages, query)
    taken: dict[int, Passage] = {}
    for at in answering or range(len(passages)):
        passage: Passage | None = passages[at]
        needed = price(passage)
        if needed > budget:
            whole = taken or kind("".join(near.text for near in passages[:3])) not in _CLIPPABLE
            passage = None if whole else _clipped(passage, needed, budget, price)
            if passage is None:
                if taken and not answering:
                    break
                continue
            needed = price(passage)
        taken[at] = passage
        budget -= needed
    return [taken[at] for at in sorted(taken)]


def render_excerpt(passages: Sequence[Passage], total_chars: int) -> str:
    """Passages as a model reads them: each run of adjacent passages is preceded by a line with its character range."""
    zh = _in_chinese(passages)
    runs: list[list[Passage]] = []
    for passage in passages:
        if runs and passage.start == runs[-1][-1].end:
            runs[-1].append(passage)
        else:
            runs.append([passage])
    out: list[str] = []
    for run in runs:
        body = "".join(passage.text for passage in run)
        ended = body if body.endswith("\n") else f"{body}\n"
        out.append(_marker(run[0].start, run[-1].end, total_chars, zh=zh) + ended)
    return "".join(out).removesuffix("\n")


def page_slice(text: str, offset: int, limit: int) -> tuple[int, int]:
    """The range to show for `offset` and `limit`: at most `limit` characters, splitting no unit that fits.

    The start moves back to the beginning of the unit it falls into, then the end moves back to the beginning
    of the unit it would split. A unit that does not fit into `limit`, or that is all there is, is cut where
    asked. The end is always after `offset` (unless the text has ended or `limit` is 0), so that paging on
    from it terminates.
    """
    start = min(max(0, offset), len(text))
    end = min(len(text), start + max(0, limit))
    if start == end:
        return start, end
    found = units(text)
    if (around := found.around(start)) is not None and around[1] - around[0] <= limit:
        start, end = around[0], min(len(text), around[0] + limit)
    if (behind := found.around(end)) is not None and behind[0] > max(start, offset):
        end = behind[0]
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
            inner = Units(row, "json", [], [], *(json_commas(row) or ([], [])))
            yield from (start + cut for cut in _cuts(inner, limits))
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
    return found.commas[high] if high < len(found.commas) else len(found.text)


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


# -- selecting ---------------------------------------------------------------------------------------------------------


def _clipped(passage: Passage, needed: int, budget: int, price: Callable[[Passage], int]) -> Passage | None:
    """As much of the head and tail as fits the budget; None if that is too little, or it must not be cut."""
    if protected(passage.text):
        return None
    room = len(passage.text)
    while room >= _SMALLEST_PART:
        room = min(room * 9 // 10, room * budget // needed) if budget > 0 else 0
        part = Passage(passage.start, passage.end, clip(passage.text, room))
        needed = price(part)
        if needed <= budget and room >= _SMALLEST_PART:
            return part
    return None


def _in_chinese(passages: Sequence[Passage]) -> bool:
    return language("".join(passage.text[:2000] for passage in passages[:4])) == "zh"


def _answering(passages: Sequence[Passage], query: str) -> list[int]:
    """Which passages share enough words with the query, best first; ties by position."""
    asked = terms(query)
    headings = _headings_above(passages)
    # The index puts the latest of equals first, so the passages are added in reverse.
    index = WordIndex[int]()
    for at in reversed(_likely(passages, asked)):
        index.add(at, terms(f"{headings[at]}\n{passages[at].text}"))
    ranked = index.search(asked, len(passages))
    return [hit.key for hit in ranked if hit.score >= ANSWERS * ranked[0].score]


def _headings_above(passages: Sequence[Passage]) -> list[str]:
    """The heading above each passage; empty for those that start with their own."""
    above: list[str] = []
    heading = ""
    for passage in passages:
        above.append("" if passage.text.startswith("#") else heading)
        if "#" in passage.text:
            found = _HEADING_LINE.findall(passage.text)
            heading = found[-1] if found else heading
    return above


def _likely(passages: Sequence[Passage], asked: Sequence[str]) -> list[int]:
    """All passages if they are few, else those that best match the stems of the query, in order."""
    if len(passages) <= MOST_SEGMENTED:
        return list(range(len(passages)))
    stems = {stem for term in asked for stem in _stems(term)}
    folded = [unicodedata.normalize("NFKC", passage.text).casefold() for passage in passages]
    rare = {stem: 1 / (1 + sum(stem in text for text in folded)) for stem in sorted(stems)}
    held = [sum(rare[stem] * min(3, text.count(stem)) for stem in rare) for text in folded]
    best = sorted((at for at, weight in enumerate(held) if weight), key=lambda at: (-held[at], at))
    return sorted(best[:MOST_SEGMENTED])


def _stems(term: str) -> tuple[str, ...]:
    """What a text with this term likely contains: for a number its digits, or its first one in other notations."""
    if (digits := _DIGITS.match(term)) is not None:
        return (digits.group(), term[0])
    return (term[: max(2, len(term) - 1)] if term.isascii() and len(term) > 2 else term,)


def _marker(start: int, end: int, total: int, *, zh: bool) -> str:
    return f"[…字符 {start}–{end} / 共 {total}]\n" if zh else f"[… characters {start}–{end} of {total}]\n"
