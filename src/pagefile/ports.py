"""What Pagefile asks of the world: small abstract classes that a backend fills.

Each verb is coarse (one hop to the database) and takes one request object, so that a port can grow a field without
breaking the backends others wrote. What must hold is written here and has a contract test of the same
name in `pagefile.testing`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from pagefile.records import (
    Call,
    Checkpoint,
    Entry,
    ErasureReceipt,
    Fact,
    Head,
    JsonObject,
    JsonValue,
    Page,
    Scope,
    Status,
    Step,
    Turn,
)


class Clock(Protocol):
    """Tells the time, in UTC."""

    def now(self) -> datetime: ...


class Meter(ABC):
    """Takes measurements; must be quick, and never raises."""

    @abstractmethod
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Something happened."""

    @abstractmethod
    def observe(self, name: str, value: float, **labels: str) -> None:
        """Something had this size or took this long."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summary is to be made of: the summary so far, and what was said since."""

    previous: str | None
    #: Speaker ("user", "assistant") and text, oldest first.
    said: tuple[tuple[str, str], ...]
    max_chars: int


class Summarizer(ABC):
    """Condenses what was said."""

    @abstractmethod
    async def summarize(self, request: SummaryRequest) -> str:
        """One text that speaks for `previous` and `said` together. May raise `ModelError`."""

    @property
    def max_input_chars(self) -> int:
        """How much it reads at once; more is given in parts, each with the summary so far."""
        return 24_000


class ChatModel(ABC):
    """A model that answers messages with text."""

    @abstractmethod
    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        """The answer. Raises `ModelUnavailableError` when it cannot be reached, `ModelOutputError` for no answer."""


# -- the turn log -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A turn about to be written: `open` when the answer is still to come, else `done`."""

    scope: Scope
    id: str
    status: Literal["open", "done"]
    user: str | None
    assistant: str | None
    steps: tuple[Step, ...]
    at: datetime
    user_tokens: int
    assistant_tokens: int
    tokens: int
    counter: str
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class AddStep:
    """Add a tool call and its result to an open turn."""

    scope: Scope
    turn_id: str
    step: Step
    tokens_added: int


@dataclass(frozen=True, slots=True)
class Complete:
    """The answer is there: the turn is done and takes its place in the log."""

    scope: Scope
    turn_id: str
    assistant: str | None
    assistant_tokens: int
    tokens_added: int


@dataclass(frozen=True, slots=True)
class Abort:
    """The answer will not come: the turn stays in the log and enters no window."""

    scope: Scope
    turn_id: str


TurnChange: TypeAlias = AddStep | Complete | Abort


@dataclass(frozen=True, slots=True)
class CheckpointDraft:
    """A summary about to take effect. `expected_version` is the checkpoint it was made from (0: none)."""

    scope: Scope
    id: str
    summary: str
    #: The `answer` of the checkpoint's row.
    text: str
    covered_through_seq: int
    expected_version: int
    tokens: int
    counter: str
    anchors: tuple[str, ...] = ()
    archive_refs: tuple[str, ...] = ()


