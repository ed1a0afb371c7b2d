"""Bodies of POST requests. Each has an example that the tests send."""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, model_validator

from pagefile.wire.texts import (
    MAX_COUNT,
    MAX_PAGE,
    SOME_UUID,
    Body,
    ConversationId,
    FactsUser,
    Id,
    LoadLimit,
    LoadOffset,
    LoadQuery,
    Moment,
    PageSize,
    Tenant,
    Text,
    UserId,
    Uuid,
)

#: Messages in a provider's format.
MoreMessages: TypeAlias = Annotated[
    list[dict[str, JsonValue]],
    Field(description="In the shape of OpenAI Chat, OpenAI Responses or Anthropic, kept as they are."),
]
#: At least one message: those that begin a turn.
Messages: TypeAlias = Annotated[MoreMessages, Field(min_length=1)]
Format: TypeAlias = Literal["openai", "responses", "anthropic", "text", "parts"]

CHAT = "诊疗/2026:7"
USER = "user-456"
#: Ids shared by the examples, so that they can be sent in sequence.
TURN, OPEN_TURN, LOST_TURN = "turn-1", "turn-2", "turn-3"


class ConversationBody(Body):
    """Names the conversation."""

    conversation_id: ConversationId
    user_id: UserId = None
    tenant: Tenant = None


class StepBody(Body):
    """A tool call and what it returned."""

    tool: Annotated[Text, Field(min_length=1, max_length=100, examples=["search"])]
    input: Annotated[JsonValue, Field(description="The tool's arguments, any JSON.")] = None
    result: Annotated[
        JsonValue, Field(description="What it returned; a bulky result is archived and leaves a placeholder.")
    ] = None
    call_id: Annotated[Id | None, Field(description="The model's id of the call; made up when left out.")] = (
        None
    )


class _NewTurn(ConversationBody):
    id: Annotated[
        Id | None, Field(description="Makes the request safe to repeat; made up when left out.")
    ] = None
    at: Annotated[
        Moment | None, Field(description="When it was said; now when left out, UTC when it names no zone.")
    ] = None
    metadata: Annotated[dict[str, JsonValue] | None, Field(description="Anything to keep with the turn.")] = (
        None
    )
    agent: Annotated[Id | None, Field(description="Which agent the conversation is with.")] = None
    project: Annotated[Id | None, Field(description="What the conversation belongs to.")] = None
    language: Annotated[
        Literal["auto", "zh", "en"] | None, Field(description="The language the user reads.")
    ] = None
    timezone: Annotated[Id | None, Field(description="Where the user is, such as Asia/Shanghai.")] = None


class RecordTurn(_NewTurn):
    """One done turn. Either side may be missing, not both; or all of it as messages."""

    user: Text | None = None
    assistant: Text | None = None
    messages: Messages | None = None
    steps: tuple[StepBody, ...] = Field(default=(), strict=False)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "id": TURN,
                    "user": "我对青霉素过敏。",
                    "assistant": "已记录：青霉素过敏。",
                    "steps": [{"tool": "note", "input": {"kind": "allergy"}, "result": "saved"}],
                    "at": "2026-01-31T09:30:00Z",
                    "metadata": {"channel": "web"},
                }
            ]
        }
    )


class BeginTurn(_NewTurn):
    """The user's message, before there is an answer."""

    user: Text | None = None
    messages: Messages | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "id": OPEN_TURN,
                    "user": "我还有高血压，需要注意什么？",
                }
            ]
        }
    )


class _OpenTurn(ConversationBody):
    turn_id: Annotated[Id, Field(description="The id that `begin` returned.")]


