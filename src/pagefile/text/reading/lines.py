"""Lines of any kind of text: each with its heading, the header of its table, or the lines that it is indented below."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pagefile.text.reading.frames import Frame, Piece
from pagefile.text.sentences import language, sentences

#: A longer line is read sentence by sentence, and a longer sentence is cut between words; in Chinese from half of it on.
LONG = 240
#: A paragraph or block has at most this many characters.
_GROUP_CHARS = 1200
#: How much is said of one enclosing line, and how many are named.
_NAMED_CHARS, _MOST_NAMED = 90, 3
_HEADER_CHARS = 240

_HEADING = re.compile(r"(#{1,6})[ \t]++(\S[^\n]*+)")
#: A line that names what follows it, in texts that are not Markdown.
_SECTION = re.compile(
    r"(?:diff --git .*|commit [0-9a-f]{7,40}\b.*|\[[\w .:@/-]{1,80}\]|[=_-]{3,} \S.{0,120}? [=_-]{3,}"
    r"|(?:TASK|PLAY|RUNNING HANDLER) \[.*|第[一二三四五六七八九十百零\d]{1,6}[章节条编].{0,40}|[一二三四五六七八九十]{1,3}、.{1,40}"
    r"|##\[group\].*|#{1,6}\s*+\S.{0,80})\Z"
)
#: The number before a line, as coding agents are shown files.
_NUMBERED = re.compile(r"[ \t]*+\d++(?:\t|→|[ \t]*+\|)")
_INDENT = re.compile(r"[ \t│├└─┬]*+")
_RULE = re.compile(r"[ \t]*+[|+:-](?=[^\n]*--)[ \t|+:=-]*+\Z")
_COLUMNS = re.compile(r"\S+(?:[ ]\S+)?(?:[ ]{2,}|\t)\S")
_CAPITALS = re.compile(r"[^a-z]*+\Z")
_BREAK = re.compile(r"[。；！？;]|[.!?](?=\s)|[\s，、,|]|(?<=&)")


@dataclass(slots=True)
class _Enclosing:
    """What encloses the current line."""

    frame: Frame
    indented: bool
    header: str = ""
    _headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _above: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def heads(self, line: str) -> bool:
        """Whether the line is a heading; it is remembered."""
        if (heading := _HEADING.match(line)) is not None:
            level, title = len(heading[1]), heading[2]
        elif (section := _SECTION.match(line)) is not None:
            level, title = 7, section[0]
        else:
            return False
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title[:_NAMED_CHARS].strip()))
        self.header = ""
        self._above.clear()
        return True

    def descend(self, indent: int, line: str) -> None:
        """A line of this indent: what is indented deeper belongs to it."""
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        self._above.append((indent, line[:_NAMED_CHARS].strip()))

    def named(self, *, heading: bool) -> str:
        """All that encloses the line, outermost first."""
        titles = [title for _, title in (self._headings[:-1] if heading else self._headings)]
        above = [line for _, line in self._above[:-1]] if self.indented else []
        names = [self.frame.where, *titles[-2:], *above[-_MOST_NAMED:], self.header]
        return " › ".join(name for name in names if name)


def lines(frame: Frame, numbers: Iterator[int], *, header: str = "") -> Iterator[Piece]:
    """The pieces of a text, line by line; a paragraph or block is a group."""
    spans = list(_spans(frame.text))
    header = header[:_HEADER_CHARS].strip()
    long = LONG // 2 if language(frame.text[:2000]) == "zh" else LONG
    enclosing = _Enclosing(frame, _is_indented(frame.text, spans), header)
    fixed = header or _column_header(frame.text, spans)
    group, began = next(numbers), 0
    before = ""
    for at, (start, end) in enumerate(spans):
        line = frame.text[start:end].rstrip("\r\n")
        bare = _bare(line).rstrip()
        if not bare.strip():
            group, before = next(numbers), ""
            enclosing.header = header
            continue
        heading = enclosing.heads(bare)
        if _RULE.match(line):
            enclosing.header = before[:_HEADER_CHARS].strip() or enclosing.header
        elif fixed and at and not heading:
            enclosing.header = fixed
        if indent := _INDENT.match(bare):
            enclosing.descend(indent.end(), bare)
        if heading or start - began > _GROUP_CHARS:
            group, began = next(numbers), start
        where = enclosing.named(heading=heading)
        if end - start <= long:
            yield Piece(frame, start, end, group, where)
        else:
            own = next(numbers)
            for begin, stop in _parts(frame.text, start, end, long):
                yield Piece(frame, begin, stop, own, where)
        before = line


def is_numbered(text: str) -> bool:
    """Whether the first lines have their numbers before them."""
    first = text[:2000].split("\n", 3)[:-1]
    return len(first) > 1 and all(map(_NUMBERED.match, first))


def _bare(line: str) -> str:
    numbered = _NUMBERED.match(line)
    return line[numbered.end() :] if numbered else line


def _spans(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    while place < len(text):
        end = text.find("\n", place) + 1 or len(text)
        yield place, end
        place = end


def _is_indented(text: str, spans: list[tuple[int, int]]) -> bool:
    """Whether the indent of lines says what they belong to."""
    sample = [_bare(text[start : min(end, start + 60)]) for start, end in spans[:400]]
    filled = [line for line in sample if line.strip()]
    return sum(line[:1] in " \t│├└" for line in filled) * 4 > len(filled)


def _column_header(text: str, spans: list[tuple[int, int]]) -> str:
    """The first line, if it names the columns of the lines below it in capitals."""
    if len(spans) < 3:
        return ""
    first = text[slice(*spans[0])].strip()
    named = len(first.split()) > 2 and _CAPITALS.match(first) and _COLUMNS.match(first)
    return first[:_HEADER_CHARS] if named else ""


def _parts(text: str, start: int, end: int, long: int) -> Iterator[tuple[int, int]]:
    """A long line by sentences; those that are too long are cut between words."""
    place = start
    for sentence in sentences(text[start:end]):
        stop = place + len(sentence)
        while stop - place > long + long // 2:
            # Behind the last place that is good to cut, within reach.
            near = [match.end() for match in _BREAK.finditer(text, place + long // 2, place + long)]
            cut = near[-1] if near else place + long
            yield place, cut
            place = cut
        yield place, stop
        place = stop
