"""A provider's answer, read as it passes: what the client gets of it, and what the model said."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefile.gateway.exchanges import Json, text_of
from pagefile.gateway.sse import Event, EventSplitter, dumped, object_of
from pagefile.shapes.skeleton import as_object

#: The most that is held of an answer: of one event, or of an answer that is not a stream.
MOST_BYTES = 16_000_000
#: How streams end.
_DONE = "[DONE]"
_LAST = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A model's call of one of our tools."""

    id: str
    tool: str
    arguments: Json


@dataclass(slots=True)
class Round:
    """What one request to the provider brought."""

    #: The model's message, as the protocol takes it back.
    messages: list[Json] = field(default_factory=list[Json])
    calls: list[OwnCall] = field(default_factory=list[OwnCall])
    #: Whether it calls tools of the client's.
    foreign: bool = False
    #: Why the model stopped; None if the answer broke off.
    stop: str | None = None
    usage: Json = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        return "\n".join(text for message in self.messages if (text := text_of(message)))


class Reply(ABC):
    """A provider's answer, read as it passes: over all rounds in which the model called our tools first.

    `feed` returns what the client gets of a piece. What ends a round is held back until it is known whether another one follows.
    """

    #: The id by which the provider knows the answer, where it holds histories, and the one that the client got.
    id: str | None = None
    shown_id: str | None = None

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own
        #: The rounds that are over.
        self.rounds: list[Round] = []
        self.events = False
        self._splitter = EventSplitter()
        #: What was held back, as it came.
        self._held: list[bytes] = []
        self._holding = False
        #: Whether something arrived that is not a valid event: the answer is incomplete.
        self._broken = False
        #: Whether it is too large to be held: the rest passes as it comes, and the answer is not recorded.
        self.overrun = False
        #: Whether the end of the stream has come, behind which clients read nothing.
        self.has_ended = False
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes, *, events: bool) -> bytes:
        """What goes to the client; nothing of an answer that is not a stream until its last round is over."""
        self.events = events
        if self.overrun:
            return piece
        if events:
            out = b"".join(map(self._passed, self._splitter.feed(piece)))
            return out + self._let_go() if self._splitter.waiting > MOST_BYTES else out
        self._pieces.append(piece)
        self._size += len(piece)
        return self._let_go() if self._size > MOST_BYTES else b""

    def end_round(self) -> Round:
        """The response is over."""
        if self.events:
            if left := self._splitter.rest():
                self._held.append(left)
            ended = self.round_of_events()
            ended.stop = None if self._broken else ended.stop
        else:
            ended = self._round_of_whole()
        self.rounds.append(ended)
        return ended

    def continue_round(self) -> None:
        """Another round follows: the end of this one is not for the client."""
        self._held.clear()
        self._holding = self.has_ended = False
        self._drop()
        self.next_round()

    def released(self) -> bytes:
        """What is left for the client when the last round is over."""
        if not self.events:
            return self._delivered()
        held, self._held = b"".join(self._held), []
        return held

    @property
    def usage(self) -> Json:
        """Tokens of all rounds together."""
        total: Json = {}
        for one in self.rounds:
            total = summed(total, one.usage)
        return total

    # -- of a protocol ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def take(self, event: Event, data: Json) -> bytes | None:
        """What the client gets instead of an event; None for the event as it came."""

    @abstractmethod
    def round_of_events(self) -> Round:
        """What the events of the round said."""

    @abstractmethod
    def round_of(self, payload: Json) -> Round:
        """The text of an answer that is not a stream."""

    @abstractmethod
    def merged(self, payload: Json) -> Json:
        """The last round's answer with what earlier rounds said, without calls of our tools."""

    @abstractmethod
    def next_round(self) -> None:
        """Forget what belongs to one round."""

    @abstractmethod
    def error_event(self, error: Json) -> bytes:
        """How a stream says that a later round failed."""

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _passed(self, event: Event) -> bytes:
        data = event.json
        self._broken = self._broken or (data is None and event.data not in {"", _DONE})
        changed = None if data is None else self.take(event, data)
        out = event.raw if changed is None else changed
        self.has_ended = self.has_ended or event.data == _DONE
        if event.data == _DONE or event.name in _LAST:
            # Hold the end back until the answer is in the log, so that a client that saw the end finds it there.
            self.hold()
        if not self._holding:
            return out
        self._held.append(out)
        return b""

    def _let_go(self) -> bytes:
        """Everything that was held back."""
        self.overrun = self._broken = True
        held = [*self._held, self._splitter.rest(), *self._pieces]
        self._held.clear()
        self._drop()
        return b"".join(held)

    def _drop(self) -> None:
        self._pieces.clear()
        self._size = 0

    def hold(self) -> None:
        """Hold back this event and what follows."""
        self._holding = True

    def _round_of_whole(self) -> Round:
        payload = object_of(self._whole)
        return Round() if payload is None else self.round_of(payload)

    @property
    def _whole(self) -> bytes:
        """An answer that is not a stream, as it came."""
        return b"".join(self._pieces)

    def _delivered(self) -> bytes:
        touched = len(self.rounds) > 1 or (self.rounds and self.rounds[-1].calls)
        payload = object_of(self._whole) if touched else None
        return self._whole if payload is None else dumped(self.merged(payload))


def summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """The numbers of two usages together; whatever else they say is that of the later one."""
    total: Json = {**one, **other}
    for name in one.keys() & other.keys():
        first, second = one[name], other[name]
        if (mine := as_object(first)) is not None and (theirs := as_object(second)) is not None:
            total[name] = summed(mine, theirs)
        elif _is_number(first) and _is_number(second):
            total[name] = first + second
    return total


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def said_arguments(text: str) -> Json:
    """The arguments of a call; none if a model did not write an object."""
    return object_of(text) or {}


def error_of(body: bytes, status: int) -> Json:
    """The error in a response, or one that says what is known."""
    error = as_object((object_of(body) or {}).get("error"))
    return error or {
        "type": "api_error",
        "message": f"The provider answered with status {status}.",
        "code": None,
    }
