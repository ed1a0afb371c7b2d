"""The pieces of JSON: records, the members of longer ones, and the texts inside."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pagefile.text.reading.frames import Frame, Piece
from pagefile.text.reading.json_tree import Node, decoded, path
from pagefile.text.reading.lines import LONG

#: A record up to this length is one piece.
_RECORD = 320
#: Short members of an object, or values of an array, are taken together up to this length.
_TOGETHER = 160
#: A longer string is a text to be read, not a value.
_TEXT_FROM = 200
#: Deeper values are shown as they are written.
_MOST_DEPTH = 50
_COLUMNS = frozenset({"columns", "fields", "header", "headers", "column_names", "columnNames"})
_SHOWN_COLUMNS = 200
#: By what a record is called, best first, and where that may be.
_NAMES = ("name", "title", "key", "id", "subject", "path", "url")
_ABOUT = ("metadata", "properties", "node", "entity", "payload", "fields")
_MOST_NAME = 60

Read = Callable[[Frame], Iterator[Piece]]


class _Place(NamedTuple):
    """Where in a document something is: its path, the name of its record, the names of its columns."""

    path: str
    group: int
    name: str = ""
    columns: str = ""

    def told(self, *, row: bool = False) -> str:
        named = f"{self.path} ({self.name})" if self.name else self.path
        return f"{named} › {self.columns}" if row and self.columns else named


class _Held(NamedTuple):
    """Members that are taken together."""

    start: int
    end: int
    place: _Place
    row: bool


class Records:
    """The pieces of one value of JSON; `read` reads the texts in it."""

    def __init__(self, frame: Frame, numbers: Iterator[int], read: Read) -> None:
        self._frame = frame
        self._numbers = numbers
        self._read = read
        self._held: _Held | None = None

    def pieces(self, root: Node, where: str) -> Iterator[Piece]:
        place = _Place(where, next(self._numbers))
        if self._is_short(root):
            yield Piece(self._frame, root.start, root.end, place.group, where)
            return
        yield from self._inside(root, place, 0)
        yield from self._flush()

    def _inside(self, node: Node, place: _Place, depth: int) -> Iterator[Piece]:
        place = place._replace(columns=self._columns(node) or place.columns)
        rows = not node.is_object and any(item.items for item in node.items or ())
        for number, item in enumerate(node.items or ()):
            inner = place._replace(path=path(place.path, item, number))
            if rows:
                yield from self._flush()
                inner = inner._replace(group=next(self._numbers), name=self._name(item) or place.name)
            if self._is_text(item):
                yield from self._flush()
                yield from self._text(item, inner)
            elif item.items and not self._is_short(item) and depth < _MOST_DEPTH:
                yield from self._flush()
                yield from self._inside(item, inner, depth + 1)
                yield from self._flush()
            else:
                # A whole record says itself what it is called.
                yield from self._take(item, inner._replace(name="") if rows else place, row=rows)

    def _text(self, item: Node, place: _Place) -> Iterator[Piece]:
        closed = item.end - 1 if self._frame.text[item.end - 1] == '"' else item.end
        return self._read(decoded(self._frame, item.inside + 1, closed, place.told()))

    def _take(self, item: Node, place: _Place, *, row: bool) -> Iterator[Piece]:
        held = self._held
        if held is not None and held.place.group == place.group and item.end - held.start <= _TOGETHER:
            self._held = held._replace(end=item.end)
            return
        yield from self._flush()
        start = item.start
        while item.end - start > 2 * _RECORD:
            # Neither a text nor a record: a number without end, brackets without end.
            yield Piece(self._frame, start, start + LONG, place.group, place.told())
            start += LONG
        self._held = _Held(start, item.end, place, row)

    def _flush(self) -> Iterator[Piece]:
        if self._held is not None:
            start, end, place, row = self._held
            yield Piece(self._frame, start, end, place.group, place.told(row=row))
            self._held = None

    def _is_short(self, node: Node) -> bool:
        return len(node) <= _RECORD and not self._has_text(node)

    def _has_text(self, node: Node) -> bool:
        """Whether there is a text to be read anywhere inside; only asked of what is short."""
        if node.items is None:
            return self._is_text(node)
        return len(node) > _TEXT_FROM and any(self._has_text(item) for item in node.items)

    def _is_text(self, node: Node) -> bool:
        return node.is_string and node.end - node.inside > _TEXT_FROM

    def _columns(self, node: Node) -> str:
        """The names of columns that are given beside their rows."""
        for item in node.items or () if node.is_object else ():
            if item.key in _COLUMNS and item.items and len(item) <= 4 * _SHOWN_COLUMNS:
                names = [self._value(name) for name in item.items if not name.items]
                return ", ".join(names)[:_SHOWN_COLUMNS]
        return ""

    def _name(self, node: Node) -> str:
        """What a record is called, by its own member or by one of what it says about itself."""
        members = {item.key: item for item in node.items or () if item.key is not None}
        inner = [members[key] for key in _ABOUT if key in members]
        for key in _NAMES:
            if key in members and members[key].items is None and len(members[key]) <= _MOST_NAME + len(key):
                return self._value(members[key])
        return next((name for node in inner if (name := self._name(node))), "")

    def _value(self, node: Node) -> str:
        return self._frame.text[node.inside : node.end].strip('"')
