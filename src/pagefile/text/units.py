"""Where a text must not be cut: units that mean nothing in halves.

Fenced code, tables, images, links, tags, the values of JSON, the rows of CSV. Each scan is linear, whatever
the text: patterns are possessive, and what is opened but never closed is not a unit.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from pagefile.text.sentences import sentences
from pagefile.text.synopsis.kinds import rows_kind

Span = tuple[int, int]

_FENCE = re.compile(r"(?:```+|~~~+)([^\n]*)")
#: What may precede a fence: the indent of a list, the marks of a quotation.
_FENCE_INDENT = re.compile(r"[ \t>]{0,12}\Z")
_TABLE_RULE = re.compile(
    r"\n[ \t>]*+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t]*+\r?+(?=\n|\Z)"
)
_TABLE_ROWS = re.compile(r"(?:\n[^\n|]*+\|[^\n]*+)*+\n?+")
_HTML_TABLE = re.compile(r"<(/?)table\b[^<>]*+>", re.IGNORECASE)
#: A link or an image, its text with one level of brackets (a linked image), its URL with one of parentheses.
_LINK = r"\[(?:[^\[\]\n]++|\n(?![ \t]*+\n)|\[[^\[\]\n]*+\](?:\([^()\n]*+\))?+)*+\]\((?:[^()\n]++|\([^()\n]*+\))*+\)"
#: A tag, with quoted attributes if the quotes are closed. Most have none, which is tried first.
_TAG = (
    r"<[A-Za-z/!?][^<>\"'\n]*+"
    r"(?:>|(?:(?:[^<>\"'\n]++|\n(?![ \t]*+\n)|\"[^\"<]*+\"|'[^'<]*+')*+|(?:[^<>\n]++|\n(?![ \t]*+\n))*+)>)"
)
_LINKS, _TAGS, _LINKS_AND_TAGS = (re.compile(each) for each in (_LINK, _TAG, f"{_LINK}|{_TAG}"))
_QUOTED_FIELD = re.compile(r"(?<![^,;\t\n])\"(?:[^\"]++|\"\")*+\"(?![^,;\t\r\n])")

_JSON_START = re.compile(r"\ufeff?\s*(?:\{\s*[\"}]|\[\s*(?:[\"\[{\]\d-]|true|false|null))")
#: Up to the next structural mark outside strings, or to the end; an unclosed string extends to the end.
_JSON_MARK = re.compile(
    r'[^"\[\]{},]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)[^"\[\]{},]*+)*+(,\s*+|[\[\]{}]|\Z)', re.DOTALL
)

#: How far around a position a sentence is looked for: anything longer is not a sentence.
_SENTENCE_REACH = 4000


@dataclass(frozen=True, slots=True)
class Units:
    text: str
    #: `json`: cuts are at commas. `rows`: at line ends. `text`: anywhere outside the spans.
    layout: Literal["json", "rows", "text"]
    #: Spans that must stay whole, ascending and disjoint: where they begin, and where they end.
    starts: list[int]
    ends: list[int]
    #: The positions after JSON's commas, ascending, and the depth of each comma.
    commas: Sequence[int]
    depths: Sequence[int]

    def span(self, place: int) -> Span | None:
        """The protected span that a cut at this position would split."""
        at = bisect_left(self.starts, place) - 1
        if at >= 0 and place < self.ends[at]:
            return self.starts[at], self.ends[at]
        return None

    def around(self, place: int) -> Span | None:
        """The unit that a cut at this position would split: a span, a JSON member, a row, or a sentence."""
        if not 0 < place < len(self.text):
            return None
        if self.layout == "json":
            return self._member(place)
        if self.layout == "rows":
            return self._row(place)
        return self.span(place) or self._sentence(place)

    def _member(self, place: int) -> Span | None:
        at = bisect_right(self.commas, place)
        start = self.commas[at - 1] if at else 0
        end = self.commas[at] if at < len(self.commas) else len(self.text)
        return None if start == place else (start, end)

    def _row(self, place: int) -> Span | None:
        if self.text[place - 1] == "\n" and self.span(place) is None:
            return None
        start, end = self.text.rfind("\n", 0, place) + 1, self.text.find("\n", place) + 1
        while (before := self.span(start)) is not None:
            start = self.text.rfind("\n", 0, before[0]) + 1
        while end and (behind := self.span(end)) is not None:
            end = self.text.find("\n", behind[1] - 1) + 1
        return start, end or len(self.text)

    def _sentence(self, place: int) -> Span | None:
        floor = max(0, place - _SENTENCE_REACH)
        start = max(floor, self.text.rfind("\n", floor, place) + 1)
        lengths = map(len, sentences(self.text[start : place + _SENTENCE_REACH]))
        ends = list(accumulate(lengths, initial=start))
        at = bisect_left(ends, place)
        return None if ends[at] == place else (ends[at - 1], ends[at])


def units(text: str) -> Units:
    """Find the units of a text, in time linear in its length."""
    if (json_cuts := json_commas(text)) is not None:
        return Units(text, "json", [], [], *json_cuts)
    rows = rows_kind(text) is not None
    # In rows, quoted fields of CSV that run over several lines.
    fields = _QUOTED_FIELD.finditer(text) if rows and '"' in text else ()
    spans = [field.span() for field in fields if "\n" in field[0]] if rows else protected(text)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return Units(text, "rows" if rows else "text", starts, ends, [], [])


def protected(text: str) -> list[Span]:
    """What must stay whole in Markdown and HTML, ascending and disjoint."""
    blocks = [*_fences(text), *_tables(text), *_html_tables(text)]
    inline = _inline(text)
    return _merged(sorted(blocks + inline)) if blocks else inline


def json_commas(text: str) -> tuple[Sequence[int], Sequence[int]] | None:
    """Where JSON may be cut (after its commas) and the depth of each comma; None if it is not JSON.

    Truncated JSON is JSON; JSON followed by something else is not.
    """
    if not _JSON_START.match(text):
        return None
    # A list of numbers has millions of them.
    commas, depths = array("q"), array("i")
    depth = 0
    for match in _JSON_MARK.finditer(text):
        mark = match[1]
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
            if depth <= 0:
                return (commas, depths) if text[match.end() :].isspace() or match.end() == len(text) else None
        elif mark:
            commas.append(match.end())
            depths.append(depth)
    return commas, depths


def _fences(text: str) -> Iterator[Span]:
    """Code between fences. An unclosed fence is a line like any other."""
    if "```" not in text and "~~~" not in text:
        return
    fences = [fence for match in _FENCE.finditer(text) if (fence := _fence(text, match)) is not None]
    # Fences at least this long have no closing fence in the rest of the text.
    hopeless = {"`": len(text), "~": len(text)}
    at = 0
    while at < len(fences):
        start, mark, _, _ = fences[at]
        closing = None
        if len(mark) < hopeless[mark[0]]:
            later = ((other, *fences[other][1:3]) for other in range(at + 1, len(fences)))
            closes = (n for n, end, rest in later if end.startswith(mark) and not rest.strip())
            closing = next(closes, None)
            if closing is None:
                hopeless[mark[0]] = len(mark)
        if closing is not None:
            yield start, fences[closing][3]
            at = closing
        at += 1


_Fence = tuple[int, str, str, int]


def _fence(text: str, match: re.Match[str]) -> _Fence | None:
    """Where its line begins, the fence, what follows it, and where the next line begins."""
    mark, rest = text[match.start() : match.start(1)], match[1]
    line = text.rfind("\n", max(0, match.start() - 13), match.start()) + 1
    line = line or max(0, match.start() - 13)
    alone = _FENCE_INDENT.fullmatch(text, line, match.start()) and (line == 0 or text[line - 1] == "\n")
    if not alone or (mark[0] == "`" and "`" in rest):
        return None
    return line, mark, rest, min(match.end() + 1, len(text))


def _tables(text: str) -> Iterator[Span]:
    """Markdown tables: a row with bars, the rule below it, and the rows that follow."""
    place = 0
    while (rule := _TABLE_RULE.search(text, place)) is not None:
        start = text.rfind("\n", 0, rule.start()) + 1
        rows = _TABLE_ROWS.match(text, rule.end())
        if rows and start >= place and "|" in rule.group() and "|" in text[start : rule.start()]:
            place = rows.end()
            yield start, place
        else:
            place = rule.end()


def _html_tables(text: str) -> Iterator[Span]:
    """Closed tables; nested ones are absorbed when the spans are merged."""
    opened: list[int] = []
    for tag in _HTML_TABLE.finditer(text):
        if not tag[1]:
            opened.append(tag.start())
        elif opened:
            yield opened.pop(), tag.end()


def _inline(text: str) -> list[Span]:
    linked, tagged = "](" in text, ">" in text
    if not linked:
        return [match.span() for match in _TAGS.finditer(text)] if tagged else []
    found = [match.span() for match in (_LINKS_AND_TAGS if tagged else _LINKS).finditer(text)]
    # The "!" of an image is not part of the pattern, which is searched for by its bracket.
    return [(start - text.endswith("![", 0, start + 1), end) for start, end in found]


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
