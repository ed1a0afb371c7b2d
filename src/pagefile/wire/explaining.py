"""Recorded calls as JSON: what a model saw and why, what it would have seen, and what that cost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import ConfigDict, Field, JsonValue

from pagefile.engine.explaining import Cost, Explanation
from pagefile.engine.replaying import Replay
from pagefile.schema import Mirror
from pagefile.window.candidates import Block
from pagefile.window.comparing import BlockBill, BlockChange, CandidateChange, Change, Comparison, DiffLine
from pagefile.wire.queries import PAGE, ConversationParams
from pagefile.wire.requests import CHAT, USER, ConversationBody
from pagefile.wire.responses import CallOut
from pagefile.wire.texts import SOME_UUID, Answer, Id, PageSize, Params, Tenant, Text, UserId
from pagefile.wire.windows import ReceiptOut, VerdictOut, WindowOut

CallId: TypeAlias = Annotated[
    Id, Field(description="The `id` of a window, as `GET /v1/calls` lists it.", examples=[SOME_UUID])
]
WITHOUT = "Every turn and every tool result in full, as an agent without Pagefile would send them; null when not known."
WHY = "What is different, when not exact."


# -- requests --------------------------------------------------------------------------------------------------------


class CallParams(Params):
    """A recorded call, in any conversation."""

    call_id: CallId
    user_id: UserId = None
    tenant: Tenant = None


class ExplainParams(ConversationParams):
    """A recorded call of a conversation."""

    call_id: CallId


class CostsParams(ConversationParams):
    """The newest calls of a conversation."""

    limit: Annotated[PageSize, Field(description=PAGE)] = 50


class AskReplay(ConversationBody):
    """A recorded call, and what to change about it."""

    call_id: CallId
    changes: Annotated[
        dict[Text, JsonValue],
        Field(
            description="By name: arguments of `POST /v1/context` (`window_tokens`), and settings that decide what stands in a "
            "window (`archive.threshold`). With none, the window is compared with itself."
        ),
    ] = Field(default_factory=dict[str, JsonValue])

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "call_id": SOME_UUID,
                    "changes": {"window_tokens": 100, "recall": "never"},
                }
            ]
        }
    )


# -- a call explained ------------------------------------------------------------------------------------------------


class BlockBillOut(Mirror[BlockBill]):
    """What one block of a window costs, and how many of its candidates are in it."""

    block: Block
    tokens: int
    kept: int
    dropped: int


class ExplanationOut(Answer):
    """One recorded call: the bill, the verdicts, and the messages as they were sent."""

    call: CallOut
    receipt: ReceiptOut
    blocks: Annotated[
        tuple[BlockBillOut, ...],
        Field(
            description="The context bill in order of priority; with the receipt's framing it adds up to the call's tokens."
        ),
    ]
    window: Annotated[
        WindowOut | None,
        Field(
            description="The window made again, messages included; null when the call does not say from what."
        ),
    ]
    exact: Annotated[bool, Field(description="Whether that is what was handed out, byte for byte.")]
    why: Annotated[tuple[str, ...], Field(description=WHY)]
    previous: Annotated[str | None, Field(description="The call before this one.")]
    shared_messages: Annotated[
        int, Field(description="With how many of the same messages that one's prompt begins.")
    ]
    shared_tokens: Annotated[int, Field(description="And how many tokens those are.")]
    tokens_without: Annotated[int | None, Field(description=WITHOUT)]
    saved: Annotated[
        int | None, Field(description="Tokens that were left out: `tokens_without` less `tokens`.")
    ]

    @classmethod
    def of(cls, found: Explanation) -> "ExplanationOut":
        return cls(
            call=CallOut.of(found.call),
            receipt=ReceiptOut.of(found.receipt),
            blocks=_bills(found.blocks),
            window=None if found.window is None else WindowOut.of(found.window, "openai", parts=True),
            exact=found.exact,
            why=found.why,
            previous=found.previous,
            shared_messages=found.shared_messages,
            shared_tokens=found.shared_tokens,
            tokens_without=found.tokens_without,
            saved=found.saved,
        )

    def record(self) -> Explanation:
        return Explanation(
            call=self.call.record(),
            receipt=self.receipt.record(),
            blocks=tuple(bill.record() for bill in self.blocks),
            window=None if self.window is None else self.window.record(),
            exact=self.exact,
            why=self.why,
            previous=self.previous,
            shared_messages=self.shared_messages,
            shared_tokens=self.shared_tokens,
            tokens_without=self.tokens_without,
        )


class CostOut(Mirror[Cost]):
    """What one call cost, and what it would have cost without Pagefile."""

    call_id: str
    at: datetime
    seq: Annotated[
        int | None, Field(description="The last entry of the log at the time; null when not known.")
    ]
    tokens: int
    budget: int
    tokens_without: Annotated[int | None, Field(description=WITHOUT)]
    blocks: tuple[BlockBillOut, ...]


# -- a call replayed -------------------------------------------------------------------------------------------------


class BlockChangeOut(Mirror[BlockChange]):
    """The tokens of one block in both windows."""

    block: Block | Literal["framing"]
    before: int
    after: int
    difference: int


class CandidateChangeOut(Mirror[CandidateChange]):
    """A candidate in both windows; null where it was not offered."""

    id: str
    change: Annotated[
        Change,
        Field(description='"form": shown fuller or shorter; "block": the same text, counted elsewhere.'),
    ]
    before: VerdictOut | None
    after: VerdictOut | None
    difference: Annotated[int, Field(description="Tokens that the change costs.")]


class DiffLineOut(Mirror[DiffLine]):
    """A line of the text diff."""

    sign: Annotated[
        Literal["=", "-", "+", "…"],
        Field(description='In both, only before, only after; with "…" the text says how many were left out.'),
    ]
    text: str


class ComparisonOut(Mirror[Comparison]):
    """How two windows differ. The differences by block add up to the difference in tokens."""

    tokens_before: int
    tokens_after: int
    difference: int
    same: Annotated[bool, Field(description="Whether both say the same, byte for byte.")]
    blocks: tuple[BlockChangeOut, ...]
    candidates: Annotated[
        tuple[CandidateChangeOut, ...],
        Field(description="Every candidate of either window, those that changed first."),
    ]
    diff: tuple[DiffLineOut, ...]


class ReplayOut(Answer):
    """A recorded window beside its replay, with the differences."""

    call: CallOut
    changes: Annotated[dict[str, JsonValue], Field(description="What was changed, by dotted name.")]
    before: Annotated[WindowOut, Field(description="The window as it was, made again.")]
    after: Annotated[WindowOut, Field(description="What it would have been; it was never handed out.")]
    exact: Annotated[bool, Field(description="Whether `before` is what was handed out, byte for byte.")]
    why: Annotated[tuple[str, ...], Field(description=WHY)]
    comparison: ComparisonOut

    @classmethod
    def of(cls, replay: Replay) -> "ReplayOut":
        return cls(
            call=CallOut.of(replay.call),
            changes=cast("dict[str, JsonValue]", replay.changes),
            before=WindowOut.of(replay.before, "openai", parts=True),
            after=WindowOut.of(replay.after, "openai", parts=True),
            exact=replay.exact,
            why=replay.why,
            comparison=ComparisonOut.of(replay.comparison),
        )

    def record(self) -> Replay:
        return Replay(
            call=self.call.record(),
            changes=self.changes,
            before=self.before.record(),
            after=self.after.record(),
            exact=self.exact,
            why=self.why,
            comparison=self.comparison.record(),
        )


def _bills(blocks: Sequence[BlockBill]) -> tuple[BlockBillOut, ...]:
    return tuple(BlockBillOut.of(bill) for bill in blocks)
