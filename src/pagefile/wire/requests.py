"""What requests contain: bodies of POST requests, and query strings of GET requests."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from pagefile import schema
from pagefile.engine.log_queries import Kind
from pagefile.records import MAX_INT
from pagefile.schema import Id, Moment, Params, Text, moment_from, visible
from pagefile.wire.messages import ProviderMessages, ShownAs

#: More tokens or turns than any model accepts.
MAX_COUNT = 2**31 - 1
MAX_PAGE = 1000
#: A placeholder for a page's uuid in examples.
SOME_UUID = "00000000-0000-4000-8000-000000000000"
CHAT = "诊疗/2026:7"
USER = "user-456"
#: A turn that the examples record.
TURN = "turn-1"


def _cursor(value: str) -> str:
    _, last = behind(value)
    visible(last)
    return value


def cursor_of(moment: datetime, last: str) -> str:
    """The cursor to continue a list after a record."""
    return f"{moment.isoformat()} {last}"


def behind(cursor: str) -> tuple[datetime, str]:
    """Parses a cursor made by `cursor_of`."""
    moment, _, last = cursor.partition(" ")
    return moment_from(moment), last


AFTER = Field(description="The `next` of the page before.")
#: A place in a log, or a number of a revision.
Place: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INT)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=MAX_COUNT)]
#: Where a list of facts continues: the recorded time and id of the last one shown.
Cursor: TypeAlias = Annotated[Text, Field(min_length=1, max_length=300), AfterValidator(_cursor)]
PageSize: TypeAlias = Annotated[int, Field(ge=1, le=MAX_PAGE)]
Limit: TypeAlias = Annotated[PageSize, Field(description="The largest number of items.")]

ConversationId: TypeAlias = Annotated[
    Id, Field(description="Any text of up to 255 characters.", examples=[CHAT])
]
UserId: TypeAlias = Annotated[
    Id | None,
    Field(description="The user the conversation belongs to; facts and recall need one.", examples=[USER]),
]
FactsUser: TypeAlias = Annotated[
    Id, Field(description="About whom; a user's key fills it in.", examples=[USER])
]
Tenant: TypeAlias = Annotated[
    Id | None, Field(description='The tenant; "default" when left out.', examples=["clinic-1"])
]
Uuid: TypeAlias = Annotated[Id, Field(description="As written in the placeholder.", examples=[SOME_UUID])]
CallId: TypeAlias = Annotated[
    Id, Field(description="The `id` of a window, as `GET /v1/calls` lists it.", examples=[SOME_UUID])
]


@cache
def examples() -> Mapping[str, JsonValue]:
    """By the name of the schema."""
    return json.loads(files("pagefile.wire").joinpath("examples.json").read_text(encoding="utf-8"))


def with_example(shape: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the example to a schema. The tests send those of all requests."""
    if model.__name__ in examples():
        shape["examples"] = [examples()[model.__name__]]


class Body(schema.Body):
    """A request body with an example in the API reference."""

    model_config = ConfigDict(json_schema_extra=with_example)


# -- fields that several requests share --------------------------------------------------------------------------------


class Whose(BaseModel):
    """A user, or a whole tenant."""

    user_id: UserId = None
    tenant: Tenant = None


class Anywhere(Whose):
    """A conversation, a user, or a whole tenant."""

    conversation_id: ConversationId | None = None


class Here(Whose):
    """A conversation."""

    conversation_id: ConversationId


class AboutUser(BaseModel):
    """The user that facts are about."""

    user_id: FactsUser
    tenant: Tenant = None


class LabelFields(BaseModel, use_attribute_docstrings=True):
    """What to note about a conversation."""

    agent: Id | None = Field(default=None, description="Which agent the conversation is with.")
    project: Id | None = Field(default=None, description="What the conversation belongs to.")
    language: Literal["auto", "zh", "en"] | None = None
    """The language the user reads: windows use it from then on. "auto" is that of the first messages."""
    timezone: Id | None = Field(default=None, description="Where the user is, such as Asia/Shanghai.")


