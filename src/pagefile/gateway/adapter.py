"""What a protocol has to say for itself: where its requests hold the conversation (how its answers are read: `replies`).

An adapter changes only what memory changes. Every other field of a request, and every event of a stream that has nothing to do
with our own tools, passes as it came.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, NamedTuple, cast

from pagefile.content import Shape
from pagefile.gateway.exchanges import Exchange, Json, exchanges
from pagefile.gateway.replies import OwnCall, Reply
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.standalone.tools import tool_schemas
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import Parts
from pagefile.window.wording import Language

#: Blocks that cost tokens which no text shows.
_MEDIA = frozenset(
    {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document"}
)
#: What one of them is assumed to cost.
MEDIA_TOKENS = 1_500

#: What lets a model call any tool, ours included; None is the default.
_FREE_CHOICES = (None, "auto", "required", "any")


class Talk(NamedTuple):
    """The conversation in a request."""

    preamble: tuple[Json, ...]
    exchanges: list[Exchange]


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
    def reply(self, own: frozenset[str]) -> Reply:
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
