"""What a kind of memory is: it absorbs turns, offers candidates for a window, catches up in the background, and forgets.

Every verb has a default, so a tier implements only those it needs. The engine knows that there are tiers, but
not which.
"""

from abc import ABC
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar, cast

from pagefile.ports import LogView, Vector
from pagefile.records import ErasureReceipt, JsonObject, JsonValue, Page, Scope, Step, Turn
from pagefile.text.queries import searched
from pagefile.text.tokens import TokenCounter
from pagefile.tiers import fair_pool
from pagefile.window.budget import EXTRA_TOKENS, share_of
from pagefile.window.candidates import Block, Candidate, Form, candidate_from, candidate_json
from pagefile.window.forms import Leaving, Text
from pagefile.window.parts import escape
from pagefile.window.receipt import Receipt, Window
from pagefile.window.wording import WORDINGS, Language, Wording

R = TypeVar("R")
Note = Callable[[str], None]
#: Checks that a turn may be written before anything of it is stored elsewhere; returns the current epoch.
Admit = Callable[[], Awaitable[int]]

#: The trace of a tier that failed: it offered nothing.
FAILED = "failed"
#: Counts tokens with a named tokenizer.
Counter: TypeAlias = TokenCounter
#: Vectors of the texts of one message, which several tiers need.
Vectors: TypeAlias = dict[str, Vector]
#: A value without what may not be stored of a tenant.
Redact: TypeAlias = Callable[[str, Any], Any]
#: What an erasure removed, by table or kind.
Counts = Mapping[str, int]


def unredacted(_tenant: str, value: Any) -> Any:
    """Everything may be stored."""
    return value


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """The window that candidates are requested for."""

    scope: Scope
    query: str | None
    view: LogView
    window_tokens: int
    recent_turns: int
    #: Adds a note to the receipt.
    note: Note
    #: Counts tokens the way this window does.
    count: Callable[[str], int] = len
    threshold: float = 0.75
    #: Pages to show in full, by uuid.
    load: tuple[str, ...] = ()
    #: Pages that are back in this window, by turn and index of the step whose placeholder they replace. The
    #: archive, which is asked first, fills this in, and the history shows them in place.
    pages: dict[tuple[str, int], Sequence[Text]] = field(
        default_factory=dict[tuple[str, int], Sequence[Text]]
    )
    #: Pages of the running turn, by index of the step.
    running: dict[int, Sequence[Text]] = field(default_factory=dict[int, Sequence[Text]])
    #: What is known about the pages that this window may name, by uuid; filled in by the archive as well.
    known_pages: dict[str, Page] = field(default_factory=dict[str, Page])
    #: Tokens that never leave: the instructions.
    instructions_tokens: int = 0
    #: Which results left this window. The archive decides, and the history shows what remains.
    leaving: Leaving = field(default_factory=lambda: Leaving({}))
    #: The run whose workspace may be shown: the scope of the handle that asks, and the run's name.
    run: tuple[Scope, str] | None = None
    #: The language of what the tiers write themselves.
    language: Language = "zh"
    #: The language of the day in the system text, if it is another.
    day_language: Language | None = None
    #: The project and the agent it is made for.
    project: str | None = None
    agent: str | None = None
    #: When the question was asked, by the user's clock; None if that does not matter.
    at: datetime | None = None
    #: What a tier found that the log will not show later: recorded with the call, so that its window can be
    #: rebuilt.
    traces: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    #: What tiers embedded for this window, so that each text is embedded once.
    vectors: Vectors = field(default_factory=dict[str, Vector])

    @property
    def searched(self) -> str:
        """The part of the query that is searched for."""
        return searched(self.query or "")

    @property
    def wording(self) -> Wording:
        return WORDINGS[self.language]

    def text(self, name: str, text: str, *, rank: int = 0, score: float | None = None) -> Candidate:
        """A candidate that is one text in the window's memory block; lower ranks are kept longer.

        The text is escaped, so that nothing in it can pass for one of our tags.
        """
        shown = escape(text)
        return Candidate(name, "extra", (Form(self.count(shown), text=shown),), rank, score)


