"""What a protocol has to say for itself: where its requests hold the conversation, and how its answers are read.

An adapter changes only what memory changes. Every other field of a request, and every event of a stream that has nothing to do
with our own tools, passes as it came.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

from pagefile.content import Shape
from pagefile.gateway.exchanges import Exchange, Json, exchanges, text_of
from pagefile.gateway.sse import Event, EventSplitter, dumped, object_of
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.standalone.tools import tool_schemas
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import Parts
from pagefile.window.wording import Language

#: The texts to show for results, by call id, in the order of their calls.
Results: TypeAlias = Mapping[str, Sequence[str]]

#: Blocks that cost tokens which no text shows.
_MEDIA = frozenset(
    {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document"}
)
#: What one of them is assumed to cost.
MEDIA_TOKENS = 1_500


#: The most that is held of an answer: of one event, or of an answer that is not a stream.
MOST_BYTES = 16_000_000
#: What lets a model call any tool, ours included; None is the default.
_FREE_CHOICES = (None, "auto", "required", "any")
#: How streams end.
_DONE = "[DONE]"
_LAST = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})


class Talk(NamedTuple):
    """The conversation in a request."""

    preamble: tuple[Json, ...]
    exchanges: list[Exchange]


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A model's call of one of our tools."""

    id: str
    tool: str
    arguments: Json


class Adapter(ABC):
    """One protocol; it has no state."""

    #: In metrics and traces.
    name: ClassVar[str]
    shape: ClassVar[Shape]
    #: The path of its requests, after the version.
    path: ClassVar[str]
    #: The field that holds the conversation.
    field: ClassVar[str] = "messages"
    #: The fields that limit the answer, the newest first.
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)
    #: The choice of tools that calls none.
    no_choice: ClassVar[Any] = "none"

    # -- requests -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def asks(self, message: Json) -> bool:
        """Whether a message is the user's own, and not the result of a tool."""

    def messages(self, body: Json) -> list[Json]:
        return objects_in(body.get(self.field))

    def talk(self, body: Json) -> Talk:
        return Talk(*exchanges(self.messages(body), self.asks))

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        return {**body, self.field: list(messages)}

    @abstractmethod
    def system(self, body: Json) -> str:
        """The client's instructions."""

    @abstractmethod
    def with_system(self, body: Json, text: str) -> Json:
        """The request with a text after the client's instructions, which stay as they are."""

    def with_memory(self, message: Json, text: str) -> Json:
        """A user's message with a text in front of what the user said."""
        content = message.get("content")
        if isinstance(content, str):
            return {**message, "content": f"{text}\n\n{content}"}
        return {**message, "content": [self.text_block(text), *(as_list(content) or [])]}

    def text_block(self, text: str) -> Json:
        return {"type": "text", "text": text}

    def with_mark(self, body: Json, before: int) -> Json:
        """The request with a mark for the prompt cache behind its first `before` messages, where the protocol has marks."""
        del before
        return body

    @abstractmethod
    def results(self, message: Json) -> Iterator[str]:
        """The call ids of the results in a message."""

    @abstractmethod
    def with_results(self, message: Json, texts: Mapping[str, str]) -> Json:
        """The message with these texts as its results, by call id; one that is not plain text stays as it is."""

    @abstractmethod
    def rendered(self, turns: Sequence[ShownTurn], blobs: Mapping[str, bytes]) -> list[Json]:
        """Turns of the log in this protocol, for a client that has no history."""

    def is_stateful(self, body: Json) -> bool:
        """Whether the provider holds the history."""
        del body
        return False

    def previous(self, body: Json) -> str | None:
        """What the request continues at the provider, if it says so."""
        del body
        return None

    def is_held(self, body: Json) -> bool:
        """Whether the provider holds the answer, for a request that continues it."""
        del body
        return False

    def with_previous(self, body: Json, name: str) -> Json:
        """The request as a continuation of something else."""
        del name
        return body

    def answer_tokens(self, body: Json) -> int:
        given = next((body[name] for name in self.limits if isinstance(body.get(name), int)), 0)
        return max(0, cast("int", given))

    def media_tokens(self, body: Json) -> int:
        return MEDIA_TOKENS * _media_in(body.get(self.field))

    # -- tools ----------------------------------------------------------------------------------------------------------

    def tools(self, body: Json) -> list[Json]:
        return objects_in(body.get("tools"))

    def takes_tools(self, body: Json) -> bool:
        """Whether the model may call a tool of ours, and we can answer before the client sees the answer."""
        choice = body.get("tool_choice")
        kind = (as_object(choice) or {}).get("type", choice)
        return kind in _FREE_CHOICES and body.get("n") in (None, 1)

    def with_tools(self, body: Json, language: Language) -> Json:
        """The request with our tools behind the client's own, whose place in a prompt cache they keep."""
        return {**body, "tools": [*self.tools(body), *tool_schemas(language, cast("Any", self.shape))]}

    def without_own_calls(self, body: Json) -> Json:
        """The request whose model can call no tool of ours. Providers want the tools of a history that has calls to be there."""
        left = [tool for tool in self.tools(body) if self.tool_name(tool) not in LOADING_TOOLS]
        return {**body, "tools": left} if left else {**body, "tool_choice": self.no_choice}

    def tool_name(self, tool: Json) -> str:
        return str(tool.get("name") or (as_object(tool.get("function")) or {}).get("name") or "")

    # -- answers --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def reply(self, own: frozenset[str]) -> "Reply":
        """Reads the answer to a request that offered these tools of ours."""

    @abstractmethod
    def own_results(self, results: Sequence[tuple[OwnCall, str]]) -> list[Json]:
        """Our answers to calls of our tools, as messages."""

    @abstractmethod
    def call_ids(self, messages: Sequence[Json]) -> list[str]:
        """The ids of the tool calls in messages of the model."""

    def unfolded(
        self, messages: Sequence[Json], logged: Sequence[Json], ours: AbstractSet[str]
    ) -> list[Json]:
        """The client's messages with the rounds that it did not see; `ours` are the ids of their calls.

        It saw one message where the model said several: those of the log take its place.
        """
        hidden: dict[str, list[Json]] = {}
        waiting: list[Json] = []
        for message in logged:
            calls = self.call_ids([message])
            if not ours.isdisjoint((*calls, *self.results(message))):
                waiting.append(message)
            elif waiting and calls:
                hidden[calls[0]] = [*waiting, message]
                waiting = []
        first = [next(iter(self.call_ids([message])), "") for message in messages]
        return [
            one for name, message in zip(first, messages, strict=True) for one in hidden.get(name, [message])
        ]

    def is_final(self, messages: Sequence[Json], stop: str | None) -> bool:
        """Whether the model's turn is over: it waits for no result of a tool."""
        del stop
        return not self.call_ids(messages)


def parts_of(turns: Sequence[ShownTurn], blobs: Mapping[str, bytes]) -> Parts:
    """A window of nothing but these turns."""
    return Parts(turns=tuple(turns), blobs=blobs)


def _media_in(value: Any) -> int:
    """Blocks are in messages, in their content and in what tools put out; going through every argument of a long run takes milliseconds."""
    found = 0
    for block in objects_in(value):
        found += block.get("type") in _MEDIA or _media_in(block.get("content")) + _media_in(
            block.get("output")
        )
    return found


# -- answers ------------------------------------------------------------------------------------------------------------


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
        self._holding = False
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


__all__ = [
    "Adapter", "OwnCall", "Reply", "Results", "Round", "Talk", "error_of", "parts_of", "said_arguments", "summed",
]  # fmt: skip
