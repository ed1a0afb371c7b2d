"""The turn log: writing it, reading it, catching up with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from pagefile.content import Message
from pagefile.records import Checkpoint, Entry, Head, JsonObject, JsonValue, Scope, Status, Step, Turn


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of a conversation beside its words; None leaves what is there."""

    project: str | None = None
    language: str | None = None
    timezone: str | None = None


NO_LABELS = Labels()


def labels_of(head: Head) -> Labels:
    """The labels that a conversation has."""
    return Labels(head.project, head.language, head.timezone)


# Every turn that is recorded is one for a moment: frozen, it would take four times as long to make.
@dataclass(slots=True)
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
    #: The messages in their order, where they are more than the short form; their steps are `steps`.
    layout: tuple[Message, ...] | None = None
    #: Bytes of images and files that the messages name, by their SHA-256.
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    labels: Labels = NO_LABELS
    #: The epoch in which pages of its steps were written; None: it has none, and is written whatever was erased since.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Extend:
    """Add messages to an open turn.

    Steps that the messages begin come behind those the turn has, and the messages name them by that number. `results` are steps of the
    turn that had no result yet, by number, as they are with it.
    """

    scope: Scope
    turn_id: str
    messages: tuple[Message, ...]
    tokens_added: int
    steps: tuple[Step, ...] = ()
    results: Mapping[int, Step] = field(default_factory=dict[int, Step])
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    #: The first text of the user, when the turn had none, and its tokens.
    user: str | None = None
    user_tokens: int = 0
    #: How many messages the turn had when this was made; None: not known.
    after: int | None = None
    #: As in `TurnDraft`.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class AddStep:
    """Add a tool call and its result to an open turn."""

    scope: Scope
    turn_id: str
    step: Step
    tokens_added: int
    #: As in `TurnDraft`.
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    """The answer is there: the turn is done and takes its place in the log."""

    scope: Scope
    turn_id: str
    assistant: str | None
    assistant_tokens: int
    tokens_added: int
    #: How many messages the turn had when the answer was taken from them; None: it was not.
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """The answer will not come: the turn stays in the log and enters no window."""

    scope: Scope
    turn_id: str


TurnChange: TypeAlias = AddStep | Extend | Complete | Abort


def epoch_of(change: TurnChange) -> int | None:
    """The epoch that a change names; None for one that brings no pages."""
    return change.epoch if isinstance(change, AddStep | Extend) else None


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
    #: `Head.epoch` of the view it was made from; None: written whatever was erased since.
    epoch: int | None = None


