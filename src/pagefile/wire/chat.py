"""A message for the service's model to answer, and the events that stream the answer."""

from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import Field, JsonValue, model_validator
from pydantic.json_schema import models_json_schema

from pagefile.records import Turn
from pagefile.schema import Answer, Id, Text
from pagefile.wire.requests import Anywhere, Body, ConversationParams, LabelFields, StepBody, Tokens

#: The stages of an answer.
Node: TypeAlias = Literal["route", "recall", "retrieve", "generate", "tools", "persist"]


class AskChat(LabelFields, Anywhere, Body):
    """A user's message for the configured model to answer."""

    message: Text = Field(min_length=1)
    session_id: Id | None = None
    """Instead of a conversation: that of the user's session, the same each time."""
    agent_type: Id | None = None
    """The kind of agent asked for; the router may choose another."""
    debug: bool = Field(default=False, description="Whether `generate` reports the prompt.")
    on_disconnect: Literal["abort", "continue"] | None = None
    """What happens to the answer when the connection is lost: it continues for `chat.resume_s` seconds, so that the client can
    reconnect, or is aborted. By default it continues if the request has an `id` or an `Idempotency-Key`."""
    id: Id | None = Field(default=None, description="The turn's id; generated when left out.")
    instructions: Text | None = Field(default=None, description="What the model is told first.")
    window_tokens: Tokens | None = None
    steps: tuple[StepBody, ...] = Field(default=(), strict=False)
    """Tool results that the client brings along; bulky ones are archived."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if self.conversation_id is None and (self.user_id is None or self.session_id is None):
            raise ValueError("name a conversation_id, or a user_id and a session_id")
        return self


class ResumeParams(ConversationParams):
    """Names a turn whose answer is read again."""

    id: Id = Field(description="The turn's id.")


class _Event(Answer):
    event: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.event = cls.__name__.removeprefix("Chat").lower()


class ChatTurn(_Event):
    """The user's message is on disk, and the answer begins: words that came before belong to an earlier attempt."""

    turn_id: str
    conversation_id: str


class ChatNode(_Event):
    """One stage of the work is done."""

    node: Node
    duration_ms: float
    told: dict[str, JsonValue]
    """Of `route`: kb_prefix, agent_type, use_retrieval. Of `recall`: the window (id, tokens, budget, ratio, mode, kept, degraded).
    Of `retrieve`: results, tokens. Of `generate`, with `debug`: the prompt. `degraded` names what failed on the way."""


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
    model_calls: int = Field(description="0 if the answer was read from the log.")

    @classmethod
    def of_turn(cls, turn: Turn, **asked: Any) -> Self:
        counts = {name: getattr(turn, name) for name in ("seq", "user_tokens", "assistant_tokens", "tokens")}
        return cls(turn_id=turn.id, **counts, **asked)


ChatEvent = ChatTurn | ChatNode | ChatToken | ChatArchived | ChatLoaded | ChatCheckpoint | ChatDone

# -- the events in the reference ---------------------------------------------------------------------------------------

#: The schema of every event of a stream.
STREAM_EVENT = "ChatEvent"
REFERENCE = "#/components/schemas/{model}"


def event_schemas() -> dict[str, Any]:
    """The schemas of the events by name: what a reader has when it has parsed `event`, `id` and `data`."""
    kinds: tuple[type[_Event], ...] = get_args(ChatEvent)
    _, told = models_json_schema([(kind, "serialization") for kind in kinds], ref_template=REFERENCE)
    events = {kind.event: kind.__name__ for kind in kinds} | {"error": "Problem"}
    named = {f"Chat{event.capitalize()}Event": (event, data) for event, data in events.items()}
    union = {
        "title": STREAM_EVENT,
        "description": "An event of a streamed answer.",
        "oneOf": [{"$ref": REFERENCE.format(model=name)} for name in named],
        "discriminator": {
            "propertyName": "event",
            "mapping": {event: REFERENCE.format(model=name) for name, (event, _) in named.items()},
        },
    }
    wrapped = {name: _event_schema(name, event, data) for name, (event, data) in named.items()}
    return told["$defs"] | wrapped | {STREAM_EVENT: union}


def _event_schema(name: str, event: str, data: str) -> dict[str, Any]:
    return {
        "title": name,
        "description": f"The event `{event}` of a streamed answer.",
        "type": "object",
        "properties": {
            "event": {"type": "string", "const": event},
            "id": {"type": "string", "description": "For `Last-Event-ID`."},
            "data": {"$ref": REFERENCE.format(model=data)},
        },
        "required": ["event", "id", "data"],
    }
