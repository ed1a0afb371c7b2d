"""The nouns of Pagefile: frozen records shared by all packages.

A record validates itself on creation, so that no other package has to check whether a time is aware or a text
can be stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, Self, TypeAlias, TypeVar, cast

from pagefile.content import JsonObject, JsonValue, Message, Text, ToolCall, ToolResult
from pagefile.errors import InvalidArgumentError

Status = Literal["open", "done", "aborted"]
#: What became of a fact: new; already known, so its confidence rises; or new, replacing one it contradicts.
Outcome = Literal["stored", "duplicate", "superseded", "corrected"]

DEFAULT_TENANT = "default"
MAX_ID_CHARS = 255
#: The largest integer that every database and every JSON reader keeps exactly.
MAX_INT = 2**53 - 1
#: The `query` column of a checkpoint's row in `ai_message`.
CHECKPOINT_QUERY = "[MEMORY_CHECKPOINT]"
#: The `query` column of a reset's row.
RESET_QUERY = "[MEMORY_RESET]"
#: The key of a window's snapshot in the options of its record.
SNAPSHOT_KEY = "moment"

#: Replaces something erased on its own: the `query` of a turn's row, or the result of a tool.
ERASED = "[MEMORY_ERASED]"

#: Both times of a conversation that was never written to.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_NOTHING: JsonObject = {}


def utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive time is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


#: Between these, a day can be added to a time and any zone can tell it: what is written is within.
EARLIEST = datetime(2, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 12, 31, tzinfo=UTC)
BEYOND_TIME = "give a time between the years 2 and 9998"


def within_time(moment: datetime) -> datetime:
    """The time, or the nearest one that any zone can tell: other versions wrote every time there is."""
    return min(max(moment, EARLIEST), LATEST)


def checked_id(value: object, name: str) -> str:
    """An id that every store can hold, or an error that explains what is wrong with it."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be text, not {type(value).__name__}: pass str(…).")
    if not value.strip():
        raise InvalidArgumentError(f"{name} is empty: give it at least one visible character.")
    if len(value) > MAX_ID_CHARS:
        raise InvalidArgumentError(f"{name} has {len(value)} characters, at most {MAX_ID_CHARS} are allowed.")
    return checked_text(value, name)


