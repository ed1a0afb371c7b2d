"""The lines of an export, as they may come in over HTTP.

An upload is a stranger's: every line is held against its shape before any of it is written. What a line may leave out are the
fields that came later than the format.
"""

from base64 import b64decode
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from pagefile.engine.drafts import checked_labels
from pagefile.engine.transfer_lines import check_window
from pagefile.records import Outcome, Status
from pagefile.wire.texts import (
    MAX_INT,
    Answer,
    Body,
    ConversationId,
    Id,
    Moment,
    Params,
    Tenant,
    Text,
    UserId,
)

LINES = "application/x-ndjson"

Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INT)]
#: A list stays a list: the lines are only looked at.
Texts: TypeAlias = list[Text]


# -- asked -------------------------------------------------------------------------------------------------------------


class ExportParams(Params):
    """What to export: a conversation, a user, or a tenant."""

    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None


class ImportParams(Params):
    """Whose memory the upload becomes."""

    user_id: Annotated[
        Id | None,
        Field(description="Refuse the upload unless all of it is this user's.", examples=["user-456"]),
    ] = None
    tenant: Tenant = None


# -- lines -------------------------------------------------------------------------------------------------------------


class _Owned(Body):
    user_id: Id | None
    conversation_id: Id | None


class HeaderLine(Body):
    """The first line: what this is."""

    type: Literal["pagefile-export"]
    #: A literal 1 would be `true`, too.
    version: Annotated[int, Field(ge=1, le=1)]


class ConversationLine(Body):
    """The lines up to the next of its kind belong to this conversation."""

    type: Literal["conversation"]
    id: Id
    user_id: Id | None
    agent: Id | None
    project: Id | None = None
    language: Text | None = None
    timezone: Text | None = None

    @model_validator(mode="after")
    def _known_labels(self) -> Self:
        checked_labels(project=self.project, language=self.language, timezone=self.timezone)
        return self


class StepLine(Body):
    """A tool call and its result."""

    tool: Text
    input: JsonValue
    result: Text
    call_id: Text
    call_tokens: Count = 0
    result_tokens: Count = 0
    page: Id | None = None
    whole: bool = True
    page_tokens: Count = 0
    page_chars: Count = 0
    lost_chars: Count = 0


class TurnLine(_Owned):
    """A turn."""

    type: Literal["turn"]
    id: Id
    seq: Annotated[int, Field(ge=1, le=MAX_INT)] | None
    status: Status
    user: Text | None
    assistant: Text | None
    steps: list[StepLine]
    at: Moment
    created: Moment
    user_tokens: Count
    assistant_tokens: Count
    tokens: Count
    counter: Text
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    #: Its messages, where they are more than the short form; they name its steps.
    layout: list[dict[str, JsonValue]] | None = None


class MediaLine(_Owned):
    """The bytes of an image or a file of a turn, before the first turn that has it."""

    type: Literal["media"]
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    data: Annotated[str, Field(description="Base64.")]


class MissingLine(_Owned):
    """An image or a file of a turn whose bytes the memory did not have."""

    type: Literal["missing"]
    turn_id: Id
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    what: Text


class CheckpointLine(_Owned):
    """A checkpoint."""

    type: Literal["checkpoint"]
    id: Id
    seq: Annotated[int, Field(ge=1, le=MAX_INT)]
    version: Annotated[int, Field(ge=1, le=MAX_INT)]
    summary: Text
    covered_through_seq: Count
    covered_turns: Count
    created: Moment
    tokens: Count
    counter: Text
    anchors: Texts = Field(default_factory=list[Text])
    archive_refs: Texts = Field(default_factory=list[Text])


class ResetLine(_Owned):
    """A reset."""

    type: Literal["reset"]
    id: Id
    seq: Annotated[int, Field(ge=1, le=MAX_INT)]
    created: Moment