class ToolInput(BaseModel):
    """A tool call."""

    tool: Text = Field(min_length=1, max_length=100, examples=["search"])
    input: JsonValue = Field(default=None, description="The tool's arguments, any JSON.")


class Loading(BaseModel, use_attribute_docstrings=True):
    """What to read of an archived tool result."""

    uuid: Uuid
    query: Text | None = None
    """Only the passages that answer this, each with its offset."""
    offset: Place = Field(
        default=0, description="The first character to return; with a query, where to begin seeking."
    )
    limit: int | None = Field(default=None, ge=1, le=MAX_INT)
    """The largest number of characters."""


class Slice(BaseModel):
    """A slice of a list that is ordered by numbers."""

    after: Annotated[Place, AFTER] = 0
    limit: Limit = 100


class SliceById(BaseModel):
    """A slice of a list that is ordered by ids."""

    after: Annotated[Id | None, AFTER] = None
    limit: Limit = 100


#: Older than any archive, and still within every calendar's range.
MAX_AGE_S = 10**10

#: Messages in a provider's format.
MoreMessages: TypeAlias = Annotated[
    list[dict[str, JsonValue]],
    ShownAs(ProviderMessages),
    Field(description="In the shape of OpenAI Chat, OpenAI Responses or Anthropic, kept as they are."),
]
#: At least one message: those that begin a turn.
Messages: TypeAlias = Annotated[MoreMessages, Field(min_length=1)]
Format: TypeAlias = Literal["openai", "responses", "anthropic", "text", "parts"]


class ConversationBody(Here, Body):
    """Names the conversation."""


class ConversationParams(Here, Params):
    """Names the conversation."""


# -- turns ---------------------------------------------------------------------------------------------------------------


class StepBody(ToolInput, Body):
    """A tool call and what it returned."""

    result: JsonValue = None
    """What it returned; a bulky result is archived and leaves a placeholder."""
    call_id: Id | None = None
    """The model's id of the call; generated when left out."""


class _NewTurn(LabelFields, ConversationBody):
    id: Id | None = None
    """Makes the request safe to repeat; generated when left out."""
    at: Moment | None = None
    """When it was said; now when left out, UTC when it names no zone."""
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Anything to keep with the turn.")
    user: Text | None = None
    messages: Messages | None = None


class RecordTurn(_NewTurn):
    """One done turn. Either side may be missing, not both; or all of it as messages."""

    assistant: Text | None = None
    steps: tuple[StepBody, ...] = Field(default=(), strict=False)


class BeginTurn(_NewTurn):
    """The user's message, before there is an answer."""


class _OpenTurn(ConversationBody):
    turn_id: Id = Field(description="The id that `begin` returned.")


class AddStep(_OpenTurn, StepBody):
    """A tool call and its result, added to an open turn."""


class ExtendTurn(_OpenTurn):
    """Messages in a provider's format to add to an open turn; an empty list adds nothing."""

    messages: MoreMessages
    after: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    """How many messages the turn had: sent twice, they are added once."""


class CompleteTurn(_OpenTurn):
    """Completes a turn with its answer. For a turn made of messages, the answer is among them."""

    assistant: Text | None = None


class AbortTurn(_OpenTurn):
    """Aborts a turn that will get no answer: it enters no window."""


class TurnsParams(Slice, ConversationParams):
    """A slice of a conversation."""

    newest: bool = Field(default=False, description="The last turns instead of the first.")


class MessagesParams(ConversationParams):
    """The messages of a turn."""

    turn_id: Id = Field(description="The turn.", examples=[TURN])
    shape: Literal["openai", "responses", "anthropic"] | None = None
    """The shape to give them in; the one they came in when left out."""


class DoneTurnsParams(Anywhere, Params):
    """Done turns of a conversation, of a user, or of a tenant."""

    after: Annotated[Text | None, Field(min_length=1, max_length=300), AFTER] = None
    limit: Limit = 100


