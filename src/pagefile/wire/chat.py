"""A message for the service's model to answer, and the events that stream the answer."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from pagefile.wire.requests import CHAT, USER, ConversationBody, StepBody
from pagefile.wire.texts import MAX_COUNT, Answer, Id, Text


class AskChat(ConversationBody):
    """A user's message for the configured model to answer."""

    message: Annotated[Text, Field(min_length=1)]
    id: Annotated[Id | None, Field(description="The turn's id; made up when left out.")] = None
    agent: Annotated[Id | None, Field(description="Which agent the conversation is with.")] = None
    project: Annotated[Id | None, Field(description="What the conversation belongs to.")] = None
    language: Annotated[
        Literal["auto", "zh", "en"] | None, Field(description="The language the user reads.")
    ] = None
    timezone: Annotated[Id | None, Field(description="Where the user is, such as Asia/Shanghai.")] = None
    instructions: Annotated[Text | None, Field(description="What the model is told first.")] = None
    window_tokens: Annotated[int | None, Field(ge=1, le=MAX_COUNT)] = None
    steps: Annotated[
        tuple[StepBody, ...],
        Field(
            strict=False,
            description="Tool results that the client brings along; bulky ones are archived.",
        ),
    ] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "message": "我可以吃阿莫西林吗？",
                    "instructions": "你是药房助手。",
                }
            ]
        }
    )


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
    told: Annotated[
        dict[str, JsonValue],
        Field(description="Of `recall`: the window (id, tokens, budget, ratio, mode, kept, degraded)."),
    ]


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
    chars: Annotated[int, Field(description="Characters that the model got.")]


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
    finish: Annotated[str, Field(description='Why the model stopped; "length" when it was cut off.')]
    user_tokens: int
    assistant_tokens: int
    tokens: Annotated[int, Field(description="Of the whole turn, its steps included.")]
    window_tokens: Annotated[int, Field(description="Of the last window the model was asked with.")]
    model_calls: int


ChatEvent = ChatTurn | ChatNode | ChatToken | ChatArchived | ChatLoaded | ChatCheckpoint | ChatDone
