"""Server-sent events, split as they arrive: each with its own bytes, so that what is not understood is passed on unchanged."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pagefile.shapes.skeleton import as_object

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(r"\r\n|\n|\r")


class Event(NamedTuple):
    #: As it arrived, with the blank line at its end.
    raw: bytes
    name: str
    data: str

    @property
    def json(self) -> dict[str, Any] | None:
        """Its data if that is a JSON object; a malformed one is for the client to judge."""
        try:
            return as_object(json.loads(self.data))
        except (ValueError, RecursionError):
            return None


class EventSplitter:
    """Turns pieces of a stream into events."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, piece: bytes) -> list[Event]:
        self._left += piece
        events: list[Event] = []
        start = 0
        for end in _END.finditer(self._left):
            events.append(_event(self._left[start : end.end()]))
            start = end.end()
        self._left = self._left[start:]
        return events

    def rest(self) -> bytes:
        """What a stream ended with, without the end of an event."""
        left, self._left = self._left, b""
        return left


def _event(raw: bytes) -> Event:
    name, data = "", list[str]()
    for line in _LINE.split(raw.decode("utf-8", "replace")):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return Event(raw, name, "\n".join(data))


def encoded(data: Mapping[str, Any], name: str = "") -> bytes:
    """An event of our own, or one that was changed."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumped(data).decode()}\n\n".encode()


def dumped(value: object) -> bytes:
    """JSON as the providers' clients write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
