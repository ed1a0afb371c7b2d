"""The turn log: writing, reading and catching up with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict, Unpack

from pagefile.content import JsonObject, JsonValue, Message
from pagefile.records import MAX_INT, Checkpoint, ConversationInfo, Entry, Scope, Status, Step, Turn

__all__ = [
    "ENDED",
    "FEW_TURNS",
    "NO_LABELS",
    "Abort",
    "AddStep",
    "Beside",
    "CheckpointDraft",
    "Complete",
    "ConversationQuery",
    "EntryQuery",
    "Extend",
    "Labels",
    "LogReader",
    "LogView",
    "MatchQuery",
    "Neighbourhood",
    "ResetDraft",
    "SinceRequest",
    "TurnChange",
    "TurnDraft",
    "TurnLog",
    "TurnPlace",
    "TurnRef",
    "TurnSource",
    "ViewRequest",
    "epoch_of",
    "labels_of",
]


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known about a conversation besides its messages; None keeps the stored value."""

    project: str | None = None
    language: str | None = None
    timezone: str | None = None


NO_LABELS = Labels()
#: The statuses of turns that have their place in the log.
ENDED: frozenset[Status] = frozenset({"done", "aborted"})


def labels_of(head: ConversationInfo) -> Labels:
    """A conversation's labels."""
    return Labels(head.project, head.language, head.timezone)


# Not frozen: one is created for every recorded turn, and a frozen dataclass takes four times as long to
# create.
@dataclass(slots=True)
class TurnDraft:
    """A turn about to be written: `open` if the answer is still to come, else `done`."""

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
    #: The messages in order, if they are more than the short form; `steps` holds their steps.
    layout: tuple[Message, ...] | None = None
    #: Bytes of the images and files in the messages, by SHA-256.
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    labels: Labels = NO_LABELS
    #: The epoch in which pages of its steps were written; None if it has no pages: then erasures do not block
    #: the write.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Extend:
    """Add messages to an open turn.

    Steps started by these messages are appended to the turn's steps, and the messages refer to them by that
    index. `results` holds earlier steps of the turn, by index, that now have their result.
    """

    scope: Scope
    turn_id: str
    messages: tuple[Message, ...]
    tokens_added: int
    steps: tuple[Step, ...] = ()
    results: Mapping[int, Step] = field(default_factory=dict[int, Step])
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    #: The user's first text, if the turn had none, or the known one with what these messages add to it, and its tokens.
    user: str | None = None
    user_tokens: int = 0
    #: The number of messages the turn had when this was made; None if unknown.
    after: int | None = None
    #: See `TurnDraft`.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class AddStep:
    """Add a tool call and its result to an open turn."""

    scope: Scope
    turn_id: str
    step: Step
    tokens_added: int
    #: See `TurnDraft`.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    """The answer has arrived: the turn is done and takes its place in the log."""

    scope: Scope
    turn_id: str
    assistant: str | None
    assistant_tokens: int
    tokens_added: int
    #: The number of messages the turn had when the answer was taken from them; None if it was given
    #: separately.
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """The answer will not come: of the turn, windows, summaries and indexes see only what the user said."""

    scope: Scope
    turn_id: str
    #: Tokens of what the user said, as a window shows it; None if it is the turn's `user` and nothing else.
    tokens: int | None = None


TurnChange: TypeAlias = AddStep | Extend | Complete | Abort


def epoch_of(change: TurnChange) -> int | None:
    """The epoch of a change; None if it brings no pages."""
    return change.epoch if isinstance(change, AddStep | Extend) else None


@dataclass(frozen=True, slots=True)
class CheckpointDraft:
    """A summary about to take effect. `expected_version` is the checkpoint it was made from (0: none)."""

    scope: Scope
    id: str
    summary: str
    #: The `answer` column of the checkpoint's row.
    text: str
    covered_through_seq: int
    expected_version: int
    tokens: int
    counter: str
    anchors: tuple[str, ...] = ()
    archive_refs: tuple[str, ...] = ()
    #: `ConversationInfo.epoch` of the view it was made from; None skips the check for erasures.
    epoch: int | None = None
    fallback_reason: str | None = None


class Beside(TypedDict, total=False):
    """What belongs to restored entries."""

    agent: str | None
    session: JsonObject | None
    labels: Labels
    #: Bytes that messages of the entries refer to, by SHA-256.
    blobs: Mapping[str, bytes]
    #: Watermarks by tier.
    marks: Mapping[str, int]
    expect_empty: bool
    epoch: int | None
    #: The conversation the entries are copied from.
    origin: Scope | None


