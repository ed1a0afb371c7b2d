"""Server-sent events, split as they arrive: each with its own bytes, so that what is not understood is passed on unchanged."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pagefile.shapes.skeleton import as_object
from pagefile.text.json_size import has_many_values

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
#: The longest.
_END_BYTES = 4
_LINE = re.compile(r"\r\n|\n|\r")


class Event(NamedTuple):
    #: As it arrived, with the blank line at its end.
    raw: bytes
    name: str
    data: str

    @property
    def json(self) -> dict[str, Any] | None:
        return object_of(self.data)


class EventSplitter:
    """Turns pieces of a stream into events."""

    def __init__(self) -> None:
        self._left = bytearray()
        #: How much of it has no end of an event, except perhaps the beginning of one.
        self._searched = 0

    @property
    def waiting(self) -> int:
        """The bytes of the event that is not complete."""
        return len(self._left)

    def feed(self, piece: bytes) -> list[Event]:
        self._left += piece
        events: list[Event] = []
        start, place = 0, max(0, self._searched - _END_BYTES + 1)
        while (end := _END.search(self._left, place)) is not None:
            place = end.end()
            events.append(_event(bytes(self._left[start:place])))
            start = place
        del self._left[:start]
        self._searched = len(self._left)
        return events

    def rest(self) -> bytes:
        """What a stream ended with, without the end of an event."""
        left = bytes(self._left)
        self._left, self._searched = bytearray(), 0
        return left


def _event(raw: bytes) -> Event:
    text = raw.decode("utf-8", "replace")
    # Most events are a single line.
    if text.startswith("data: ") and text.find("\n") == len(text) - 2 and "\r" not in text:
        return Event(raw, "", text[6:-2])
    name, data = "", list[str]()
    for line in _LINE.split(text):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return Event(raw, name, "\n".join(data))


def object_of(text: str | bytes) -> dict[str, Any] | None:
    """A JSON object as it was sent; None for anything else, which is for the other side to judge."""
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return None


def request_object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object in a request; None also for far too many values, which are for the provider to judge."""
    return None if has_many_values(raw) else object_of(raw)


def encoded(data: Mapping[str, Any], name: str = "") -> bytes:
    """An event of our own, or one that was changed."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumped(data).decode()}\n\n".encode()


def dumped(value: object) -> bytes:
    """JSON as the providers' clients write it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which a client can only have sent escaped: bytes for it would not be UTF-8.
        return json.dumps(value, separators=(",", ":")).encode()