# -- conversations -------------------------------------------------------------------------------------------------------


class ForkConversation(ConversationBody):
    """Continue from a turn in a new conversation."""

    turn_id: Id = Field(description="The turn to continue from.")
    id: ConversationId | None = None
    """The new conversation's; generated when left out."""
    before: bool = False
    """Leave the turn itself out: to ask again, or something else."""


class MakeCheckpoint(ConversationBody):
    """Replace the older turns by a summary; without one, it is extracted from them."""

    summary: Text | None = None
    recent_turns: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    """How many turns stay verbatim."""
    read_token: Text | None = None
    """That of the history which was summarized (`GET /v1/history`): no turn is covered that is not in it, and a summary older than the
    one in force is a conflict (409). Needs a summary; 0 turns are then the default, 8."""

    @model_validator(mode="after")
    def _has_summary(self) -> Self:
        if self.read_token is not None and not self.summary:
            raise ValueError("read_token says what a summary is of: give the summary, too")
        return self


class ResetConversation(ConversationBody):
    """Start over: earlier turns leave the window but stay in the log and in recall."""


class PutSession(ConversationBody):
    """What to set in the session value of a conversation; what is left out stays."""

    value: dict[str, JsonValue]
    """`user_snapshot` (`name`, `allergies`, `history`, `surgery_history`, `preferences`) and `global_state` (`shared`, `agent_slots`,
    `current_intent`, `pending_action`). What comes from the log (`meta`, `flow_context`, `message_context`) may be sent
    back, and is not taken over."""


class ConversationsParams(SliceById, Whose, Params):
    """Conversations of a tenant, or of one of its users."""


class AuditParams(Params):
    """Which entries of a tenant's audit log."""

    tenant: Tenant = None
    of_user: str | None = Field(default=None, max_length=512, description="Only what concerned this user.")
    by_key: str | None = Field(default=None, max_length=512, description="Only what this key was used for.")
    limit: int = Field(default=100, ge=1, le=1000)


class LogParams(Slice, ConversationParams):
    """A slice of a conversation's log."""

    kind: Kind | None = Field(default=None, description="Only these; all when left out.")
    newest: bool = Field(default=False, description="The last entries instead of the first.")


class HistoryParams(ConversationParams):
    """Which history, and what it has to fit into."""

    query: Text = ""
    """The user's message: its tokens count."""
    window_tokens: Tokens | None = Field(default=None, description="The model's context, 16,000 by default.")
    threshold: float | None = Field(default=None, gt=0, le=1)
    """The share of the window from which a summary is due, 0.75 by default."""
    recent_turns: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    """How many of the newest turns to show, also if the summary covers them; by default those that it does not cover."""


class MarksParams(Slice, ConversationParams):
    """Checkpoints or resets of a conversation."""


# -- windows and recorded calls ------------------------------------------------------------------------------------------


class AskContext(ConversationBody):
    """The window for the next model call."""

    query: Text | None = Field(default=None, description="The user's message, if no turn was begun with it.")
    turn_id: Id | None = Field(default=None, description="The open turn whose message this window is for.")
    window_tokens: Tokens | None = None
    window_for: str | None = None
    """The model that gets the window; its context size is the budget then."""
    tools: tuple[dict[str, JsonValue], ...] = Field(default=(), strict=False)
    """Schemas that the request contains besides its messages, in any shape."""
    answer_tokens: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    """Room that is left free for the answer."""
    threshold: float | None = Field(default=None, gt=0, le=1)
    recent_turns: Tokens | None = None
    load: tuple[Id, ...] = Field(default=(), strict=False, max_length=MAX_PAGE)
    """Archived pages to show in this one window."""
    instructions: Text | None = Field(default=None, description="The system prompt: never cut.")
    placement: Literal["tail", "head"] | None = None
    language: Literal["auto", "zh", "en"] | None = None
    """The language of what is written around the conversation; by default what is set for it, or its own."""
    timezone: Id | None = None
    """Where the user is, such as Asia/Shanghai; by default what is set for the conversation."""
    format: Format = "openai"
    """The shape of the messages; "parts" for what they are made of."""