class TurnLog(ABC):
    """The source of truth: every turn in the order in which it ended.

    * `seq` counts turns that ended, checkpoints and resets of a conversation from 1, without gaps or
      duplicates, however many processes write.
    * `created` strictly increases with `seq`, even if the clock does not.
    * What a call returned is durable.
    * The first use of a conversation decides its owner for good: the user named then, or none. A scope that
      names a different user, omits the owner, or names a user where there is no owner gets `ConflictError`.
    * The session value is updated in the same transaction as the turn.
    """

    @abstractmethod
    async def append(self, draft: TurnDraft) -> Turn:
        """Write a turn.

        The same id with the same user text, assistant text, steps and messages returns the stored turn
        (whatever its status); with different ones it raises `ConflictError` and changes nothing. For an open
        turn only the user text is compared: beginning it again returns it in its current state. Blobs are
        written with the turn; one that does not match its hash raises `InvalidArgumentError`. Given labels
        replace the conversation's. A turn whose pages were erased since its epoch raises `ErasedError`, as in
        `advance`.
        """

    @abstractmethod
    async def advance(self, change: TurnChange) -> Turn:
        """Change an open turn.

        Completing twice with the same text and aborting twice return the stored turn; any other change to a
        turn that has ended raises `ConflictError`; an unknown turn raises `NotFoundError`. Adding a step that
        equals an existing one in call id, tool, input and result returns the turn unchanged, whatever its
        page and token counts; a different result under the same call id is a separate step. Messages that the
        turn already has, at the position `Extend.after` or else at its end, return it unchanged. Messages
        made for an earlier state of the turn (a different number of messages, or steps other than they name)
        raise `ConflictError`: read the turn and make them again. So does an answer whose `Complete.after` is
        not the number of messages, if the turn has more than the short form.
        """

    @abstractmethod
    async def mark(self, marker: "CheckpointDraft | ResetDraft") -> Entry:
        """Write a checkpoint or a reset.

        A checkpoint raises `ConflictError` if its `expected_version` is not the conversation's newest, or if
        it would cover less than that one, more than exists, or only turns from before the last reset. A reset
        drops the checkpoint too: the next one is made from none (0), while the version keeps counting. The
        same marker with the same id returns the stored one. One made from a view that has been erased since
        raises `ErasedError`.
        """

    @abstractmethod
    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        """Assign an unused conversation to this scope's user, or to no owner if the scope names no user.

        A conversation already in use stays as it is; if it is not this scope's, `ConflictError` is raised. If
        the scope was erased since `epoch`, `ErasedError` is raised.
        """

    @abstractmethod
    async def restore(self, entries: Sequence[Entry], **beside: Unpack[Beside]) -> int:
        """Write entries of one conversation exactly as they were (for imports); returns how many were new.

        Into an empty conversation they keep `seq` and `created`; it gets the agent, the labels and, unless a
        session exists, the given session value or else one derived from the entries. `blobs` holds the bytes
        that messages of the entries refer to, by SHA-256; each is written with the turns that refer to it.
        Into a conversation with entries, turns with a new id are appended and the rest is left out; an
        existing turn with a different text raises `ConflictError`, and with `expect_empty` so does any
        existing entry. Entries that do not make up one conversation raise `InvalidArgumentError`. `marks` are
        watermarks by tier, written together with the entries of an empty conversation, so that no tier sees
        the entries without them. If the scope, or the `origin` the entries are copied from, was erased since
        the `epoch` in which they were read, `ErasedError` is raised.
        """