class TurnLog(ABC):
    """The only truth: every turn in the order in which it ended.

    * `seq` is 1, 2, 3 … per conversation over turns that ended, checkpoints and resets: no gap, no duplicate, whoever
      writes from however many processes.
    * `created` is strictly increasing with `seq`, even when the clock is not.
    * What a call returned is durable.
    * A conversation belongs to the first user who writes to it; another user gets `ConflictError`. A scope without a user
      may write to any conversation of its tenant.
    * The session value of document 001 is updated in the same transaction as the turn.
    """

    @abstractmethod
    async def append(self, draft: TurnDraft) -> Turn:
        """Write a turn.

        The same id with the same user text, assistant text and steps returns what is stored (whatever its status);
        with others raises `ConflictError` and changes nothing.
        """

    @abstractmethod
    async def advance(self, change: TurnChange) -> Turn:
        """Move an open turn on.

        Completing twice with the same text and aborting twice return the stored turn; any other change of a turn that
        ended raises `ConflictError`; an unknown turn raises `NotFoundError`.

        Adding a step equal in call id, tool, input and result to one the turn has returns the turn unchanged, whatever its
        page and its token counts; another result under the same call id is a step of its own.
        """

    @abstractmethod
    async def mark(self, marker: "CheckpointDraft | ResetDraft") -> Entry:
        """Write a checkpoint or a reset.

        A checkpoint whose `expected_version` is not the conversation's newest, or which would cover less than that one, or
        more than there is, or turns from before the last reset only, raises `ConflictError`. A reset forgets the checkpoint too:
        the next one is made from none (0), while the version goes on counting. The same marker with the same id returns
        what is stored.
        """

    @abstractmethod
    async def restore(self, entries: Sequence[Entry]) -> int:
        """Write entries of one conversation exactly as they were (for imports); returns how many were new.

        Into an empty conversation they keep `seq` and `created`. Into one that has entries, turns whose id is not there yet are
        appended, and the rest is left out; a turn that is there with another text raises `ConflictError`. Entries that do not
        make up one conversation raise `InvalidTurnError`.
        """


@dataclass(frozen=True, slots=True)
class ResetDraft:
    """Begin anew: what came before stays in the log and leaves the window."""

    scope: Scope
    id: str


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What a window needs: the newest live turns, until `budget_tokens` are read, but at least `min_turns`."""

    scope: Scope
    budget_tokens: int
    min_turns: int
    #: The open turn whose window this is.
    open_turn: str | None = None


@dataclass(frozen=True, slots=True)
class LogView:
    """A conversation as a window sees it, read in one consistent snapshot."""

    head: Head
    checkpoint: Checkpoint | None
    #: The newest done turns after reset and checkpoint, oldest first, without gaps.
    turns: tuple[Turn, ...]
    open_turn: Turn | None = None
    #: `user_snapshot` of the session value (allergies and the like), when there is a session.
    profile: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """A slice of one conversation's log, ascending by `seq`, open turns (which have none) last."""

    scope: Scope
    kinds: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn"})
    statuses: frozenset[Status] = frozenset({"open", "done", "aborted"})
    after_seq: int = 0
    limit: int = 100
    #: The last `limit` entries instead of the first.
    newest: bool = False


@dataclass(frozen=True, slots=True)
class HeadQuery:
    """Conversations of a scope, the most recently written first; `after` continues behind a conversation id."""

    scope: Scope
    limit: int = 100
    after: str | None = None


class LogReader(ABC):
    """Reads the log. A reader never waits for a writer."""

    @abstractmethod
    async def view(self, request: ViewRequest) -> LogView:
        """What a window needs, in at most two queries and reading no turn it does not return.

        Reading goes back from the newest done turn and stops before the turn that would exceed `budget_tokens`, once
        `min_turns` are read. A conversation nobody wrote to gives an empty view. A conversation of another user raises
        `ConflictError`; an `open_turn` that is not there raises `NotFoundError`.
        """

    @abstractmethod
    async def entries(self, query: EntryQuery) -> list[Entry]:
        """A slice of one conversation; one of another user raises `ConflictError`."""

    @abstractmethod
    async def heads(self, query: HeadQuery) -> list[Head]:
        """The conversations of a tenant, or of one of its users, or the one named.

        An `after` that is not in the list raises `NotFoundError`, here as in every list.
        """


@dataclass(frozen=True, slots=True)
class SinceRequest:
    """Done turns of a scope that an index does not know yet."""

    scope: Scope
    #: The highest `seq` already known, by conversation.
    known: Mapping[str, int]
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Points at a turn."""

    conversation: str
    seq: int


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A turn and the done turns next to it."""

    turn: Turn
    before: Turn | None
    after: Turn | None