class AskRecall(Anywhere, Body):
    """Past turns that answer a query: of one conversation, or of all conversations of a user."""

    query: Text
    limit: PageSize = 10
    at: Moment | None = None
    """When it is asked, now when left out: 上周 is seen from there."""

    @model_validator(mode="after")
    def _names_somebody(self) -> Self:
        if self.conversation_id is None and self.user_id is None:
            raise ValueError("say whose memory to search: give a conversation_id or a user_id")
        return self


class CallsParams(SliceById, ConversationParams):
    """The latest recorded windows."""

    limit: Limit = 50


class CallParams(Whose, Params):
    """A recorded call, in any conversation."""

    call_id: CallId


class ExplainParams(ConversationParams):
    """A recorded call of a conversation."""

    call_id: CallId


class CostsParams(ConversationParams):
    """The newest calls of a conversation."""

    limit: Limit = 50


class AskReplay(ConversationBody):
    """A recorded call, and what to change about it."""

    call_id: CallId
    changes: dict[Text, JsonValue] = Field(
        default_factory=dict[str, JsonValue],
        description="By name: arguments of `POST /v1/context` (`window_tokens`), and settings that decide what is in a "
        "window (`archive.threshold`). With none, the window is compared with itself.",
    )


# -- the archive ---------------------------------------------------------------------------------------------------------


class AskLoad(Loading, ConversationBody):
    """An archived tool result: all of it, a part, or the passages that answer a query."""


class LoadParams(Loading, ConversationParams):
    """An archived tool result: all of it, a part, or the passages that answer a query."""


class PeekParams(Loading, Whose, Params):
    """The text of an archived tool result of a user, or of a tenant: whole, a part of it, or the passages that answer a query."""


class ToolsParams(Params, use_attribute_docstrings=True):
    """The tools of the archive."""

    language: Literal["zh", "en"] | None = None
    """The language of their descriptions, such as `memory.language` of a window; by default the setting, or English."""
    shape: Literal["plain", "openai", "responses", "anthropic", "mcp"] = "plain"
    """The API that takes them."""


class PagesParams(SliceById, Anywhere, Params):
    """Archived tool results: of a conversation, of a user, or of a tenant."""


class PageParams(Anywhere, Params):
    """One archived tool result: of a conversation, of a user, or of a tenant."""

    uuid: Uuid


class SearchPages(Anywhere, Body):
    """A search of archived tool results: in all of a user's conversations, or in one conversation without a user."""

    query: Text
    limit: PageSize = 5
    here: bool = Field(default=False, description="Only this conversation, even if a user is named.")

    @model_validator(mode="after")
    def _names_somebody(self) -> Self:
        if self.conversation_id is None and "user_id" not in self.model_fields_set:
            raise ValueError(
                "say whose pages to search: give a conversation_id or a user_id, which is null for the whole tenant"
            )
        if self.conversation_id is None and self.here:
            raise ValueError("say where to search: here needs a conversation_id")
        return self


class FindFetched(ToolInput, ConversationBody):
    """A tool call about to be made, which an equal recent call may already answer."""


class PinPage(ConversationBody):
    """Keeps a page in every window of its conversation and exempt from purging."""

    uuid: Uuid
    pinned: bool = Field(default=True, description="False takes the pin out.")


