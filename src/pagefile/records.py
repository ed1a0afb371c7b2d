"""The nouns of Pagefile: frozen records that every room understands.

A record checks itself at birth, so that no other room has to ask whether a time is aware or a text
can be stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Literal, TypeAlias, TypeVar, overload

from pagefile.content import JsonObject, JsonValue, Message, Text, ToolCall, ToolResult
from pagefile.errors import InvalidTurnError

Status = Literal["open", "done", "aborted"]
#: What became of a fact: new; said before, so now surer; or new in the place of one it contradicts.
Outcome = Literal["stored", "duplicate", "superseded"]

DEFAULT_TENANT = "default"
MAX_ID_CHARS = 255
#: The largest whole number that every database and every JSON reader keeps exactly.
MAX_INT = 2**53 - 1
#: The `query` of a checkpoint's row in `ai_message`, as document 001 has it.
CHECKPOINT_QUERY = "[MEMORY_CHECKPOINT]"
#: The `query` of a reset's row.
RESET_QUERY = "[MEMORY_RESET]"

#: What stands where something was erased alone: the `query` of a turn's row, or the result of a tool.
ERASED = "[MEMORY_ERASED]"

#: Both times of a conversation that nobody wrote to.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_NOTHING: JsonObject = {}


def utc(moment: datetime) -> datetime:
    """The same moment in UTC; a time without a zone is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def checked_id(value: object, name: str) -> str:
    """An id that every store can hold, or an error that says what is wrong with it."""
    if not isinstance(value, str):
        raise InvalidTurnError(f"{name} must be text, not {type(value).__name__}: pass str(…).")
    if not value.strip():
        raise InvalidTurnError(f"{name} is empty: give it at least one visible character.")
    if len(value) > MAX_ID_CHARS:
        raise InvalidTurnError(f"{name} has {len(value)} characters, at most {MAX_ID_CHARS} are allowed.")
    return checked_text(value, name)