@dataclass(frozen=True, slots=True)
class ResetDraft:
    """Start the conversation over: what came before stays in the log but leaves the window."""

    scope: Scope
    id: str


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What a window needs: the newest live turns up to `budget_tokens`, but at least `min_turns`."""

    scope: Scope
    budget_tokens: int
    min_turns: int
    #: The open turn the window is for.
    open_turn: str | None = None


@dataclass(frozen=True, slots=True)
class LogView:
    """A conversation as a window sees it, read in one consistent snapshot."""

    head: ConversationInfo
    checkpoint: Checkpoint | None
    #: The newest turns that count after reset and checkpoint, oldest first, without gaps; each is `Turn.spoken`.
    turns: tuple[Turn, ...]
    open_turn: Turn | None = None
    #: The newest other open turns, oldest first; each is `Turn.spoken`.
    running: tuple[Turn, ...] = ()
    #: `user_snapshot` of the session value (allergies and the like), if there is a session.
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
class ConversationQuery:
    """Conversations of a scope, most recently written first; `after` continues after a conversation id."""

    scope: Scope
    limit: int = 100
    after: str | None = None


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """Turns that count, of some conversations of a tenant, by what was said in them."""

    tenant: str
    conversations: Sequence[str]
    #: Each must occur in what the user, the assistant or a tool said, as it is written; the case of ASCII letters is ignored.
    words: Sequence[str] = ()
    #: A tool that was called.
    tool: str | None = None
    #: When it was said: from `since` on, before `until`.
    since: datetime | None = None
    until: datetime | None = None
    #: Only turns with an `after_seq` < `seq` < `before_seq`.
    after_seq: int = 0
    before_seq: int = MAX_INT


class LogReader(ABC):
    """Reads the log. A reader never waits for a writer."""

    @abstractmethod
    async def epoch(self, scope: Scope | None = None) -> int:
        """The number of the last erasure in this store, 0 if there was none: data read before it may contain
        erased text.

        With a scope, the last erasure of its conversation, its user or its tenant.
        """

    @abstractmethod
    async def view(self, request: ViewRequest) -> LogView:
        """What a window needs, in at most two queries and without reading turns it does not return.

        Reads backwards from the newest turn that counts and stops before the turn that would exceed `budget_tokens`,
        once `min_turns` are read. An unused conversation gives an empty view. A conversation that is not this
        scope's raises `ConflictError`; an unknown `open_turn` raises `NotFoundError`.
        """

    @abstractmethod
    async def owner(self, scope: Scope) -> Scope | None:
        """The conversation named by a scope, with its owner, regardless of the scope's user; None while unused.

        For code that administers a whole tenant: every other verb refuses a conversation that is not the
        scope's.
        """

    @abstractmethod
    async def entries(self, query: EntryQuery) -> list[Entry]:
        """A slice of one conversation; one that is not this scope's raises `ConflictError`."""

    @abstractmethod
    async def heads(self, query: ConversationQuery) -> list[ConversationInfo]:
        """The conversations of a tenant, or of one of its users, or the one named, if it is this scope's.

        An `after` that is not in the list raises `NotFoundError`, as in every list.
        """

    @abstractmethod
    async def matching(self, query: MatchQuery) -> list["TurnRef"]:
        """Where the turns are, by conversation id, then newest first.

        Ownership is not checked, and every turn in the range is looked at: callers name the conversations of their scope, and
        bound the range. What a tool returned is searched as it is stored with the turn: of an archived result, its placeholder.
        """

    @abstractmethod
    async def located(self, scope: Scope, turn_ids: Sequence[str]) -> Mapping[str, "TurnPlace"]:
        """Where each turn is; those that the scope does not see are left out.

        Copies in forks have the same id: the conversation that came first is named.
        """


#: So many turns are read in no time: a store need not leave the thread that asks.
FEW_TURNS = 50


@dataclass(frozen=True, slots=True)
class SinceRequest:
    """Turns of a scope that count and that an index does not know yet."""

    scope: Scope
    #: The highest `seq` already known, by conversation.
    known: Mapping[str, int]
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A reference to a turn."""

    conversation: str
    seq: int


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """A turn's conversation, with its owner, and its position there; None while it is open."""

    scope: Scope
    seq: int | None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A turn and the turns next to it that count; each is `Turn.spoken`."""

    turn: Turn
    before: Turn | None
    after: Turn | None


class TurnSource(ABC):
    """Where indexes catch up from, and where hits get their text."""

    @abstractmethod
    async def since(self, request: SinceRequest) -> list[Turn]:
        """Turns that count after `known`, each as `Turn.spoken`, ordered by conversation id, then `seq`; at most `limit`.

        A scope with a user gives that user's conversations, one with a conversation only that one, if it is
        this scope's. Turns before a reset are included: they left the window, not the memory.
        """

    @abstractmethod
    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        """The referenced turns with their neighbours, in the same order; missing ones are left out."""

    async def at(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Turn]:
        """The same without the neighbours."""
        return [near.turn for near in await self.around(scope, refs)]