class AddStep(_OpenTurn, StepBody):
    """A tool call and its result, added to an open turn."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "turn_id": OPEN_TURN,
                    "tool": "guideline",
                    "input": {"topic": "hypertension"},
                    "result": "少盐；监测血压。",
                    "call_id": "call_1",
                }
            ]
        }
    )


class ExtendTurn(_OpenTurn):
    """Messages in a provider's format to add to an open turn; an empty list adds nothing."""

    messages: MoreMessages
    after: Annotated[
        int | None,
        Field(
            ge=0, le=MAX_COUNT, description="How many messages the turn had: sent twice, they are added once."
        ),
    ] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "turn_id": OPEN_TURN,
                    "messages": [
                        {
                            "role": "assistant",
                            "content": "我查一下指南。",
                            "tool_calls": [
                                {
                                    "id": "call_2",
                                    "type": "function",
                                    "function": {"name": "guideline", "arguments": '{"topic":"salt"}'},
                                }
                            ],
                        },
                        {"role": "tool", "tool_call_id": "call_2", "content": "每天少于五克。"},
                    ],
                }
            ]
        }
    )


class ForkConversation(_OpenTurn):
    """Continue from a turn in a new conversation."""

    turn_id: Annotated[Id, Field(description="The turn to go on from.")]
    id: Annotated[
        ConversationId | None, Field(description="The new conversation's; made up when left out.")
    ] = None
    before: Annotated[
        bool, Field(description="Leave the turn itself out: to ask again, or something else.")
    ] = False

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"conversation_id": CHAT, "user_id": USER, "turn_id": TURN, "before": True}]
        }
    )


class CompleteTurn(_OpenTurn):
    """Completes a turn with its answer. For a turn made of messages, the answer is among them."""

    assistant: Text | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "turn_id": OPEN_TURN,
                    "assistant": "少盐，按时服药，每天量血压。",
                }
            ]
        }
    )


class AbortTurn(_OpenTurn):
    """Aborts a turn that will get no answer: it enters no window."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"conversation_id": CHAT, "user_id": USER, "turn_id": LOST_TURN}]}
    )


class AskContext(ConversationBody):
    """The window for the next model call."""

    query: Annotated[Text | None, Field(description="The user's message, if no turn was begun with it.")] = (
        None
    )
    turn_id: Annotated[Id | None, Field(description="The open turn whose message this window is for.")] = None
    window_tokens: Annotated[int | None, Field(ge=1, le=MAX_COUNT)] = None
    window_for: Annotated[
        str | None, Field(description="The model that gets the window; its context size is the budget then.")
    ] = None
    tools: Annotated[
        tuple[dict[str, JsonValue], ...],
        Field(strict=False, description="Schemas that the request holds beside its messages, in any shape."),
    ] = ()
    answer_tokens: Annotated[
        int | None, Field(ge=0, le=MAX_COUNT, description="Room that is left free for the answer.")
    ] = None
    threshold: Annotated[float | None, Field(gt=0, le=1)] = None
    recent_turns: Annotated[int | None, Field(ge=1, le=MAX_COUNT)] = None
    load: Annotated[
        tuple[Id, ...],
        Field(strict=False, max_length=MAX_PAGE, description="Archived pages to show in this one window."),
    ] = ()
    instructions: Annotated[Text | None, Field(description="The system prompt: never cut.")] = None
    placement: Literal["tail", "head"] | None = None
    format: Annotated[
        Format, Field(description='The shape of the messages; "parts" for what they are made of.')
    ] = "openai"

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "query": "我可以吃什么止痛药？",
                    "instructions": "You are a careful medical assistant.",
                    "window_tokens": 8000,
                }
            ]
        }
    )


class AskRecall(Body):
    """Past turns that answer a query: of one conversation, or of all conversations of a user."""

    query: Text
    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None
    limit: PageSize = 10
    at: Annotated[
        Moment | None, Field(description="When it is asked, now when left out: 上周 is seen from there.")
    ] = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "青霉素过敏", "user_id": USER, "limit": 5}]}
    )

    @model_validator(mode="after")
    def _names_somebody(self) -> "AskRecall":
        if self.conversation_id is None and self.user_id is None:
            raise ValueError("say whose memory to search: give a conversation_id or a user_id")
        return self


class AskLoad(ConversationBody):
    """An archived tool result: all of it, a part, or the passages that answer a query."""

    uuid: Uuid
    query: LoadQuery = None
    offset: LoadOffset = 0
    limit: LoadLimit = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "uuid": SOME_UUID,
                    "limit": 2000,
                }
            ]
        }
    )


class MakeCheckpoint(ConversationBody):
    """Replace the older turns by a summary; without one, it is extracted from them."""

    summary: Text | None = None
    recent_turns: Annotated[int | None, Field(ge=0, le=MAX_COUNT, description="So many stay verbatim.")] = (
        None
    )

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "summary": "病人对青霉素过敏，有高血压。",
                    "recent_turns": 1,
                }
            ]
        }
    )


class ResetConversation(ConversationBody):
    """Start over: earlier turns leave the window but stay in the log and in recall."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"conversation_id": CHAT, "user_id": USER}]})