@dataclass(frozen=True, slots=True)
class PastWindow:
    """What was recorded with a call, and what is different this time."""

    #: The conversation, with its owner at the time.
    scope: Scope
    #: What each tier recorded, by name.
    traces: Mapping[str, JsonValue]
    receipt: Receipt
    #: Changed arguments and settings, by dotted name; empty to rebuild the window as it was.
    changes: Mapping[str, JsonValue]
    #: The original window, if this one has changes.
    before: WindowRequest | None = None

    def changed(self, *names: str) -> bool:
        """Whether one of these was changed; a name that ends with a dot is a whole section."""
        sections = tuple(name for name in names if name.endswith("."))
        return any(change in names or change.startswith(sections) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Pace:
    """When a tier's background work is done. Times are in seconds."""

    #: Work on a conversation starts when nothing has been written to it for this long …
    quiet_s: float = 0.0
    #: … or when it has waited this long.
    longest_wait_s: float = 5.0
    #: When to scan for what earlier processes left behind, counted from opening; None to never scan.
    first_sweep_s: float | None = None
    #: How often that scan is repeated.
    sweep_every_s: float = 600.0
    #: How many conversations are worked on concurrently.
    at_once: int = 1
    #: Whether everything pending is passed to one call of `maintain_all`.
    together: bool = False
    #: The shortest and the longest pause after a failure.
    first_rest_s: float = 5.0
    longest_rest_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a round of background work covers."""

    #: Conversations that were written to.
    scopes: Sequence[Scope]
    #: Whether to include what earlier processes left behind.
    sweep: bool
    #: Whether a caller is waiting for it to finish.
    hurried: bool
    #: Sleeps, unless a caller is waiting.
    pause: Callable[[float], Awaitable[None]]
    #: Whether turns are being written right now.
    busy: Callable[[], bool]
    #: Calls `maintain` for a conversation; if that raises, only this conversation is retried after a pause.
    attempt: Callable[[Scope], Awaitable[None]]


class RetryLater(Exception):  # noqa: N818 - says what to do, and nothing went wrong that is not known yet
    """Background work cannot continue now and is retried after `seconds`. The tier itself has reported why."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds:g} s")
        self.seconds = seconds


class Tier(ABC):
    """One kind of memory."""

    #: Its name in receipts, logs and metrics.
    name: str
    #: Whether it works for incognito conversations too: only if it keeps nothing beyond the handle.
    incognito: bool = False
    #: The watermark of a tier that reads each turn once: a fork inherits how far it has read. None: a fork is
    #: read from the start.
    reads_once: str | None = None
    #: How its background work is paced.
    pace: Pace = Pace()

    def report(self, error: Exception, *, logs: bool = True) -> None:
        """Report a failure that costs context but not the answer.

        The engine replaces this: it counts the failure and logs it, unless it repeats earlier ones.
        """

    # -- turns in -----------------------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        """A turn was begun, completed or aborted, and is in the log; `turn.status` says which.

        Return True to have `maintain` called for its conversation in the background. Keep it short: a caller waits.
        """
        return False

    async def absorb_step(self, scope: Scope, raw: Step, kept: Step, turn_id: str, admit: Admit) -> Step:
        """The step of a tool call as it is to be stored. `raw` has the whole result, `kept` what earlier
        tiers made of it.

        A tier that stores part of it elsewhere calls `admit` first, which raises if the turn will be refused,
        and passes on the epoch it returns. If the turn is refused after all, the step is withdrawn.
        """
        return kept

    async def withdraw(self, scope: Scope, steps: Sequence[Step]) -> None:
        """The log refused a turn: discard what was stored for these steps."""

    # -- windows out --------------------------------------------------------------------------------------------------

    async def offer(self, request: WindowRequest) -> Sequence[Candidate]:
        """What this tier would put into the window, in its own order of preference.

        Candidates of third-party tiers are texts that may be cut, with unique ids; a window waits two seconds for them.
        """
        return ()

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        """The maximum number of tokens for each of this tier's blocks."""
        return {"extra": share_of(window_tokens, EXTRA_TOKENS)}

    async def reconsider(self, request: WindowRequest, window: Window) -> bool:
        """Whether something changed because of this window, so that it must be compiled again before it goes out."""
        return False

    def shown(self, request: WindowRequest, window: Window) -> bool:
        """A window was handed out. Return True to have `maintain` called for its conversation in the background."""
        return False

    # -- background work ----------------------------------------------------------------------------------------------

    async def maintain(self, scope: Scope) -> None:
        """Catch up with a conversation. Must be idempotent; if it raises, it is retried after a pause."""

    async def maintain_all(self, backlog: Backlog) -> None:
        """Catch up with several conversations at once, if the pace asks for that; if it raises, all are retried later."""
        left = await self.behind() if backlog.sweep else ()
        for scope in dict.fromkeys((*backlog.scopes, *left)):
            await backlog.attempt(scope)

    @property
    def drains(self) -> bool:
        """Whether closing waits a while for pending work."""
        return True

    async def behind(self) -> Sequence[Scope]:
        """Conversations that other or earlier processes left for this tier to catch up with."""
        return ()

    # -- erasing ------------------------------------------------------------------------------------------------------

    async def forget(self, scope: Scope) -> Counts:
        """Erase what this tier holds of a conversation, a user or a tenant outside the store, and count what
        was removed.

        It is called before the store erases the scope and again afterwards, so that nothing written in
        between remains. If the second call of a third-party tier raises, that is reported once everything
        else is erased.
        """
        return {}

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        """Erase what this tier holds outside the store of one turn or one page that the store has erased.

        `receipt` identifies it, with every conversation and `seq` of a turn. A tier that holds nothing about
        single turns need not implement it; for a third-party tier without this verb, the receipt says that it
        may still hold something.
        """

    # -- replay -------------------------------------------------------------------------------------------------------

    def trace(self, offered: Sequence[Candidate]) -> JsonValue:
        """What is recorded with a call so that its window can be rebuilt; None if the log is enough."""
        return [candidate_json(one) for one in offered]

    async def replay(self, past: PastWindow) -> "Tier":
        """A tier that offers what this one offered when a recorded window was made."""
        return Remembered(self, traced(past.traces.get(self.name)))

    # -- inspection ---------------------------------------------------------------------------------------------------

    async def describe(self) -> JsonObject:
        """Its part of `memory.describe()`, by key."""
        return {}