class TurnSource(ABC):
    """Where indexes catch up from, and where hits get their text."""

    @abstractmethod
    async def since(self, request: SinceRequest) -> list[Turn]:
        """Done turns after `known`, ordered by conversation id, then `seq`; at most `limit`.

        A scope with a user gives that user's conversations, one with a conversation only that one. Turns before a reset are
        included: they left the window, not the memory.
        """

    @abstractmethod
    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        """The turns pointed at, in that order, with neighbours; those that are gone are left out."""


# -- facts, pages, calls, sessions -------------------------------------------------------------------------------------


class FactStore(ABC):
    """Lasting statements about users."""

    @abstractmethod
    async def put(self, fact: Fact) -> Fact:
        """Write a fact, or replace the one with the same id; the scope must name a user.

        An id that is another user's raises `ConflictError`.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        """Facts of a scope's user (of the whole tenant when it names none), oldest first."""

    @abstractmethod
    async def retract(self, scope: Scope, fact_id: str, at: datetime) -> Fact:
        """Mark a fact as no longer held. Twice is the same as once; unknown or foreign raises `NotFoundError`."""


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A tool result about to be archived, with where its passages begin and end."""

    page: Page
    text: str
    spans: tuple[tuple[int, int], ...] = ()


class PageStore(ABC):
    """Archived tool results, byte for byte."""

    @abstractmethod
    async def put(self, draft: PageDraft) -> Page:
        """Archive a result; equal text is stored once. `stored_bytes` of the page returned is what the text takes.

        The same page again returns what is stored; its uuid with another text or user raises `ConflictError`. A purged page
        with the same content hash takes the place of its tombstone. A page that says it is purged is stored as a tombstone.
        """

    @abstractmethod
    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        """The page and its full text. Unknown, or of another tenant or user: `HandleNotFoundError`; purged: `PagePurgedError`.

        A scope with a user may load every page of that user, and those that nobody owns in its own conversation; one without
        a user only those of its own conversation; a scope that names neither any page of its tenant. Whoever may load
        a page may pin, touch, read and write it too.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        """Pages of a scope and their tombstones, newest first; `after` continues behind a uuid.

        A scope with a conversation shows that one's pages (its user's, and those that nobody owns), one with only a user all
        of that user's, one with neither all of the tenant's: here as in everything that is said to be of a scope.
        """


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """Which texts to purge: those named, those created before a time, or the oldest beyond a size; never pinned ones."""

    scope: Scope
    at: datetime
    uuids: frozenset[str] | None = None
    before: datetime | None = None
    max_bytes: int | None = None


