"""A message for the service's model to answer, and the events that stream the answer."""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from pagefile.schema import Answer, Id, Text
from pagefile.wire.requests import ConversationBody, LabelFields, StepBody, Tokens


class AskChat(LabelFields, ConversationBody):
    """A user's message for the configured model to answer."""

    message: Text = Field(min_length=1)
    id: Id | None = Field(default=None, description="The turn's id; generated when left out.")
    instructions: Text | None = Field(default=None, description="What the model is told first.")
    window_tokens: Tokens | None = None
    steps: tuple[StepBody, ...] = Field(default=(), strict=False)
    """Tool results that the client brings along; bulky ones are archived."""


class ChatTurn(Answer):
    """The user's message is on disk, and the turn is open."""

    event: ClassVar[str] = "turn"

    turn_id: str
    conversation_id: str


class ChatNode(Answer):
    """One stage of the work is done."""

    event: ClassVar[str] = "node"

    node: Literal["recall", "generate", "tools", "persist"]
    duration_ms: float
    told: dict[str, JsonValue]
    """Of `recall`: the window (id, tokens, budget, ratio, mode, kept, degraded)."""


class ChatToken(Answer):
    """A piece of the answer."""

    event: ClassVar[str] = "token"

    text: str


class ChatArchived(Answer):
    """A bulky result left the window for the archive."""

    event: ClassVar[str] = "archived"

    uuid: str
    tool: str
    chars: int


class ChatLoaded(Answer):
    """The model called a tool that loads archived results, and got its answer."""

    event: ClassVar[str] = "loaded"

    tool: str
    arguments: JsonValue
    chars: int = Field(description="Characters that the model got.")


class ChatCheckpoint(Answer):
    """From now on a summary replaces the older turns."""

    event: ClassVar[str] = "checkpoint"

    id: str
    version: int
    covered_through_seq: int


class ChatDone(Answer):
    """The answer is on disk: the last event of a successful stream."""

    event: ClassVar[str] = "done"

    turn_id: str
    seq: int | None
    finish: str = Field(description='Why the model stopped; "length" when it was cut off.')
    user_tokens: int
    assistant_tokens: int
    tokens: int = Field(description="Of the whole turn, its steps included.")
    window_tokens: int = Field(description="Of the last window the model was asked with.")
    model_calls: int


ChatEvent = ChatTurn | ChatNode | ChatToken | ChatArchived | ChatLoaded | ChatCheckpoint | ChatDone