class PageLine(_Owned):
    """An archived tool result with its text."""

    type: Literal["page"]
    uuid: Annotated[Id, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    tool: Text
    input: JsonValue
    query_summary: Text
    result_summary: Text
    length: Count
    sources: Texts
    created: Moment
    tokens: Count
    counter: Text
    content_hash: Text
    call_hash: Text = ""
    thread: Id | None = None
    pinned: bool = False
    loads: Count = 0
    last_load: Moment | None = None
    purged: Moment | None = None
    stored_bytes: Count = 0
    text: Text


class SessionLine(Body):
    """The session value of the conversation it stands in."""

    type: Literal["session"]
    user_id: Id | None
    conversation_id: Id
    value: dict[str, JsonValue]


class WatermarkLine(Body):
    """How far the conversation it stands in was read for facts."""

    type: Literal["watermark"]
    user_id: Id | None
    conversation_id: Id
    tier: Literal["facts"]
    seq: Count


class CallLine(Body):
    """A window that was handed out, in its conversation."""

    type: Literal["call"]
    user_id: Id | None
    conversation_id: Id
    id: Id
    at: Moment
    turn_id: Id | None
    query: Text | None
    options: dict[str, JsonValue]
    tokens: Count
    ratio: float
    mode: Text
    prefix_hash: Text
    receipt: dict[str, JsonValue]

    @model_validator(mode="after")
    def _can_be_explained(self) -> Self:
        try:
            check_window(self.options, self.receipt)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            # What is wrong with it would tell what stands in it.
            raise ValueError("its window cannot be explained") from error
        return self


class _Fact(Body):
    conversation_id: Id | None
    id: Id
    text: Text
    category: Text | None
    confidence: Annotated[float, Field(ge=0, le=1)]
    valid_from: Moment
    valid_to: Moment | None
    recorded: Moment
    retracted: Moment | None
    source_turn: Id | None
    source_quote: Text | None
    tokens: Count
    counter: Text
    subject: Id | None = None
    attribute: Id | None = None
    supersedes: Id | None = None
    project: Id | None = None
    agent: Id | None = None
    outcome: Outcome | None = None


class FactLine(_Fact):
    """A fact about a user."""

    type: Literal["fact"]
    user_id: Id


class ChangeLine(Body):
    """A fact as it was, null for a new one, and as it became."""

    before: _Fact | None
    after: _Fact


class RevisionLine(Body):
    """A change of a user's facts."""

    type: Literal["revision"]
    user_id: Id
    number: Annotated[int, Field(ge=1, le=MAX_INT)]
    at: Moment
    action: Text
    facts: Annotated[list[ChangeLine], Field(min_length=1)]


class ItemLine(Body):
    """A value that others keep here by namespace and key, with what it is found by."""

    type: Literal["item"]
    user_id: Id | None
    namespace: Texts
    key: Text
    value: JsonValue
    created: Moment
    updated: Moment
    expires: Moment | None = None
    ttl_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    maker: Text | None = None
    dimension: Annotated[int, Field(ge=1, le=MAX_INT)] | None = None
    #: Little-endian floats of four bytes, row after row, in base 64.
    vectors: Text | None = None

    @model_validator(mode="after")
    def _whole_rows(self) -> Self:
        if self.vectors is None:
            return self
        try:
            size = len(b64decode(self.vectors, validate=True))
        except ValueError as error:
            raise ValueError("its vectors are not base 64") from error
        if self.maker is None or not self.dimension or not size or size % (4 * self.dimension):
            raise ValueError("its vectors need a maker, a dimension, and whole rows of it")
        return self


ExportLine: TypeAlias = Annotated[
    HeaderLine
    | ConversationLine
    | SessionLine
    | PageLine
    | TurnLine
    | MediaLine
    | MissingLine
    | CheckpointLine
    | ResetLine
    | CallLine
    | WatermarkLine
    | FactLine
    | RevisionLine
    | ItemLine,
    Field(discriminator="type"),
]
LINE: TypeAdapter[ExportLine] = TypeAdapter(ExportLine)


# -- answered ----------------------------------------------------------------------------------------------------------


class ImportOut(Answer):
    """What was new."""

    counts: Annotated[dict[str, int], Field(description="How many of each kind were not there before.")]