def checked_text(value: object, name: str) -> str:
    """Text that every store can hold, byte for byte, or an error with the position of the problem."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be text, not {type(value).__name__}.")
    nul = value.find("\0")
    if nul >= 0:
        raise InvalidArgumentError(
            f"{name} has a NUL character at position {nul}, which databases cannot store: "
            "remove it, for instance with .replace('\\0', '')."
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{name} is not valid Unicode at position {error.start} (a lone surrogate): decode the source with "
            "errors='replace', or clean it with .encode('utf-8', 'replace').decode()."
        ) from error
    return value


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory: a tenant, optionally one of its users, optionally one conversation."""

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
        """Whether data kept in this scope belongs to the other."""
        return (
            self.tenant == scope.tenant
            and scope.user in (None, self.user)
            and scope.conversation in (None, self.conversation)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a turn and its result."""

    tool: str
    input: JsonValue
    result: str
    call_id: str
    #: Tokens of the call (name and arguments) and of the result, without message overhead.
    call_tokens: int = 0
    result_tokens: int = 0
    #: The archived page that holds the full result.
    page: str | None = None
    #: False if `result` is only the placeholder of `page`.
    whole: bool = True
    #: Tokens and characters of the page.
    page_tokens: int = 0
    page_chars: int = 0
    #: Characters lost because the archive could not be written.
    lost_chars: int = 0
    #: The archived pages that hold large values of `input`, which has them too, by JSON pointer.
    input_pages: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages of its result and of its input."""
        return (*([self.page] if self.page else []), *self.input_pages.values())


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange: what the user said, what the tools returned, what the assistant answered, as messages in order.

    `user` is the user's first text (which names images) and `assistant` the assistant's last one; `steps` are
    the tool calls. If the turn consists of exactly these, in this order, `layout` is None and `messages` is
    derived from them.

    `seq` is the turn's position in its conversation. It is assigned when the turn ends (done or aborted), so
    it has no gaps, and nothing ever appears behind a reader that has read up to some `seq`; an open turn has
    none yet.
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
    #: When it was written; strictly increases with `seq` in a conversation.
    created: datetime
    user_tokens: int
    assistant_tokens: int
    #: Tokens of the whole turn as shown in a window, message overhead included.
    tokens: int
    #: The tokenizer that produced these counts.
    counter: str
    metadata: JsonObject = field(default_factory=lambda: _NOTHING)
    #: The messages as they happened, if they are more than `user`, `steps` and `assistant`.
    layout: tuple[Message, ...] | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What happened, in order; calls and results refer to their step."""
        if self.layout is not None:
            return self.layout
        return plain_layout(self.user, range(len(self.steps)), self.assistant)

    @property
    def erased(self) -> bool:
        """Whether this only marks the position of an erased turn."""
        return self.status == "aborted" and self.user == ERASED and not self.counter

    @property
    def counts(self) -> bool:
        """Whether it is part of windows, summaries and indexes: it is done, or was given up after the user had spoken."""
        return self.status == "done" or (self.status == "aborted" and self.tokens > 0)

    @property
    def spoken(self) -> "Turn":
        """The turn as windows, summaries and indexes see it: all that the user said; and if no answer came, only that."""
        if self.layout is None:
            user = self.user
        else:
            texts = [one.text for one in self.layout if one.role == "user" and one.text.strip()]
            user = "\n".join(texts) if len(texts) > 1 else self.user
        if self.status == "done":
            return self if user == self.user else replace(self, user=user)
        heard = (_without_results(message) for message in self.layout or () if message.role == "user")
        layout = tuple(message for message in heard if message.parts)
        return replace(self, user=user, assistant=None, assistant_tokens=0, steps=(), layout=layout or None)

    @property
    def said(self) -> str:
        """Everything the user said."""
        return self._text_of("user", self.user)

    @property
    def answered(self) -> str:
        """Everything the assistant said."""
        return self._text_of("assistant", self.assistant)

    @property
    def text(self) -> str:
        """Both sides, one line each."""
        return "\n".join(side for side in (self.said, self.answered) if side)

    def _text_of(self, role: str, short: str | None) -> str:
        if self.layout is None:
            return short or ""
        return "\n".join(text for message in self.layout if message.role == role and (text := message.text))


def _without_results(message: Message) -> Message:
    """A user's message without tool results, which Anthropic's shape carries in the user's name."""
    parts = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return message if len(parts) == len(message.parts) else replace(message, parts=parts, given=None)


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
    """A summary of the older turns, and the turn up to which it speaks."""

    id: str
    scope: Scope
    #: Position of the checkpoint's own row in the log.
    seq: int
    #: Counts the checkpoints of a conversation, from 1.
    version: int
    summary: str
    #: The last turn the summary covers; everything after it stays verbatim.
    covered_through_seq: int
    covered_turns: int
    created: datetime
    tokens: int
    counter: str
    anchors: tuple[str, ...] = ()
    archive_refs: tuple[str, ...] = ()
    #: Why the summary was extracted although a model or a function should have written it; None if that did not happen.
    fallback_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """The point at which a conversation started over; what came before stays in the log."""

    id: str
    scope: Scope
    seq: int
    created: datetime


Entry: TypeAlias = Turn | Checkpoint | Reset


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """The state of a conversation in one row: what a window needs to know before it reads a turn."""

    scope: Scope
    agent: str | None
    created: datetime
    updated: datetime
    #: The last position taken in the log (turns, checkpoints and resets).
    last_seq: int
    #: Everything up to here left the window with a reset.
    reset_seq: int
    #: Everything up to here is covered by the newest checkpoint.
    covered_through_seq: int
    #: Done turns since the reset.
    turns: int
    #: Done turns not yet covered by a checkpoint, and their tokens.
    live_turns: int
    live_tokens: int
    #: The conversation's project, and its user's language and time zone.
    project: str | None = None
    language: str | None = None
    timezone: str | None = None
    #: The number of erasures when this was read; later writes based on it name this number.
    epoch: int = field(default=0, compare=False)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written to this conversation."""
        return self.last_seq > 0 or self.updated > NEVER


@dataclass(frozen=True, slots=True)
class Page:
    """An archived tool result, without the full text, which `load` returns."""

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
    #: Hash of tool and input, the same for equal calls.
    call_hash: str = ""
    #: An optional thread id.
    thread: str | None = None
    #: A pinned page is never purged, and stays in the window.
    pinned: bool = False
    #: How often it was loaded, and when last.
    loads: int = 0
    last_load: datetime | None = None
    #: When its text was purged; what remains is a tombstone.
    purged: datetime | None = None
    #: Compressed size of its text on disk; for a tombstone, the size it had.
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PageHit:
    """An archived page that matches a query."""

    page: Page
    score: float
    #: The best passage, and its offset in the page.
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
    #: What it is about: a new fact with the same subject and attribute replaces it.
    subject: str | None = None
    attribute: str | None = None
    #: The fact it replaced.
    supersedes: str | None = None
    #: The project it belongs to and the agent that learned it; None: it applies everywhere.
    project: str | None = None
    agent: str | None = None
    #: What became of it when it was passed to `remember()`; not stored.
    outcome: Outcome | None = field(default=None, compare=False)

    def held_at(self, moment: datetime) -> bool:
        """Whether it was known and valid at a moment."""
        known = self.recorded <= moment and (self.retracted is None or moment < self.retracted)
        return known and self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)

    def is_for(self, project: str | None, agent: str | None) -> bool:
        """Whether conversations of a project and an agent are shown it."""
        return self.project in {None, project} and self.agent in {None, agent}


@dataclass(frozen=True, slots=True)
class Revision:
    """One change to the facts about a user. Numbers rise and are never reused."""

    number: int
    scope: Scope
    at: datetime
    #: For example "stored", "superseded", "duplicate", "corrected", "retracted", "imported", "undone".
    action: str
    #: The facts before the change (None for a new one) and after it, in the same order.
    before: tuple[Fact | None, ...]
    after: tuple[Fact, ...]

    def take_back(self, facts: dict[str, Fact]) -> None:
        """Undo the change in what was held after it, by id."""
        for before, after in zip(self.before, self.after, strict=True):
            facts.pop(after.id, None)
            if before is not None:
                facts[before.id] = before


@dataclass(frozen=True, slots=True)
class Hit:
    """A past turn that matches a query, with the reasons for its rank."""

    id: str
    conversation_id: str
    text: str
    score: float
    #: The components of the score.
    parts: Mapping[str, float]
    at: datetime
    metadata: JsonObject
    #: The neighbouring turns in its conversation.
    before: Turn | None
    after: Turn | None
    #: "aborted" if no answer came.
    status: Status


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """A window that was handed out: what was asked, what it cost, what was kept and why."""

    id: str
    scope: Scope
    at: datetime
    turn_id: str | None
    query: str | None
    #: The arguments of `context()`, and under "moment" what is needed to rebuild the window.
    options: JsonObject
    tokens: int
    ratio: float
    mode: str
    prefix_hash: str
    receipt: JsonObject


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Who may use the service: a tenant, optionally only one of its users. The secret itself is not stored."""

    id: str
    #: A human-readable name.
    name: str
    #: The tenant, and optionally the user, it is bound to.
    scope: Scope
    #: A hash of the secret.
    digest: str = field(repr=False)
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    #: Approximate: it may lag by an hour.
    last_used: datetime | None = None

    def __post_init__(self) -> None:
        checked_id(self.id, "key id")
        checked_id(self.name, "name")

    def usable_at(self, moment: datetime) -> bool:
        """Whether it grants access at a moment."""
        return self.revoked is None and (self.expires is None or moment < self.expires)


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What an erasure removed, counted table by table."""

    scope: Scope
    at: datetime
    counts: Mapping[str, int]
    #: What remains to be erased elsewhere, and until when; empty if everything is gone.
    pending: tuple[str, ...] = ()
    #: The turn or the page, if only one was erased.
    turn_id: str | None = None
    page: str | None = None
    #: The conversations that contained it, forks with copies included, each with the turn's `seq`; 0 for an
    #: open turn, and for a page.
    places: tuple[tuple[str, int], ...] = ()
    #: The erased conversations, for components that hold data about them elsewhere.
    conversations: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def total(self) -> int:
        """Rows removed in all."""
        return sum(self.counts.values())


T = TypeVar("T")


class Listing(tuple[T, ...]):  # noqa: SLOT001 - a tuple has no slots for values
    """One slice of a longer list; `next` is where the following slice starts, None at the end."""

    next: str | None

    def __new__(cls, items: Iterable[T], next: str | None = None) -> Self:  # noqa: A002 - the word users read
        listing = super().__new__(cls, items)
        listing.next = next
        return listing

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Listing):
            return tuple(self) == tuple(cast("Listing[object]", other)) and self.next == other.next
        return list(self) == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.next))

    def __repr__(self) -> str:
        return f"Listing({list(self)!r}, next={self.next!r})"