class Settle(Body):
    """Wait until background work has caught up."""

    timeout_s: Annotated[float, Field(gt=0, le=60, description="At most so long.")] = 10.0

    model_config = ConfigDict(json_schema_extra={"examples": [{"timeout_s": 5.0}]})


class RememberFact(Body):
    """A lasting statement about a user."""

    text: Annotated[Text, Field(min_length=1, max_length=10_000)]
    user_id: FactsUser
    tenant: Tenant = None
    category: Annotated[
        Id | None, Field(description='For instance "allergy"; "correction" is kept longer.')
    ] = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    source: Annotated[Id | None, Field(description="The turn it came from.")] = None
    attribute: Annotated[
        Id | None,
        Field(
            description='What it speaks of, such as "residence": it takes the place of what was held about it.'
        ),
    ] = None
    subject: Annotated[Id | None, Field(description="Whom the attribute belongs to, else the user.")] = None
    valid_from: Annotated[Moment | None, Field(description="Since when it is true, else now.")] = None
    project: Annotated[Id | None, Field(description="Where it belongs.")] = None
    agent: Annotated[Id | None, Field(description="Who learned it.")] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "对青霉素过敏", "user_id": USER, "category": "allergy", "source": TURN}]
        }
    )


class UndoFacts(Body):
    """Undo a change to what is known about a user."""

    user_id: FactsUser
    revision: Annotated[int | None, Field(ge=1, description="Which change; else the newest.")] = None
    tenant: Tenant = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": USER}]})


class ImportFacts(Body):
    """The facts and the profile of a deer-flow memory.json."""

    user_id: FactsUser
    memory: Annotated[dict[str, JsonValue], Field(description="What the file holds.")]
    tenant: Tenant = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": USER,
                    "memory": {
                        "user": {"workContext": {"summary": "后端工程师"}},
                        "facts": [
                            {
                                "content": "Prefers pytest for testing",
                                "category": "preference",
                                "confidence": 0.9,
                            }
                        ],
                    },
                }
            ]
        }
    )


class RetractFact(Body):
    """Retract a fact; it stays on record as retracted."""

    fact_id: Id
    user_id: Annotated[Id | None, Field(description="Only if it is this user's.", examples=[USER])] = None
    tenant: Tenant = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"fact_id": SOME_UUID}]})


class Forget(Body):
    """What to erase: a conversation, a user, or (with only a tenant) all of a tenant; or a single turn or page."""

    user_id: UserId = None
    conversation_id: ConversationId | None = None
    tenant: Tenant = None
    turn_id: Annotated[Id | None, Field(description="Only this turn of the conversation.")] = None
    page: Annotated[Uuid | None, Field(description="Only this archived page.")] = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": USER, "conversation_id": CHAT}]})

    @model_validator(mode="after")
    def _names_something(self) -> "Forget":
        if (self.conversation_id, self.user_id, self.tenant, self.page) == (None, None, None, None):
            raise ValueError("say what to erase: give a user_id, a conversation_id, a page or a tenant")
        return self
