"""Response bodies: the records as JSON, with the conversion from and back to each record in one place.

A scope is flat in every response: `conversation_id`, `user_id`, `tenant`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar, cast, get_args

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from pagefile.content import Message, message_from, message_json
from pagefile.engine import Conversation
from pagefile.records import (
    Call,
    Checkpoint,
    Entry,
    ErasureReceipt,
    Fact,
    Head,
    Hit,
    JsonObject,
    Listing,
    Outcome,
    Reset,
    Revision,
    Scope,
    Status,
    Step,
    Turn,
)
from pagefile.records import Page as ArchivedPage
from pagefile.schema import Mirror, OfConversation, OfScope, OfUser
from pagefile.wire.texts import Answer

T = TypeVar("T")
Json: TypeAlias = dict[str, JsonValue]


class Page(Answer, Generic[T]):
    """A slice of a list."""

    items: tuple[T, ...]
    next: Annotated[str | None, Field(description="Give it as `after` to go on; null at the end.")] = None

    @classmethod
    def of(cls, found: Sequence[Any], following: str | None = None) -> Self:
        """The slice for a listing; for a plain list, `after` must be given."""
        out: Any = get_args(cls.model_fields["items"].annotation)[0]
        more = found.next if isinstance(found, Listing) else following
        return cls(items=tuple(out.of(one) for one in found), next=more)

    def record(self) -> Listing[Any]:
        return Listing([cast("Mirror[Any]", item).record() for item in self.items], self.next)


def _as_json(message: object) -> object:
    return message_json(message) if isinstance(message, Message) else message


class StepOut(Mirror[Step]):
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


class TurnOut(OfConversation[Turn]):
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
        list[Annotated[Json, BeforeValidator(_as_json)]] | None,
        Field(
            description="Its messages in their order, with references to its steps; null where the short form says all."
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        messages = None if self.layout is None else tuple(message_from(one) for one in self.layout)
        return {**super().values(), "layout": messages}


class MessagesOut(Answer):
    """The messages of a turn."""

    messages: list[Json]

    @classmethod
    def of(cls, messages: list[Json]) -> Self:
        return cls(messages=messages)

    def record(self) -> list[Json]:
        return self.messages


class ForkOut(Answer):
    """A new conversation."""

    conversation_id: str
    user_id: str | None
    tenant: str

    @classmethod
    def of(cls, made: Conversation) -> Self:
        return cls(conversation_id=made.id, user_id=made.scope.user, tenant=made.scope.tenant)


class HitOut(Mirror[Hit]):
    """A past turn that matches the query."""

    id: str
    conversation_id: str
    text: str
    score: float
    parts: Annotated[dict[str, float], Field(description="What the score is made of.")]
    at: datetime
    metadata: Json
    before: Annotated[TurnOut | None, Field(description="The turn before it.")]
    after: Annotated[TurnOut | None, Field(description="The turn after it.")]


class LoadOut(Answer):
    """An archived tool result, a part of it, or passages from it."""

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

    def record(self) -> str:
        return self.text


class CheckpointOut(OfConversation[Checkpoint]):
    """A summary of the older turns, and the last turn it covers."""

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


class ResetOut(OfConversation[Reset]):
    """The point at which the conversation started over."""

    id: str
    seq: int
    created: datetime


class LoggedTurn(TurnOut):
    """A turn in the log."""

    kind: Literal["turn"] = "turn"


class LoggedCheckpoint(CheckpointOut):
    """A checkpoint in the log."""

    kind: Literal["checkpoint"] = "checkpoint"


class LoggedReset(ResetOut):
    """A reset in the log."""

    kind: Literal["reset"] = "reset"


#: An entry in a conversation's log; `kind` says which.
EntryOut: TypeAlias = Annotated[LoggedTurn | LoggedCheckpoint | LoggedReset, Field(discriminator="kind")]


class LogPage(Page[EntryOut]):
    """A slice of a log."""

    @classmethod
    def of(cls, found: Sequence[Any], following: str | None = None) -> Self:
        more = found.next if isinstance(found, Listing) else following
        return cls(items=tuple(_entry_out(entry) for entry in found), next=more)


def _entry_out(entry: Entry) -> EntryOut:
    match entry:
        case Turn():
            return LoggedTurn.of(entry)
        case Checkpoint():
            return LoggedCheckpoint.of(entry)
        case Reset():
            return LoggedReset.of(entry)


class ConversationOut(OfConversation[Head]):
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


class SessionOut(Answer):
    """The session value an agent keeps for a conversation."""

    conversation_id: str
    user_id: str | None
    tenant: str
    value: Annotated[Json | None, Field(description="The session value; null when there is none.")]

    @classmethod
    def of(cls, scope: Scope, value: JsonObject | None) -> "SessionOut":
        return cls(
            conversation_id=_conversation(scope),
            user_id=scope.user,
            tenant=scope.tenant,
            value=None if value is None else _object(value),
        )

    def record(self) -> JsonObject | None:
        return self.value


class CallOut(OfConversation[Call]):
    """A window that was built."""

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


class FactOut(OfUser[Fact]):
    """A lasting statement about a user."""

    id: str
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


class RevisionOut(OfUser[Revision]):
    """One change to what is known about a user."""

    number: int
    at: datetime
    action: str
    before: Annotated[
        tuple[FactOut | None, ...], Field(description="The facts as they were, null for new ones.")
    ]
    after: Annotated[tuple[FactOut, ...], Field(description="The same facts as they are since.")]


class ImportedFactsOut(Answer):
    """The outcome of importing a memory file's facts."""

    stored: int
    duplicate: int
    superseded: int
    rejected: Annotated[int, Field(description="Blank, no text, or a secret.")]

    @classmethod
    def of(cls, counts: dict[str, int]) -> Self:
        return cls(**counts)

    def record(self) -> dict[str, int]:
        return self.model_dump()


#: A conversation's id and a place in its log. Described without `prefixItems`, which many generators of clients do not read.
_Place: TypeAlias = Annotated[
    tuple[str, int],
    WithJsonSchema({"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 2, "maxItems": 2}),
]


class ErasureOut(OfScope[ErasureReceipt]):
    """What an erasure removed."""

    at: datetime
    counts: Annotated[dict[str, int], Field(description="Rows removed, table by table.")]
    total: int
    pending: Annotated[
        tuple[str, ...], Field(description="What is still to be erased elsewhere, and until when.")
    ] = ()
    turn_id: Annotated[str | None, Field(description="The turn that was erased alone.")] = None
    page: Annotated[str | None, Field(description="The page that was erased alone.")] = None
    places: Annotated[
        tuple[_Place, ...],
        Field(description="The conversations it stood in, forks too, and the turn's place in each log."),
    ] = ()


class SettledOut(Answer):
    """Whether background work has caught up."""

    settled: Annotated[bool, Field(description="False when the time was over first.")]


class TokenizerOut(Answer):
    """What counts the tokens."""

    name: str
    exact: Annotated[bool, Field(description="False when the counts are estimates.")]


class HealthOut(Answer):
    """The service is running, and what it runs on: null if the store does not answer, or if a key is needed to see it."""

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
    """The service accepts requests."""

    status: Literal["ready"] = "ready"


def _conversation(scope: Scope) -> str:
    return scope.conversation or ""


def _object(value: JsonObject) -> Json:
    return cast("Json", dict(value))
