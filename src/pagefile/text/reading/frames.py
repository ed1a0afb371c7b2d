"""Frames: a text as it reads, and where each of its characters is in the page it was taken from."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Self

_BETWEEN_TOKENS = re.compile(r"[ \t]*+\r?+\n\s*+")


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A page, or a text inside one: the decoded string of JSON, the visible text of HTML."""

    text: str
    #: The frame it was taken from; None for the page itself.
    outer: "Frame | None" = None
    #: From each mark on, the text runs beside the outer one, from the place given for it.
    marks: list[int] = field(default_factory=list[int])
    places: list[int] = field(default_factory=list[int])
    #: Its JSON path.
    where: str = ""
    #: Raw JSON, in which line breaks are layout and mean nothing.
    structured: bool = False

    def place(self, at: int) -> int:
        """Where in the page a position of this text is."""
        if self.outer is None:
            return at
        mark = bisect_right(self.marks, at) - 1
        place = self.places[mark] + at - self.marks[mark]
        # What was inserted has no length in the page.
        most = self.places[mark + 1] if mark + 1 < len(self.places) else place
        return self.outer.place(min(place, most))

    def shown(self, start: int, end: int) -> str:
        """A part as it is shown."""
        part = self.text[start:end]
        return _BETWEEN_TOKENS.sub(" ", part) if self.structured else part


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The least that is shown: a row, a line, a sentence, a few members of an object."""

    frame: Frame
    start: int
    end: int
    #: Pieces of one paragraph, record or definition have the same number.
    group: int
    #: What encloses it: the path of JSON, the heading, the header of its table, the definition.
    where: str = ""

    @property
    def text(self) -> str:
        return self.frame.shown(self.start, self.end)


class Transcript:
    """Writes the text of a frame: what is copied, and what is put in place of something else."""

    def __init__(self, outer: Frame) -> None:
        self._outer = outer
        self._parts: list[str] = []
        self._marks: list[int] = []
        self._places: list[int] = []
        self._length = 0

    def copy(self, start: int, end: int) -> Self:
        """A part of the outer text as it is."""
        return self.put(self._outer.text[start:end], start)

    def put(self, text: str, place: int) -> Self:
        """A text that replaces what begins at this place of the outer one."""
        if text:
            self._marks.append(self._length)
            self._places.append(place)
            self._parts.append(text)
            self._length += len(text)
        return self

    @property
    def last(self) -> str:
        """The last character written; a line break at the beginning."""
        return self._parts[-1][-1] if self._parts else "\n"

    def frame(self, end: int, where: str) -> Frame:
        """The frame of all that was written; `end` is where the outer text goes on."""
        marks, places = [*self._marks, self._length], [*self._places, end]
        return Frame("".join(self._parts), self._outer, marks, places, where)