class PurgePages(Anywhere, Body):
    """Whose pages to purge, and which: a page that meets any condition is purged, unless it is pinned."""

    uuids: tuple[Id, ...] | None = Field(default=None, strict=False, max_length=MAX_PAGE)
    older_than_s: float | None = Field(default=None, ge=0, le=MAX_AGE_S)
    """Older than this, in seconds."""
    max_bytes: int | None = Field(default=None, ge=0, le=MAX_INT)
    """The oldest, until the rest takes no more on disk."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.uuids is None and self.older_than_s is None and self.max_bytes is None:
            raise ValueError("say which pages to purge: give uuids, older_than_s or max_bytes")
        return self


class CallTool(ConversationBody):
    """A model's call of one of the tools of `GET /v1/tools`."""

    name: Text = Field(max_length=255, description="As the model wrote it.")
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """As the model wrote them."""
    turn_id: Id | None = None
    """The open turn of the call: what it loaded already counts against the window."""


class AgentHook(ConversationBody):
    """The input of a coding agent's hook; the conversation is the agent's session."""

    agent: Literal["claude", "codex", "opencode"] = "claude"
    project: Text = Field(min_length=1, description="The folder of the project, whose memory it is.")
    input: dict[str, JsonValue]


# -- facts ---------------------------------------------------------------------------------------------------------------


class RememberFact(AboutUser, Body):
    """A lasting statement about a user."""

    text: Text = Field(min_length=1, max_length=10_000)
    category: Id | None = None
    """For instance "allergy"; "correction" is kept longer."""
    confidence: float = Field(default=1.0, ge=0, le=1)
    source: Id | None = Field(default=None, description="The turn it came from.")
    attribute: Id | None = None
    """What it is about, such as "residence": it replaces the fact with the same one."""
    subject: Id | None = None
    """Who or what the attribute belongs to; by default the user."""
    valid_from: Moment | None = Field(default=None, description="Since when it is true, else now.")
    project: Id | None = Field(default=None, description="Only conversations of this project are shown it.")
    agent: Id | None = Field(default=None, description="Only conversations of this agent are shown it.")


class RetractFact(Body):
    """Retract a fact; it stays on record as retracted."""

    fact_id: Id
    user_id: Id | None = Field(default=None, description="Only if it is this user's.", examples=[USER])
    tenant: Tenant = None


class CorrectFact(RetractFact):
    """Replace what a fact says; the wrong statement stays on record as retracted."""

    text: Text = Field(min_length=1, max_length=10_000, description="What is right.")


class UndoFacts(AboutUser, Body):
    """Undo a change to what is known about a user."""

    revision: int | None = Field(default=None, ge=1, description="Which change; else the newest.")


class ImportFacts(AboutUser, Body):
    """The facts and the profile of a deer-flow memory.json."""

    memory: dict[str, JsonValue] = Field(description="What the file holds.")


class FactsParams(AboutUser, Params):
    """Facts about a user."""

    as_of: datetime | None = Field(default=None, description="What was held at this time.")
    history: bool = Field(default=False, description="Superseded and retracted ones too.")
    after: Annotated[Cursor | None, AFTER] = None
    limit: Limit = 100


class FactRevisionsParams(AboutUser, Params):
    """Changes to what is known about a user."""

    after: Place = Field(default=0, description="Only changes behind this revision.")
    limit: Limit = 100


# -- the whole memory ----------------------------------------------------------------------------------------------------


class Settle(Body):
    """Wait until background work has caught up."""

    timeout_s: float = Field(default=10.0, gt=0, le=60, description="How long to wait at most.")


class Forget(Anywhere, Body):
    """What to erase: a conversation, a user, or (with only a tenant) all of a tenant; or a single turn or page."""

    turn_id: Id | None = Field(default=None, description="Only this turn of the conversation.")
    page: Uuid | None = Field(default=None, description="Only this archived page.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if (self.conversation_id, self.user_id, self.tenant, self.page) == (None, None, None, None):
            raise ValueError("say what to erase: give a user_id, a conversation_id, a page or a tenant")
        return self


class ExportParams(Anywhere, Params):
    """What to export: a conversation, a user, or a tenant."""


class ImportParams(Params):
    """Whose memory the upload becomes."""

    user_id: Id | None = Field(default=None, examples=[USER])
    """Refuse the upload unless all of it is this user's."""
    tenant: Tenant = None
