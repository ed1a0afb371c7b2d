"""A message for the service's model to answer, and the events that stream the answer."""

from typing import ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue

from pagefile.schema import Answer, Id, Text
from pagefile.wire.requests import ConversationBody, LabelFields, StepBody, Tokens

#: The stages of an answer.
Node: TypeAlias = Literal["recall", "generate", "tools", "persist"]


class AskChat(LabelFields, ConversationBody):
    """A user's message for the configured model to answer."""

    message: Text = Field(min_length=1)
    id: Id | None = Field(default=None, description="The turn's id; generated when left out.")
    instructions: Text | None = Field(default=None, description="What the model is told first.")
    window_tokens: Tokens | None = None
    steps: tuple[StepBody, ...] = Field(default=(), strict=False)
    """Tool results that the client brings along; bulky ones are archived."""


class _Event(Answer):
    event: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.event = cls.__name__.removeprefix("Chat").lower()


class ChatTurn(_Event):
    """The user's message is on disk, and the turn is open."""

    turn_id: str
    conversation_id: str


class ChatNode(_Event):
    """One stage of the work is done."""

    node: Node
    duration_ms: float
    told: dict[str, JsonValue]
    """Of `recall`: the window (id, tokens, budget, ratio, mode, kept, degraded)."""


class ChatToken(_Event):
    """A piece of the answer."""

    text: str


class ChatArchived(_Event):
    """A bulky result left the window for the archive."""

    uuid: str
    tool: str
    chars: int


class ChatLoaded(_Event):
    """The model called a tool that loads archived results, and got its answer."""

    tool: str
    arguments: JsonValue
    chars: int = Field(description="Characters that the model got.")


class ChatCheckpoint(_Event):
    """From now on a summary replaces the older turns."""

    id: str
    version: int
    covered_through_seq: int


class ChatDone(_Event):
    """The answer is on disk: the last event of a successful stream."""

    turn_id: str
    seq: int | None
    finish: str = Field(description='Why the model stopped; "length" when it was cut off.')
    user_tokens: int
    assistant_tokens: int
    tokens: int = Field(description="Of the whole turn, its steps included.")
    window_tokens: int = Field(description="Of the last window the model was asked with.")
    model_calls: int


ChatEvent = ChatTurn | ChatNode | ChatToken | ChatArchived | ChatLoaded | ChatCheckpoint | ChatDone