class TurnLog(ABC):
    """The only truth: every turn in the order in which it ended.

    * `seq` is 1, 2, 3 … per conversation over turns that ended, checkpoints and resets: no gap, no duplicate, whoever
      writes from however many processes.
    * `created` is strictly increasing with `seq`, even when the clock is not.
    * What a call returned is durable.
    * Whose a conversation is, its first use decides for good: the user who is named then, or nobody when none is. A scope that
      names another user, or none where there is one, or one where there is none, gets `ConflictError`.
    * The session value of document 001 is updated in the same transaction as the turn.
    """

    @abstractmethod
    async def append(self, draft: TurnDraft) -> Turn:
        """Write a turn.

        The same id with the same user text, assistant text, steps and messages returns what is stored (whatever its status);
        with others raises `ConflictError` and changes nothing. Of an open turn only the user text is compared: whoever
        begins it again gets it as far as it is. Blobs are written with the turn; one that is not what its hash says raises
        `InvalidTurnError`. Labels that are given take the place of the conversation's. A turn whose pages were erased since its
        epoch raises `ErasedError`, here as in `advance`.
        """

    @abstractmethod
    async def advance(self, change: TurnChange) -> Turn:
        """Move an open turn on.

        Completing twice with the same text and aborting twice return the stored turn; any other change of a turn that
        ended raises `ConflictError`; an unknown turn raises `NotFoundError`.

        Adding a step equal in call id, tool, input and result to one the turn has returns the turn unchanged, whatever its
        page and its token counts; another result under the same call id is a step of its own.

        Messages that the turn has already, at the place `Extend.after` names or else at its end, return it unchanged. Messages
        made for a turn that has moved on since (another number of messages, or other steps than they name) raise
        `ConflictError`: read the turn and make them again. So does an answer whose `Complete.after` is not the number of messages
        of a turn that is more than the short form.
        """

    @abstractmethod
    async def mark(self, marker: "CheckpointDraft | ResetDraft") -> Entry:
        """Write a checkpoint or a reset.

        A checkpoint whose `expected_version` is not the conversation's newest, or which would cover less than that one, or
        more than there is, or turns from before the last reset only, raises `ConflictError`. A reset forgets the checkpoint too:
        the next one is made from none (0), while the version goes on counting. The same marker with the same id returns
        what is stored. One made from a view that was erased since raises `ErasedError`.
        """

    @abstractmethod
    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        """A conversation that nobody used yet belongs to this scope's user from now on, or to nobody when it names none.

        One that is used already stays as it is; where it is not this scope's, `ConflictError`. Where the scope was erased since
        `epoch`, `ErasedError`.
        """

    @abstractmethod
    async def restore(
        self,
        entries: Sequence[Entry],
        *,
        agent: str | None = None,
        session: JsonObject | None = None,
        labels: Labels = NO_LABELS,
        blobs: Mapping[str, bytes] | None = None,
        marks: Mapping[str, int] | None = None,
        expect_empty: bool = False,
        epoch: int | None = None,
        origin: Scope | None = None,
    ) -> int:
        """Write entries of one conversation exactly as they were (for imports); returns how many were new.

        Into an empty conversation they keep `seq` and `created`; it gets the agent and the labels, and where no session is there,
        the session value as it is given, else one that follows from the entries. `blobs` are bytes that messages of the entries
        name, by their SHA-256; each goes with the turns that are written and name it. Into one that has entries, turns whose id is not there yet
        are appended, and the rest is left out; a turn that is there with another text raises `ConflictError`, and so does whatever
        is there for who says `expect_empty`. Entries that do not make up one conversation raise `InvalidTurnError`.

        `marks` are watermarks that an empty conversation gets with its entries, by tier: no tier finds the entries without them.
        Where the scope was erased since the `epoch` in which the entries were read, or the `origin` they are copied from,
        `ErasedError`.
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
    async def epoch(self, scope: Scope | None = None) -> int:
        """The number of the last erasure in this store, 0 when there was none: what was read before it may hold erased words.

        With a scope, of the last one that erased its conversation, its user or its tenant.
        """

    @abstractmethod
    async def view(self, request: ViewRequest) -> LogView:
        """What a window needs, in at most two queries and reading no turn it does not return.

        Reading goes back from the newest done turn and stops before the turn that would exceed `budget_tokens`, once
        `min_turns` are read. A conversation nobody wrote to gives an empty view. A conversation that is not this scope's raises
        `ConflictError`; an `open_turn` that is not there raises `NotFoundError`.
        """

    @abstractmethod
    async def owner(self, scope: Scope) -> Scope | None:
        """The conversation that a scope names, with the user it belongs to, whoever asks; None while nobody used it.

        For those who look after a whole tenant: every other verb refuses a conversation that is not the scope's.
        """

    @abstractmethod
    async def entries(self, query: EntryQuery) -> list[Entry]:
        """A slice of one conversation; one that is not this scope's raises `ConflictError`."""

    @abstractmethod
    async def heads(self, query: HeadQuery) -> list[Head]:
        """The conversations of a tenant, or of one of its users, or the one named, if it is this scope's.

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

        A scope with a user gives that user's conversations, one with a conversation only that one, if it is this scope's. Turns before a reset are
        included: they left the window, not the memory.
        """

    @abstractmethod
    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        """The turns pointed at, in that order, with neighbours; those that are gone are left out."""