def checked_text(value: object, name: str) -> str:
    """Text that every store can hold, byte for byte, or an error that says where it breaks."""
    if not isinstance(value, str):
        raise InvalidTurnError(f"{name} must be text, not {type(value).__name__}.")
    nul = value.find("\0")
    if nul >= 0:
        raise InvalidTurnError(
            f"{name} has a NUL character at position {nul}, which databases cannot store: "
            "remove it, for instance with .replace('\\0', '')."
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidTurnError(
            f"{name} is not valid Unicode at position {error.start} (a lone surrogate): decode the source with "
            "errors='replace', or clean it with .encode('utf-8', 'replace').decode()."
        ) from error
    return value


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory: a tenant, perhaps one user of it, perhaps one conversation."""

    tenant: str = DEFAULT_TENANT
    user: str | None = None
    conversation: str | None = None

    def __post_init__(self) -> None:
        checked_id(self.tenant, "tenant")
        if self.user is not None:
            checked_id(self.user, "user_id")
        if self.conversation is not None:
            checked_id(self.conversation, "conversation id")

    def within(self, scope: "Scope") -> bool:
        """Whether what is kept in this scope belongs to the other."""
        return (
            self.tenant == scope.tenant
            and scope.user in (None, self.user)
            and scope.conversation in (None, self.conversation)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a turn and what it returned."""

    tool: str
    input: JsonValue
    result: str
    call_id: str
    #: Tokens of the call (name and arguments) and of the result, without message overhead.
    call_tokens: int = 0
    result_tokens: int = 0
    #: The archived page that holds the whole result.
    page: str | None = None
    #: False when `result` is only the placeholder of `page`.
    whole: bool = True
    #: Tokens and characters of the page.
    page_tokens: int = 0
    page_chars: int = 0
    #: Characters that are gone because the archive could not be written.
    lost_chars: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange: what the user said, what the tools returned, what the assistant answered, as messages in their order.

    `user` is the first text of the user (images are named in it) and `assistant` the last one of the assistant, as document 001
    reads them; `steps` are
    the tool calls. Of a turn that is nothing more than these, in this order, `layout` is None and `messages` follows from them.

    `seq` is the turn's place in its conversation. It is given when the turn ends (done or aborted), so it has no
    gaps and nothing ever appears behind a reader who has read up to some `seq`; an open turn has none yet.
    """

    id: str
    scope: Scope
    seq: int | None
    status: Status
    user: str | None
    assistant: str | None
    steps: tuple[Step, ...]
    #: When it was said, as given; may repeat or go backwards.
    at: datetime
    #: When it was written; strictly increasing with `seq` in a conversation.
    created: datetime
    user_tokens: int
    assistant_tokens: int
    #: Tokens of the whole turn as it stands in a window, message overhead included.
    tokens: int
    #: The tokenizer that made these counts.
    counter: str
    metadata: JsonObject = field(default_factory=lambda: _NOTHING)
    #: The messages as they happened, where they are more than `user`, `steps` and `assistant` tell.
    layout: tuple[Message, ...] | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What happened, in order; calls and results name their step."""
        return (
            plain_layout(self.user, range(len(self.steps)), self.assistant)
            if self.layout is None
            else self.layout
        )

    @property
    def erased(self) -> bool:
        """Whether this is only the place of something that was erased from the log."""
        return self.status == "aborted" and self.user == ERASED and not self.counter

    @property
    def said(self) -> str:
        """Everything the user said."""
        return self._spoken("user", self.user)

    @property
    def answered(self) -> str:
        """Everything the assistant said."""
        return self._spoken("assistant", self.assistant)

    @property
    def text(self) -> str:
        """Both sides, one line each."""
        return "\n".join(side for side in (self.said, self.answered) if side)

    def _spoken(self, role: str, short: str | None) -> str:
        if self.layout is None:
            return short or ""
        return "\n".join(text for message in self.layout if message.role == role and (text := message.text))


def plain_layout(user: str | None, steps: Iterable[int], assistant: str | None) -> tuple[Message, ...]:
    """The messages of a turn given in the short form: the user, each call and its result, the assistant."""
    messages = [Message("user", (Text(user),))] if user else []
    for number in steps:
        messages += [Message("assistant", (ToolCall(number),)), Message("tool", (ToolResult(number),))]
    if assistant:
        messages.append(Message("assistant", (Text(assistant),)))
    return tuple(messages)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A summary of the older turns, and up to which turn it stands."""

    id: str
    scope: Scope
    #: Place of the checkpoint's own row in the log.
    seq: int
    #: 1 for the first checkpoint of a conversation, then one more each time.
    version: int
    summary: str
    #: The last turn the summary speaks for; everything after it stays verbatim.
    covered_through_seq: int
    covered_turns: int
    created: datetime
    tokens: int
    counter: str
    anchors: tuple[str, ...] = ()
    archive_refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reset:
    """The point from which a conversation began anew; what came before stays in the log."""

    id: str
    scope: Scope
    seq: int
    created: datetime


Entry: TypeAlias = Turn | Checkpoint | Reset


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a conversation in one row: what a window needs to know before it reads a turn."""

    scope: Scope
    agent: str | None
    created: datetime
    updated: datetime
    #: The newest place taken in the log (turns, checkpoints and resets).
    last_seq: int
    #: Everything up to here was reset away from the window.
    reset_seq: int
    #: Everything up to here is spoken for by the newest checkpoint.
    covered_through_seq: int
    #: Done turns since the reset.
    turns: int
    #: Done turns not yet covered by a checkpoint, and their tokens.
    live_turns: int
    live_tokens: int
    #: What the conversation belongs to, the language its user reads and where they are.
    project: str | None = None
    language: str | None = None
    timezone: str | None = None
    #: The erasures there had been when this was read; what is written later on the strength of it names the number.
    epoch: int = field(default=0, compare=False)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written to this conversation."""
        return self.last_seq > 0 or self.updated > NEVER


@dataclass(frozen=True, slots=True)
class Page:
    """An archived tool result (document 000): all but the full text, which `load` brings."""

    uuid: str
    scope: Scope
    tool: str
    input: JsonValue
    query_summary: str
    result_summary: str
    length: int
    sources: tuple[str, ...]
    created: datetime
    tokens: int
    counter: str
    content_hash: str
    #: Hash of tool and input: equal calls have equal ones.
    call_hash: str = ""
    #: Document 000's optional thread.
    thread: str | None = None
    #: A pinned page is never purged, and stays in the window.
    pinned: bool = False
    #: How often it was loaded, and when last.
    loads: int = 0
    last_load: datetime | None = None
    #: When its text was purged; what is left is a tombstone.
    purged: datetime | None = None
    #: What its text takes on disk, compressed; of a tombstone, what it took.
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PageHit:
    """An archived page that answers a query."""

    page: Page
    score: float
    #: The best passage, and where it stands in the page.
    passage: str
    start: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A lasting statement about a user."""

    id: str
    scope: Scope
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
    #: What it speaks of: a fact with the same subject and attribute takes its place.
    subject: str | None = None
    attribute: str | None = None
    #: The fact whose place it took.
    supersedes: str | None = None
    #: Where it belongs and which agent learned it; None: to the user, wherever they are.
    project: str | None = None
    agent: str | None = None
    #: What became of it when it was given to `remember()`; not kept.
    outcome: Outcome | None = field(default=None, compare=False)

    def held_at(self, moment: datetime) -> bool:
        """Whether it was known and true at a moment."""
        known = self.recorded <= moment and (self.retracted is None or moment < self.retracted)
        return known and self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of what is held about a user. Numbers rise, and are never given twice."""

    number: int
    scope: Scope
    at: datetime
    #: Such as "stored", "superseded", "duplicate", "retracted", "imported", "undone".
    action: str
    #: The facts as they were, None for a new one, and as they are since, in the same order.
    before: tuple[Fact | None, ...]
    after: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A past turn that answers a query, with the reasons for its rank."""

    id: str
    conversation_id: str
    text: str
    score: float
    #: What the score is made of.
    parts: Mapping[str, float]
    at: datetime
    metadata: JsonObject
    #: The turns next to it in its conversation.
    before: Turn | None
    after: Turn | None


@dataclass(frozen=True, slots=True)
class Call:
    """A window that was handed out: what was asked, what it cost, what was kept and why."""

    id: str
    scope: Scope
    at: datetime
    turn_id: str | None
    query: str | None
    #: The arguments of `context()`, and under "moment" what is needed to make the window again.
    options: JsonObject
    tokens: int
    ratio: float
    mode: str
    prefix_hash: str
    receipt: JsonObject


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Who may use the service: for which tenant, perhaps for one user of it only. The secret itself is kept nowhere."""

    id: str
    #: What people call it.
    name: str
    #: The tenant and perhaps the user that it is bound to.
    scope: Scope
    #: A hash of the secret.
    digest: str = field(repr=False)
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    #: Kept coarsely: it may lag behind by an hour.
    last_used: datetime | None = None

    def __post_init__(self) -> None:
        checked_id(self.id, "key id")
        checked_id(self.name, "name")

    def usable_at(self, moment: datetime) -> bool:
        """Whether it opens anything at a moment."""
        return self.revoked is None and (self.expires is None or moment < self.expires)


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What an erasure removed, counted table by table."""

    scope: Scope
    at: datetime
    counts: Mapping[str, int]
    #: What is still to be erased elsewhere, and until when; empty when everything is gone.
    pending: tuple[str, ...] = ()
    #: The turn or the page, where one was erased alone.
    turn_id: str | None = None
    page: str | None = None
    #: The conversations it stood in, forks with copies too, each with the turn's place in the log; 0 for an open turn, and for a page.
    places: tuple[tuple[str, int], ...] = ()
    #: The conversations that went, for whoever holds something of them elsewhere.
    conversations: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def total(self) -> int:
        """Rows removed in all."""
        return sum(self.counts.values())


T = TypeVar("T")


class Listing(Sequence[T], Generic[T]):
    """One slice of a longer list; `next` is where the following slice begins, None at the end."""

    __slots__ = ("_items", "next")

    def __init__(self, items: Sequence[T], next: str | None = None) -> None:  # noqa: A002 - the word users read
        self._items = tuple(items)
        self.next = next

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Listing):
            return self._items == other._items and self.next == other.next  # pyright: ignore[reportUnknownMemberType]
        return list(self._items) == other

    def __hash__(self) -> int:
        return hash((self._items, self.next))

    def __repr__(self) -> str:
        return f"Listing({list(self._items)!r}, next={self.next!r})"
