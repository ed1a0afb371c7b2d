"""The pieces of a page, whatever it is."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import count

from pagefile.text.reading.frames import Frame, Piece
from pagefile.text.reading.json_tree import START, tree
from pagefile.text.reading.lines import is_numbered, lines
from pagefile.text.reading.markup import elements, visible
from pagefile.text.reading.records import Records
from pagefile.text.synopsis.kinds import kind, rows_kind

#: Texts inside texts are read to this depth.
_MOST_FRAMES = 5
_SOMETHING = re.compile(r"\S")


def pieces(page: Frame) -> list[Piece]:
    """All pieces of a page, in order."""
    return list(_read(page, numbers=count(), frames=_MOST_FRAMES))


def _read(frame: Frame, *, numbers: Iterator[int], frames: int) -> Iterator[Piece]:
    text = frame.text
    if frames and START.match(text):
        return _documents(frame, numbers, frames)
    if not is_numbered(text) and rows_kind(text) is not None:
        return lines(frame, numbers, header=text[: text.find("\n") + 1 or len(text)])
    return lines(_plain(frame), numbers)


def _plain(frame: Frame) -> Frame:
    """Markup as it is read; a page of which nothing is visible as it is written."""
    markup = kind(frame.text) if frame.text.lstrip()[:1] == "<" else ""
    if markup == "html":
        seen = visible(frame)
        return seen if _SOMETHING.search(seen.text) else frame
    return elements(frame) if markup == "xml" else frame


def _documents(frame: Frame, numbers: Iterator[int], frames: int) -> Iterator[Piece]:
    """JSON, or several values of JSON one after the other; what follows them is text."""
    text, place, number = frame.text, 0, 0
    read = partial(_read, numbers=numbers, frames=frames - 1)
    while START.match(text, place) and (root := tree(text, place)) is not None:
        one = not number and _SOMETHING.search(text, root.end) is None
        where = frame.where if one else f"{frame.where}[{number}]"
        raw = Frame(text, frame, [0, len(text)], [0, len(text)], where, structured=True)
        yield from Records(raw, numbers, read).pieces(root, where)
        place, number = root.end, number + 1
    if _SOMETHING.search(text, place):
        yield from lines(Frame(text[place:], frame, [0], [place], frame.where), numbers)
