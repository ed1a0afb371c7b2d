"""JSON with the place of every value. Truncated JSON is read as far as it goes; the scan is linear."""

import re
from dataclasses import dataclass

from pagefile.text.reading.frames import Frame, Transcript

START = re.compile(r"\ufeff?\s*+(?:\{\s*+[\"}]|\[\s*+(?:[\"\[{\]\d-]|true|false|null))")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)|[\[\]{}:,]|[^\s\[\]{},:"]++', re.DOTALL)
_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"\\({_PAIR}|u[0-9a-fA-F]{{4}}|[nrtbf\"\\/])")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_NAME = re.compile(r"[^\W\d][\w-]*\Z")


@dataclass(slots=True, eq=False)
class Node:
    """A value, with its key if it has one."""

    start: int
    #: Where the value begins, after its key.
    inside: int
    end: int
    key: str | None = None
    #: What it contains; None for a value that contains nothing.
    items: "list[Node] | None" = None
    is_string: bool = False
    is_object: bool = False

    def __len__(self) -> int:
        return self.end - self.start


def tree(text: str, start: int = 0) -> Node | None:
    """The value that begins here, as far as it goes; None if nothing does."""
    opened: list[Node] = []
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in ("[", "{"):
            node = Node(token.start(), token.start(), len(text), items=[], is_object=mark == "{")
            _attach(opened, node)
            opened.append(node)
        elif not opened:
            return None
        elif mark in ("]", "}"):
            closed = opened.pop()
            closed.end = token.end()
            if not opened:
                return closed
        elif mark not in (",", ":"):
            _attach(opened, Node(token.start(), token.start(), token.end(), is_string=mark[0] == '"'))
        elif mark == ":":
            _make_key(opened[-1], text)
    return opened[0] if opened else None


def _attach(opened: list[Node], node: Node) -> None:
    if not opened or (items := opened[-1].items) is None:
        return
    if opened[-1].is_object and items and items[-1].inside < 0:
        # The key is waiting for its value.
        key = items.pop()
        node.key, node.start = key.key, key.start
    items.append(node)


def _make_key(node: Node, text: str) -> None:
    if node.is_object and node.items and node.items[-1].is_string:
        last = node.items[-1]
        last.key, last.inside, last.is_string = text[last.start : last.end].strip('"'), -1, False


def path(outer: str, node: Node, number: int) -> str:
    """The path of a value inside another: `data.list[3].note`."""
    if node.key is None:
        return f"{outer}[{number}]"
    if not _NAME.match(node.key):
        return f'{outer}["{node.key}"]'
    return f"{outer}.{node.key}" if outer else node.key


def decoded(frame: Frame, start: int, end: int, where: str) -> Frame:
    """A string of JSON decoded. What cannot be decoded (NUL, half a surrogate pair) stays as it is written."""
    written = Transcript(frame)
    place = start
    for escape in _ESCAPE.finditer(frame.text, start, end):
        plain = _unescaped(escape[1])
        if plain is not None:
            written.copy(place, escape.start()).put(plain, escape.start())
            place = escape.end()
    return written.copy(place, end).frame(end, where)


def _unescaped(escape: str) -> str | None:
    if len(escape) == 1:
        return _PLAIN[escape]
    code = int(escape[1:5], 16)
    if len(escape) > 5:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(escape[7:], 16) - 0xDC00)
    return None if code == 0 or 0xD800 <= code < 0xE000 else chr(code)


def unescaped(text: str) -> str:
    """A part of raw JSON with its strings readable."""
    return _ESCAPE.sub(lambda escape: _unescaped(escape[1]) or escape[0], text) if "\\" in text else text
