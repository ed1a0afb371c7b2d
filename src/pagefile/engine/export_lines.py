"""The schema of each line of an export, for reading one from any source.

An upload is untrusted and a file may be damaged: every line is validated before any of it is written. Only
fields that were added after the first version of the format may be missing.
"""

from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from pagefile import records
from pagefile.arrays import np
from pagefile.content import JsonObject, JsonValue, Media, Message, Other, Reasoning, ToolCall, ToolResult
from pagefile.content import Text as TextPart
from pagefile.engine.arguments import checked_json, checked_labels
from pagefile.engine.snapshots import Snapshot
from pagefile.ports import KeptItem, Labels, StoredItem
from pagefile.schema import Body, Count, Id, Mirror, Moment, Text
from pagefile.tiers.base import traced_rows
from pagefile.window.candidates import candidate_from
from pagefile.window.parts import Placement
from pagefile.window.receipt import Receipt, Verdict

FORMAT = "pagefile-export"
VERSION = 1

R = TypeVar("R")


def _json(value: Any) -> Any:
    return checked_json(value, "this value")


def _decoded(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return b64decode(value, validate=True)
    except ValueError as error:
        raise ValueError("it is not base 64") from error


#: Any JSON that every store returns unchanged.
Json: TypeAlias = Annotated[Any, AfterValidator(_json)]
JsonMap: TypeAlias = Annotated[dict[str, Any], AfterValidator(_json)]
Bytes: TypeAlias = Annotated[bytes, BeforeValidator(_decoded)]
#: A number, at least 1.
Number: TypeAlias = Annotated[int, Field(ge=1, le=records.MAX_INT)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
#: `model_validate` receives lists where records have tuples.
AsList = Field(strict=False)


class Line(Mirror[R]):
    """A line, or a part of one, with the fields of a record: nothing is converted, and unknown fields are refused."""

    #: Built by the first import, not by everything that could import.
    model_config = Body.model_config | ConfigDict(defer_build=True)
    kinds: ClassVar[dict[Any, Any]] = {
        JsonObject: JsonMap,
        JsonValue: Json,
        Mapping: dict,
        str: Text,
        int: Count,
        datetime: Moment,
    }


class _Owned(Line[R]):
    user_id: Id | None
    conversation_id: Id | None


class _OfConversation(Line[R]):
    user_id: Id | None
    conversation_id: Id


class HeaderLine(Body):
    """The first line, which identifies the format."""

    #: A later version may say more about itself.
    model_config = ConfigDict(extra="ignore")

    type: Literal["pagefile-export"]
    #: `Literal[1]` would also accept `true`.
    version: Annotated[int, Field(ge=VERSION, le=VERSION)]


class ConversationLine(Body):
    """The lines up to the next of its kind belong to this conversation."""

    type: Literal["conversation"]
    id: Id
    user_id: Id | None
    agent: Id | None
    project: Id | None = None
    language: Text | None = None
    timezone: Text | None = None

    def model_post_init(self, context: Any, /) -> None:
        self.labels()

    def labels(self) -> Labels:
        return checked_labels(project=self.project, language=self.language, timezone=self.timezone)


# -- turns -------------------------------------------------------------------------------------------------------------


class StepLine(Line[records.Step]):
    page: Id | None = None


class TextLine(Line[TextPart]):
    type: Literal["text"]


class ReasoningLine(Line[Reasoning]):
    type: Literal["reasoning"]


class ToolCallLine(Line[ToolCall]):
    type: Literal["tool_call"]


class MediaPartLine(Line[Media]):
    type: Literal["media"]


class ToolResultLine(Line[ToolResult]):
    type: Literal["tool_result"]


class OtherLine(Line[Other]):
    """A part that was unknown to the Pagefile that recorded it."""

    type: Literal["other"]


PartLine: TypeAlias = Annotated[
    TextLine | ReasoningLine | ToolCallLine | MediaPartLine | ToolResultLine | OtherLine,
    Field(discriminator="type"),
]


class MessageLine(Line[Message]):
    parts: tuple[PartLine, ...]


class TurnLine(_Owned[records.Turn]):
    """A turn. Its messages, if they are more than the short form, refer to its steps."""

    type: Literal["turn"]
    id: Id
    seq: Number | None


class MediaLine(_Owned[None]):
    """The bytes of an image or a file, before the first turn that has it."""

    type: Literal["media"]
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    data: Bytes

    def model_post_init(self, context: Any, /) -> None:
        if sha256(self.data).hexdigest() != self.hash:
            raise ValueError("its bytes are not what its hash says")


class MissingLine(_Owned[None]):
    """An image or a file of a turn whose bytes were missing at export."""

    type: Literal["missing"]
    turn_id: Id
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    what: Text


class CheckpointLine(_Owned[records.Checkpoint]):
    type: Literal["checkpoint"]
    id: Id
    seq: Number
    version: Number


class ResetLine(_Owned[records.Reset]):
    type: Literal["reset"]
    id: Id
    seq: Number


# -- beside the log ----------------------------------------------------------------------------------------------------


class PageLine(_Owned[records.Page]):
    type: Literal["page"]
    uuid: Annotated[Id, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    without = frozenset({"thread"})
    #: Read under its earlier name too.
    thread_id: Id | None = Field(default=None, validation_alias="thread")
    text: Text


class SessionLine(_OfConversation[None]):
    type: Literal["session"]
    value: JsonMap

    def model_post_init(self, context: Any, /) -> None:
        # Windows are built from it.
        if not isinstance(self.value.get("user_snapshot"), dict | None):
            raise ValueError("user_snapshot must be an object")  # noqa: TRY004 - pydantic reports ValueError only


class WatermarkLine(_OfConversation[None]):
    """How far its conversation was read for facts."""

    type: Literal["watermark"]
    tier: Literal["facts"]
    seq: Count


# -- windows -----------------------------------------------------------------------------------------------------------


class VerdictLine(Line[Verdict]):
    """The decision on one candidate."""


class _Recorded(Line[R]):
    """What a call recorded; a later version may record more."""

    model_config = ConfigDict(extra="ignore")


class ReceiptLine(_Recorded[Receipt]):
    """Every candidate exactly once, kept or dropped, and why."""

    verdicts: Annotated[tuple[VerdictLine, ...], AsList]
    framing: int
    degraded: Annotated[tuple[Text, ...], AsList]


class SnapshotLine(_Recorded[Snapshot]):
    def model_post_init(self, context: Any, /) -> None:
        made = self.record()
        if max(made.reset_seq, made.covered_through_seq, made.checkpoint_seq or 0) > made.last_seq:
            raise ValueError("it was made of places behind the end of its log")
        try:
            for trace in traced_rows(made.traces.get("episodes")):
                _EPISODE.validate_python(trace)
            for uuid in traced_rows(made.traces.get("pinned")):
                _ID.validate_python(uuid)
            for chunk in traced_rows(made.traces.get("workspace")):
                candidate_from(chunk)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("what its tiers wrote down cannot be read") from error


class OptionsLine(_Recorded[None]):
    """What `context()` was asked, and the moment of its window."""

    window_tokens: Count
    threshold: Share
    recent_turns: Count
    load: Annotated[tuple[Text, ...], AsList]
    instructions: Text | None
    placement: Placement
    window_for: Text | None = None
    tools_tokens: Count = 0
    answer_tokens: Count = 0
    moment: SnapshotLine


class CallLine(_OfConversation[records.WindowRecord]):
    type: Literal["call"]
    id: Id
    turn_id: Id | None
    options: JsonMap
    receipt: JsonMap

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a call whose window could not be explained or rebuilt; the recorded JSON itself stays as it came."""
        try:
            ReceiptLine.model_validate(self.receipt)
            # A call recorded before snapshots were introduced has none.
            if self.options.get(records.SNAPSHOT_KEY) is not None:
                OptionsLine.model_validate(self.options)
        except ValidationError as error:
            fault = first_fault(error)
            raise ValueError(f"its window cannot be explained: {_described(fault['loc'], fault)}") from error


# -- of a user ---------------------------------------------------------------------------------------------------------


class FactWithin(Line[records.Fact]):
    """A fact within a change, whose line names the user."""

    conversation_id: Id | None
    id: Id
    confidence: Share
    subject: Id | None = None
    attribute: Id | None = None
    supersedes: Id | None = None
    project: Id | None = None
    agent: Id | None = None

    def of_user(self, owner: records.Scope) -> records.Fact:
        return self.record(scope=records.Scope(owner.tenant, owner.user, self.conversation_id))


class FactLine(FactWithin):
    type: Literal["fact"]
    user_id: Id


class ChangeLine(Body):
    """A fact as it was, null for a new one, and as it became."""

    before: FactWithin | None
    after: FactWithin


class RevisionLine(Line[records.Revision]):
    without = frozenset({"before", "after"})
    type: Literal["revision"]
    user_id: Id
    number: Number
    facts: Annotated[tuple[ChangeLine, ...], Field(min_length=1)]

    def of_user(self, owner: records.Scope) -> records.Revision:
        before = tuple(one.before and one.before.of_user(owner) for one in self.facts)
        after = tuple(one.after.of_user(owner) for one in self.facts)
        return self.record(scope=owner, before=before, after=after)


class ItemLine(Line[StoredItem]):
    """A value of the item store by namespace and key, with the vectors it is searched by."""

    type: Literal["item"]
    user_id: Id | None
    ttl_s: Annotated[float, Field(gt=0)] | None = None
    maker: Text | None = None
    dimension: Number | None = None
    #: Little-endian 4-byte floats, row by row, in base64.
    vectors: Bytes | None = None

    def model_post_init(self, context: Any, /) -> None:
        self.kept()

    def kept(self) -> KeptItem:
        if self.vectors is None:
            return KeptItem(self.record())
        if (
            self.maker is None
            or not self.dimension
            or not self.vectors
            or len(self.vectors) % (4 * self.dimension)
        ):
            raise ValueError("its vectors need a maker, a dimension, and whole rows of it")
        rows = np.frombuffer(self.vectors, dtype="<f4").reshape(-1, self.dimension).astype(np.float32)
        if not np.isfinite(rows).all():
            raise ValueError("its vectors hold what is not a number")
        return KeptItem(self.record(), rows, self.maker)


EntryLine: TypeAlias = TurnLine | CheckpointLine | ResetLine
#: What is stored beside the log of a conversation, on lines between its own.
BesideLine: TypeAlias = SessionLine | WatermarkLine | MediaLine
_OfUser: TypeAlias = FactLine | RevisionLine | ItemLine
ExportLine: TypeAlias = Annotated[
    HeaderLine | ConversationLine | EntryLine | BesideLine | PageLine | CallLine | MissingLine | _OfUser,
    Field(discriminator="type"),
]
LINE: TypeAdapter[ExportLine] = TypeAdapter(ExportLine, config=ConfigDict(defer_build=True))
_ID: TypeAdapter[str] = TypeAdapter(Id)
_Score = Annotated[float, Field(allow_inf_nan=False)]
#: A recalled turn: its conversation, its `seq`, its id, its score and, since there are values, its value.
_EPISODE: TypeAdapter[tuple[object, ...]] = TypeAdapter(
    Annotated[tuple[Id, Count, Id, _Score], AsList]
    | Annotated[tuple[Id, Count, Id, _Score, _Score | None], AsList],
    config=ConfigDict(strict=True),
)


def first_fault(error: ValidationError) -> ErrorDetails:
    return error.errors(include_url=False)[0]


def described(fault: ErrorDetails) -> str:
    """What is wrong with a line: the field and the kind of error, never the value, which is private."""
    if fault["type"] == "union_tag_invalid" and not fault["loc"]:
        return "it has an unknown type; upgrade Pagefile"
    if fault["loc"] == (FORMAT, "version"):
        return "the export has another version than this Pagefile reads; upgrade Pagefile"
    return _described(fault["loc"][1:], fault)


def _described(place: tuple[int | str, ...], fault: ErrorDetails) -> str:
    path = "".join(f"/{part}" for part in place)
    return f"{path[:200]} {fault['msg']}".strip()