class OwnTier(Tier):
    """A tier of ours: its windows can be rebuilt from the log, and what it holds outside the store is only cached."""

    def trace(self, offered: Sequence[Candidate]) -> JsonValue:
        return None

    async def replay(self, past: PastWindow) -> Tier:
        return self

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        await self.forget(Scope(receipt.scope.tenant))


@dataclass(eq=False, repr=False)
class Remembered(Tier):
    """Offers what was offered then, if that still applies; else what the tier offers now."""

    tier: Tier
    offered: Sequence[Candidate] = ()
    holds: Callable[[WindowRequest], bool] = lambda _: True

    def __post_init__(self) -> None:
        self.name = self.tier.name

    async def offer(self, request: WindowRequest) -> Sequence[Candidate]:
        return self.offered if self.holds(request) else await self.tier.offer(request)

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return self.tier.limits(window_tokens)


@contextmanager
def guarded(failed: Callable[[Exception], object]) -> Generator[None]:
    """Calls `failed` with whatever the block raises: for foreign code, such as a model, which may raise anything."""
    try:
        yield
    except Exception as error:
        failed(error)


async def off_loop(work: Callable[[], R], size: int, least: int) -> R:
    """Do work in a thread if it is large enough to block the event loop."""
    return work() if size < least else await fair_pool.pool().run(work)


def within(home: Scope, scope: Scope) -> bool:
    """Whether something may belong to a scope; without a user it may belong to any user of its tenant."""
    theirs = scope.user is None or home.user in {None, scope.user}
    return home.tenant == scope.tenant and theirs and scope.conversation in {None, home.conversation}


def homes(receipt: ErasureReceipt) -> list[Scope]:
    """The conversations in which a turn or a page was erased, without their owners."""
    return [Scope(receipt.scope.tenant, None, name) for name, _ in receipt.places]


def traced(trace: JsonValue) -> list[Candidate]:
    """The candidates that a trace holds; none if the tier failed or recorded none."""
    return [candidate_from(cast("JsonObject", one)) for one in traced_rows(trace) if isinstance(one, Mapping)]


def traced_rows(trace: JsonValue) -> Sequence[Any]:
    """The rows of a trace that is a list; none otherwise."""
    return trace if isinstance(trace, Sequence) and not isinstance(trace, str) else ()