class PageKeeper(ABC):
    """Looks after pages: pins, uses, equal calls, purging."""

    @abstractmethod
    async def page(self, scope: Scope, uuid: str) -> Page:
        """A page without its text, purged or not; unknown or foreign: `HandleNotFoundError`."""

    @abstractmethod
    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        """Pin or unpin a page; unknown or foreign: `HandleNotFoundError`; purged: `PagePurgedError`."""

    @abstractmethod
    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        """Count a load of each page; those that are gone, purged or foreign are passed over.

        A time before the last load leaves the last load as it is.
        """

    @abstractmethod
    async def pinned(self, scope: Scope) -> list[Page]:
        """The pinned pages of the scope's conversation (of its user, if it names no conversation), oldest first."""

    @abstractmethod
    async def tenants(self) -> list[str]:
        """Every tenant that has a page with a text, in order."""

    @abstractmethod
    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        """The newest page that the scope may load, made by an equal call at or after a time, not purged.

        A page without a call hash equals none.
        """

    @abstractmethod
    async def purge(self, request: PurgeRequest) -> list[Page]:
        """Remove texts, leave tombstones, and return the pages purged, oldest first.

        With several conditions a page of the scope that meets any of them goes, with none nothing goes. `before` leaves what was
        created at that time. `max_bytes` bounds what the scope's pages take afterwards, oldest out first; a text counts for
        every page that holds it, and pinned pages count but stay. A text that another page still holds is not removed
        for both. A tombstone keeps everything but text and passages, `stored_bytes` too.
        """


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The passages of a page: where each begins and ends, and its terms once it was indexed."""

    uuid: str
    spans: tuple[tuple[int, int], ...]
    terms: tuple[str, ...] | None


class PageIndex(ABC):
    """What searching over pages needs: which there are, and the terms of their passages."""

    @abstractmethod
    async def uuids(self, scope: Scope) -> list[str]:
        """Every page of the scope that is not purged, oldest first."""

    @abstractmethod
    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        """Passages of these pages, in that order; those that are gone, purged or foreign are left out.

        A page without passages has nothing to index: its terms are there, and empty.
        """

    @abstractmethod
    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        """Keep the terms of a page's passages, in place of those before; a page that is gone is passed over.

        One text for each passage: another number raises `InvalidTurnError`.
        """


class CallLog(ABC):
    """The windows that were handed out, for a while."""

    @abstractmethod
    async def add(self, calls: Sequence[Call], *, keep: int) -> None:
        """Write calls, and keep only the newest `keep` of each conversation they belong to.

        Newest is what was added last; an id that is there already is left as it is.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        """Calls of a conversation, newest first; `after` continues behind a call id."""


class SessionStore(ABC):
    """Document 001's `SessionValue`, as JSON."""

    @abstractmethod
    async def get(self, scope: Scope) -> JsonObject | None:
        """The session value of a conversation, or None when there is none.

        That of another user raises `ConflictError`.
        """

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject) -> None:
        """Replace the session value of a conversation, which begins with it if nobody wrote to it yet."""


class Store(ABC):
    """One database: the ports above over one connection, and what concerns them all."""

    log: TurnLog
    reader: LogReader
    source: TurnSource
    facts: FactStore
    pages: PageStore
    page_keeper: PageKeeper
    page_index: PageIndex
    calls: CallLog
    sessions: SessionStore

    @abstractmethod
    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Remove everything of a conversation, a user (all conversations, facts, pages) or a tenant, in one transaction.

        A conversation of another user raises `ConflictError`.
        """

    @abstractmethod
    async def describe(self) -> JsonObject:
        """What this store is (backend, version, place, size), read from the store itself: fails when it cannot be reached."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was accepted and let go. Twice is the same as once."""


# -- the session cache -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A session value, and the change of the conversation after which it was read."""

    value: JsonObject
    version: int


class SessionCache(ABC):
    """Document 001's `SessionValue` close at hand for half an hour: only a cache, which may lose anything at any time.

    * A version is a whole number from 0 to 2^53 - 1 that the database knows and that rises with every change of the session.
      Whoever reads compares it with the database's: a value of another version is no better than none.
    * A value lives for 1800 s after it was put.
    * A cache that is down, slow, full or read-only raises nothing: to read is a miss, to write is `False`.
    """

    #: Reads that found a value, reads that did not, and calls that the cache failed to answer.
    hits: int = 0
    misses: int = 0
    errors: int = 0

    @abstractmethod
    async def get(self, scope: Scope) -> CachedSession | None:
        """The value of a conversation, exactly as it was put, or None. Whose it is was not checked."""

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject, *, version: int) -> bool:
        """Keep a value, whole or not at all, unless one of this version or a newer one is kept; tell whether it was.

        So of any number of writers the newest wins, however late an older one comes. What is kept but damaged counts as nothing.
        A value that is not JSON and a version out of range raise `InvalidTurnError`.
        """

    @abstractmethod
    async def drop(self, scope: Scope) -> None:
        """Forget the value of a conversation; one that is not there is passed over."""

    @abstractmethod
    async def close(self) -> None:
        """Let go; from then on nothing is found or kept. Twice is the same as once."""
