"""What the service answers: the records as JSON, each made from its record, and for clients back into it, in one place.

A scope stands flat in every answer: `conversation_id`, `user_id`, `tenant`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Generic, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import Field, JsonValue

from pagefile.content import message_from, message_json
from pagefile.records import (
    Call,
    Checkpoint,
    Entry,
    ErasureReceipt,
    Fact,
    Head,
    Hit,
    JsonObject,
    Outcome,
    Reset,
    Revision,
    Scope,
    Status,
    Step,
    Turn,
)
from pagefile.records import JsonValue as StoredJson
from pagefile.records import Page as ArchivedPage
from pagefile.wire.texts import Answer

T = TypeVar("T")
Json: TypeAlias = dict[str, JsonValue]


class Page(Answer, Generic[T]):
    """A slice of a list."""

    items: tuple[T, ...]
    next: Annotated[str | None, Field(description="Give it as `after` to go on; null at the end.")] = None


class StepOut(Answer):
    """A tool call and its result."""

    tool: str
    input: JsonValue
    result: Annotated[str, Field(description="The placeholder, when the result was archived.")]
    call_id: str
    call_tokens: int
    result_tokens: int
    page: Annotated[str | None, Field(description="The uuid to load the whole result with.")]
    whole: Annotated[
        bool, Field(description="False when `result` is only the placeholder of `page` (已存档).")
    ]
    page_tokens: Annotated[int, Field(description="Tokens of the whole result in `page`.")]
    page_chars: Annotated[int, Field(description="Characters of the whole result in `page`.")]
    lost_chars: Annotated[
        int, Field(description="Characters that are gone because the archive could not be written.")
    ]

    @classmethod
    def of(cls, step: Step) -> "StepOut":
        return cls(
            tool=step.tool,
            input=_value(step.input),
            result=step.result,
            call_id=step.call_id,
            call_tokens=step.call_tokens,
            result_tokens=step.result_tokens,
            page=step.page,
            whole=step.whole,
            page_tokens=step.page_tokens,
            page_chars=step.page_chars,
            lost_chars=step.lost_chars,
        )

    def record(self) -> Step:
        return Step(
            tool=self.tool,
            input=self.input,
            result=self.result,
            call_id=self.call_id,
            call_tokens=self.call_tokens,
            result_tokens=self.result_tokens,
            page=self.page,
            whole=self.whole,
            page_tokens=self.page_tokens,
            page_chars=self.page_chars,
            lost_chars=self.lost_chars,
        )


class _Scoped(Answer):
    conversation_id: str
    user_id: str | None
    tenant: str

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return Scope(self.tenant, self.user_id, self.conversation_id)


class TurnOut(_Scoped):
    """A turn as it is stored."""

    id: str
    seq: Annotated[int | None, Field(description="Its place in the conversation; an open turn has none yet.")]
    status: Status
    user: str | None
    assistant: str | None
    steps: tuple[StepOut, ...]
    at: Annotated[datetime, Field(description="When it was said.")]
    created: Annotated[datetime, Field(description="When it was written.")]
    user_tokens: int
    assistant_tokens: int
    tokens: Annotated[int, Field(description="Of the whole turn as it stands in a window.")]
    counter: str
    metadata: Json
    layout: Annotated[
        list[Json] | None,
        Field(
            description="Its messages in their order, with references to its steps; null where the short form says all."
        ),
    ] = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(
            conversation_id=_conversation(turn.scope),
            user_id=turn.scope.user,
            tenant=turn.scope.tenant,
            id=turn.id,
            seq=turn.seq,
            status=turn.status,
            user=turn.user,
            assistant=turn.assistant,
            steps=tuple(StepOut.of(step) for step in turn.steps),
            at=turn.at,
            created=turn.created,
            user_tokens=turn.user_tokens,
            assistant_tokens=turn.assistant_tokens,
            tokens=turn.tokens,
            counter=turn.counter,
            metadata=_object(turn.metadata),
            layout=None if turn.layout is None else [_object(message_json(one)) for one in turn.layout],
        )

    def record(self) -> Turn:
        return Turn(
            id=self.id,
            scope=self.scope,
            seq=self.seq,
            status=self.status,
            user=self.user,
            assistant=self.assistant,
            steps=tuple(step.record() for step in self.steps),
            at=self.at,
            created=self.created,
            user_tokens=self.user_tokens,
            assistant_tokens=self.assistant_tokens,
            tokens=self.tokens,
            counter=self.counter,
            metadata=self.metadata,
            layout=None if self.layout is None else tuple(message_from(one) for one in self.layout),
        )


class MessagesOut(Answer):
    """The messages of a turn."""

    messages: list[Json]


class ForkOut(_Scoped):
    """A new conversation."""


class HitOut(Answer):
    """A past turn that answers the query."""

    id: str
    conversation_id: str
    text: str
    score: float
    parts: Annotated[dict[str, float], Field(description="What the score is made of.")]
    at: datetime
    metadata: Json
    before: Annotated[TurnOut | None, Field(description="The turn before it.")]
    after: Annotated[TurnOut | None, Field(description="The turn after it.")]

    @classmethod
    def of(cls, hit: Hit) -> "HitOut":
        return cls(
            id=hit.id,
            conversation_id=hit.conversation_id,
            text=hit.text,
            score=hit.score,
            parts=dict(hit.parts),
            at=hit.at,
            metadata=_object(hit.metadata),
            before=None if hit.before is None else TurnOut.of(hit.before),
            after=None if hit.after is None else TurnOut.of(hit.after),
        )

    def record(self) -> Hit:
        return Hit(
            id=self.id,
            conversation_id=self.conversation_id,
            text=self.text,
            score=self.score,
            parts=self.parts,
            at=self.at,
            metadata=self.metadata,
            before=None if self.before is None else self.before.record(),
            after=None if self.after is None else self.after.record(),
        )


class LoadOut(Answer):
    """An archived tool result, a part of it, or passages of it."""

    uuid: str
    text: str
    query: Annotated[str | None, Field(description="What the passages answer; null for a part.")]
    offset: int
    length: Annotated[int, Field(description="Characters of the whole result.")]
    next: Annotated[
        int | None, Field(description="The offset to go on from; null at the end and for passages.")
    ]

    @classmethod
    def of(cls, page: ArchivedPage, text: str, offset: int, query: str | None) -> "LoadOut":
        end = offset + len(text)
        more = query is None and end < page.length
        return cls(
            uuid=page.uuid,
            text=text,
            query=query,
            offset=offset,
            length=page.length,
            next=end if more else None,
        )


class CheckpointOut(_Scoped):
    """A summary of the older turns, and up to which turn it stands."""

    id: str
    seq: int
    version: int
    summary: str
    covered_through_seq: int
    covered_turns: int
    created: datetime
    tokens: int
    counter: str
    anchors: tuple[str, ...]
    archive_refs: tuple[str, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        return cls(
            conversation_id=_conversation(checkpoint.scope),
            user_id=checkpoint.scope.user,
            tenant=checkpoint.scope.tenant,
            id=checkpoint.id,
            seq=checkpoint.seq,
            version=checkpoint.version,
            summary=checkpoint.summary,
            covered_through_seq=checkpoint.covered_through_seq,
            covered_turns=checkpoint.covered_turns,
            created=checkpoint.created,
            tokens=checkpoint.tokens,
            counter=checkpoint.counter,
            anchors=checkpoint.anchors,
            archive_refs=checkpoint.archive_refs,
        )

    def record(self) -> Checkpoint:
        return Checkpoint(
            id=self.id,
            scope=self.scope,
            seq=self.seq,
            version=self.version,
            summary=self.summary,
            covered_through_seq=self.covered_through_seq,
            covered_turns=self.covered_turns,
            created=self.created,
            tokens=self.tokens,
            counter=self.counter,
            anchors=self.anchors,
            archive_refs=self.archive_refs,
        )


class ResetOut(_Scoped):
    """The point from which the conversation began anew."""

    id: str
    seq: int
    created: datetime

    @classmethod
    def of(cls, reset: Reset) -> Self:
        return cls(
            conversation_id=_conversation(reset.scope),
            user_id=reset.scope.user,
            tenant=reset.scope.tenant,
            id=reset.id,
            seq=reset.seq,
            created=reset.created,
        )

    def record(self) -> Reset:
        return Reset(self.id, self.scope, self.seq, self.created)


class LoggedTurn(TurnOut):
    """A turn in the log."""

    kind: Literal["turn"] = "turn"


class LoggedCheckpoint(CheckpointOut):
    """A checkpoint in the log."""

    kind: Literal["checkpoint"] = "checkpoint"


class LoggedReset(ResetOut):
    """A reset in the log."""

    kind: Literal["reset"] = "reset"


#: What was written to a conversation; `kind` says what it is.
EntryOut: TypeAlias = Annotated[LoggedTurn | LoggedCheckpoint | LoggedReset, Field(discriminator="kind")]


class LogPage(Page[EntryOut]):
    """A slice of a log."""


def entry_out(entry: Entry) -> EntryOut:
    """An entry of the log as JSON."""
    match entry:
        case Turn():
            return LoggedTurn.of(entry)
        case Checkpoint():
            return LoggedCheckpoint.of(entry)
        case Reset():
            return LoggedReset.of(entry)


class ConversationOut(_Scoped):
    """A conversation in one row."""

    agent: str | None
    created: datetime
    updated: datetime
    last_seq: int
    reset_seq: int
    covered_through_seq: int
    turns: Annotated[int, Field(description="Done turns since the reset.")]
    live_turns: Annotated[int, Field(description="Done turns that no checkpoint covers.")]
    live_tokens: int
    project: str | None
    language: str | None
    timezone: str | None

    @classmethod
    def of(cls, head: Head) -> "ConversationOut":
        return cls(
            conversation_id=_conversation(head.scope),
            user_id=head.scope.user,
            tenant=head.scope.tenant,
            agent=head.agent,
            created=head.created,
            updated=head.updated,
            last_seq=head.last_seq,
            reset_seq=head.reset_seq,
            covered_through_seq=head.covered_through_seq,
            turns=head.turns,
            live_turns=head.live_turns,
            live_tokens=head.live_tokens,
            project=head.project,
            language=head.language,
            timezone=head.timezone,
        )

    def record(self) -> Head:
        return Head(
            scope=self.scope,
            agent=self.agent,
            created=self.created,
            updated=self.updated,
            last_seq=self.last_seq,
            reset_seq=self.reset_seq,
            covered_through_seq=self.covered_through_seq,
            turns=self.turns,
            live_turns=self.live_turns,
            live_tokens=self.live_tokens,
            project=self.project,
            language=self.language,
            timezone=self.timezone,
        )


class SessionOut(_Scoped):
    """What an agent keeps close at hand for a conversation (document 001)."""

    value: Annotated[Json | None, Field(description="The session value; null when there is none.")]

    @classmethod
    def of(cls, scope: Scope, value: JsonObject | None) -> "SessionOut":
        return cls(
            conversation_id=_conversation(scope),
            user_id=scope.user,
            tenant=scope.tenant,
            value=None if value is None else _object(value),
        )


class CallOut(_Scoped):
    """A window that was handed out."""

    id: str
    at: datetime
    turn_id: str | None
    query: str | None
    options: Json
    tokens: int
    ratio: float
    mode: str
    prefix_hash: str
    receipt: Json

    @classmethod
    def of(cls, call: Call) -> "CallOut":
        return cls(
            conversation_id=_conversation(call.scope),
            user_id=call.scope.user,
            tenant=call.scope.tenant,
            id=call.id,
            at=call.at,
            turn_id=call.turn_id,
            query=call.query,
            options=_object(call.options),
            tokens=call.tokens,
            ratio=call.ratio,
            mode=call.mode,
            prefix_hash=call.prefix_hash,
            receipt=_object(call.receipt),
        )

    def record(self) -> Call:
        return Call(
            id=self.id,
            scope=self.scope,
            at=self.at,
            turn_id=self.turn_id,
            query=self.query,
            options=self.options,
            tokens=self.tokens,
            ratio=self.ratio,
            mode=self.mode,
            prefix_hash=self.prefix_hash,
            receipt=self.receipt,
        )


class FactOut(Answer):
    """A lasting statement about a user."""

    id: str
    user_id: str | None
    tenant: str
    text: str
    category: str | None
    confidence: float
    valid_from: datetime
    valid_to: datetime | None
    recorded: datetime
    retracted: datetime | None
    source_turn: str | None
    source_quote: str | None
    tokens: int
    counter: str
    subject: str | None
    attribute: Annotated[str | None, Field(description="What it speaks of; one fact is held for each.")]
    supersedes: Annotated[str | None, Field(description="The fact whose place it took.")]
    project: str | None
    agent: str | None
    outcome: Annotated[
        Outcome | None, Field(description="What became of it when it was given: only in the answer to that.")
    ]

    @classmethod
    def of(cls, fact: Fact) -> "FactOut":
        return cls(
            id=fact.id,
            user_id=fact.scope.user,
            tenant=fact.scope.tenant,
            text=fact.text,
            category=fact.category,
            confidence=fact.confidence,
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            recorded=fact.recorded,
            retracted=fact.retracted,
            source_turn=fact.source_turn,
            source_quote=fact.source_quote,
            tokens=fact.tokens,
            counter=fact.counter,
            subject=fact.subject,
            attribute=fact.attribute,
            supersedes=fact.supersedes,
            project=fact.project,
            agent=fact.agent,
            outcome=fact.outcome,
        )

    def record(self) -> Fact:
        return Fact(
            id=self.id,
            scope=Scope(self.tenant, self.user_id),
            text=self.text,
            category=self.category,
            confidence=self.confidence,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            recorded=self.recorded,
            retracted=self.retracted,
            source_turn=self.source_turn,
            source_quote=self.source_quote,
            tokens=self.tokens,
            counter=self.counter,
            subject=self.subject,
            attribute=self.attribute,
            supersedes=self.supersedes,
            project=self.project,
            agent=self.agent,
            outcome=self.outcome,
        )


class RevisionOut(Answer):
    """One change of what is held about a user."""

    number: int
    user_id: str | None
    tenant: str
    at: datetime
    action: str
    before: Annotated[
        tuple[FactOut | None, ...], Field(description="The facts as they were, null for new ones.")
    ]
    after: Annotated[tuple[FactOut, ...], Field(description="The same facts as they are since.")]

    @classmethod
    def of(cls, revision: Revision) -> "RevisionOut":
        return cls(
            number=revision.number,
            user_id=revision.scope.user,
            tenant=revision.scope.tenant,
            at=revision.at,
            action=revision.action,
            before=tuple(None if fact is None else FactOut.of(fact) for fact in revision.before),
            after=tuple(FactOut.of(fact) for fact in revision.after),
        )

    def record(self) -> Revision:
        return Revision(
            number=self.number,
            scope=Scope(self.tenant, self.user_id),
            at=self.at,
            action=self.action,
            before=tuple(None if fact is None else fact.record() for fact in self.before),
            after=tuple(fact.record() for fact in self.after),
        )


class ImportedFactsOut(Answer):
    """What became of the facts of a memory file."""

    stored: int
    duplicate: int
    superseded: int
    rejected: Annotated[int, Field(description="Blank, no text, or a secret.")]


class ErasureOut(Answer):
    """What an erasure removed."""

    conversation_id: str | None
    user_id: str | None
    tenant: str
    at: datetime
    counts: Annotated[dict[str, int], Field(description="Rows removed, table by table.")]
    total: int
    pending: Annotated[
        tuple[str, ...], Field(description="What is still to be erased elsewhere, and until when.")
    ] = ()
    turn_id: Annotated[str | None, Field(description="The turn that was erased alone.")] = None
    page: Annotated[str | None, Field(description="The page that was erased alone.")] = None
    places: Annotated[
        tuple[tuple[str, int], ...],
        Field(description="The conversations it stood in, forks too, and the turn's place in each log."),
    ] = ()

    @classmethod
    def of(cls, receipt: ErasureReceipt) -> "ErasureOut":
        return cls(
            conversation_id=receipt.scope.conversation,
            user_id=receipt.scope.user,
            tenant=receipt.scope.tenant,
            at=receipt.at,
            counts=dict(receipt.counts),
            total=receipt.total,
            pending=receipt.pending,
            turn_id=receipt.turn_id,
            page=receipt.page,
            places=receipt.places,
        )

    def record(self) -> ErasureReceipt:
        scope = Scope(self.tenant, self.user_id, self.conversation_id)
        part = self.turn_id, self.page, self.places
        return ErasureReceipt(scope, self.at, self.counts, self.pending, *part)


class SettledOut(Answer):
    """Whether background work has caught up."""

    settled: Annotated[bool, Field(description="False when the time was over first.")]


class TokenizerOut(Answer):
    """What counts the tokens."""

    name: str
    exact: Annotated[bool, Field(description="False when the counts are estimates.")]


class HealthOut(Answer):
    """The service lives, and what it runs on: null where the store does not answer, or a key is needed to be told."""

    status: Literal["ok"] = "ok"
    version: str
    store: Json | None = None
    tokenizer: TokenizerOut | None = None
    window_tokens: Annotated[
        int | None, Field(description="Tokens of a window, unless it is asked for otherwise.")
    ] = None
    model: Annotated[str | None, Field(description="The chat model of the settings.")] = None
    tier_failures: Annotated[
        dict[str, int] | None, Field(description="How often each tier failed since the start.")
    ] = None
    calls_dropped: int | None = None
    erasures_owed: Annotated[
        dict[str, int] | None,
        Field(
            description="Places outside the database that could not be reached when something was erased, and how many scopes they "
            "have still to erase."
        ),
    ] = None


class ReadyOut(Answer):
    """The service takes requests."""

    status: Literal["ready"] = "ready"


def page_of(items: Sequence[T], following: str | None = None) -> "Page[T]":
    """The wire form of a listing."""
    return Page(items=tuple(items), next=following)


def _conversation(scope: Scope) -> str:
    return scope.conversation or ""


def _value(value: StoredJson) -> JsonValue:
    return cast("JsonValue", value)


def _object(value: JsonObject) -> Json:
    return cast("Json", dict(value))
