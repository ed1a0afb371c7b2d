"""What a kind of memory is: it absorbs turns, offers candidates for a window, catches up in the background, and forgets.

Every verb has a default, so a tier writes only those it needs. The engine knows that there are tiers, and not which.
"""

from abc import ABC
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pagefile.ports import LogView
from pagefile.records import ErasureReceipt, JsonObject, JsonValue, Scope, Step, Turn
from pagefile.tiers.past import PastWindow
from pagefile.window.budget import EXTRA_TOKENS, share_of
from pagefile.window.candidates import Block, Candidate, Form, candidate_from, candidate_json
from pagefile.window.forms import Text
from pagefile.window.receipt import Window
from pagefile.window.render import escape

Note = Callable[[str], None]
#: Asks whether a turn may be written to, before anything of it is stored elsewhere; gives the epoch of that moment.
Admit = Callable[[], Awaitable[int]]

#: The trace of a tier that failed: it offered nothing.
FAILED = "failed"
#: What erasing removed, by table or kind.
Counts = Mapping[str, int]
_NOTHING: Counts = {}


class Report(Protocol):
    """Takes a failure that no caller has to handle."""

    def __call__(self, error: Exception, *, logs: bool = True) -> None: ...


class Counter(Protocol):
    """Counts tokens, and says with what."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """The window that candidates are wanted for."""

    scope: Scope
    query: str | None
    view: LogView
    window_tokens: int
    recent_turns: int
    #: Writes something worth knowing into the receipt.
    note: Note
    #: Counts tokens as this window does.
    count: Callable[[str], int] = len
    threshold: float = 0.75
    #: Pages to show in full, by uuid.
    load: tuple[str, ...] = ()
    #: Pages that are back in this window, by turn and number of the step whose placeholder they replace. The archive, which is
    #: asked first, writes them here, and the history shows them in their places.
    pages: dict[tuple[str, int], Sequence[Text]] = field(
        default_factory=dict[tuple[str, int], Sequence[Text]]
    )
    #: Pages of the running turn, by the number of the step.
    running: dict[int, Sequence[Text]] = field(default_factory=dict[int, Sequence[Text]])
    #: The run whose workspace may be shown: the scope of the handle that asks, and the run's name.
    run: tuple[Scope, str] | None = None
    #: What a tier found and the log cannot tell later: written down with the call, so that its window can be made again.
    traces: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def text(self, name: str, text: str, *, rank: int = 0, score: float | None = None) -> Candidate:
        """A candidate that is one text in the memory block of the window; those of lower rank are kept longer.

        The text is escaped, so that nothing in it can pass for a tag of ours.
        """
        shown = escape(text)
        return Candidate(name, "extra", (Form(self.count(shown), text=shown),), rank, score)


@dataclass(frozen=True, slots=True)
class Pace:
    """When the background work of a tier is done. Times are in seconds."""

    #: Work on a conversation begins when nothing was written to it for this long …
    quiet_s: float = 0.0
    #: … or when it has waited this long.
    longest_wait_s: float = 5.0
    #: The first look at what earlier processes left behind, after opening; None for no look at all.
    first_sweep_s: float | None = None
    #: How often that is looked for again.
    sweep_every_s: float = 600.0
    #: How many conversations are worked on at the same time.
    at_once: int = 1
    #: Everything that waits is handed over in one call of `maintain_all`.
    together: bool = False
    #: The rest after a failure: the first one, and the longest.
    first_rest_s: float = 5.0
    longest_rest_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a round of background work is about."""

    #: Conversations that were written to.
    scopes: Sequence[Scope]
    #: What earlier processes left behind is wanted too.
    sweep: bool
    #: Somebody waits for the end of it.
    hurried: bool
    #: Waits, unless somebody is in a hurry.
    pause: Callable[[float], Awaitable[None]]
    #: Whether turns are being written right now.
    busy: Callable[[], bool]
    #: Calls `maintain` for a conversation; when that raises, this conversation alone is tried again after a rest.
    attempt: Callable[[Scope], Awaitable[None]]


class RetryLater(Exception):  # noqa: N818 - says what to do, and nothing went wrong that is not known yet
    """Background work cannot go on now; it is tried again after so many seconds. The tier itself has said why."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds:g} s")
        self.seconds = seconds


def unreported(error: Exception, *, logs: bool = True) -> None:
    """A tier without an engine reports to none."""


class Tier(ABC):
    """One kind of memory."""

    #: The word for it in receipts, logs and metrics.
    name: str
    #: Whether it works for incognito conversations too: only a tier that keeps nothing beyond the handle may.
    incognito: bool = False
    #: The watermark of a tier that reads each turn once: what it has read counts as read in a fork too. None: a fork is read anew.
    reads_once: str | None = None
    #: How its background work is paced.
    pace: Pace = Pace()
    #: Told of a failure that costs context and no answer; the engine counts and logs it, unless it is one of many alike.
    report: Report = staticmethod(unreported)

    # -- turns in -----------------------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        """A turn was begun, completed or aborted, and is in the log; `turn.status` says which.

        True has `maintain` called for its conversation in the background. This is on the caller's way: keep it short.
        """
        return False

    async def absorb_step(self, scope: Scope, raw: Step, kept: Step, turn_id: str, admit: Admit) -> Step:
        """A tool returned: the step as it is stored. `raw` has the whole result, `kept` what the tiers before made of it.

        A tier that stores something of it elsewhere calls `admit` first, which raises where the turn will be refused, and names
        the epoch that it gives. What is refused all the same is withdrawn.
        """
        return kept

    async def withdraw(self, scope: Scope, steps: Sequence[Step]) -> None:
        """The log refused a turn: let go of what was stored for these steps of it."""

    # -- windows out --------------------------------------------------------------------------------------------------

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """What this tier would put into the window, in its own order of preference.

        Candidates of tiers from outside are texts that may be cut, each with an id that no other has. A window waits two seconds for them.
        """
        return ()

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        """The most tokens that blocks of this tier may take of a window."""
        return {"extra": share_of(window_tokens, EXTRA_TOKENS)}

    async def reconsider(self, occasion: Occasion, window: Window) -> bool:
        """Whether something was changed because of this window, so that it has to be made again before it is handed out."""
        return False

    def shown(self, occasion: Occasion, window: Window) -> bool:
        """A window was handed out. True has `maintain` called for its conversation in the background."""
        return False

    # -- background work ----------------------------------------------------------------------------------------------

    async def maintain(self, scope: Scope) -> None:
        """Catch up with a conversation. Being called once too often must do no harm; what raises is tried again after a rest."""

    async def maintain_all(self, backlog: Backlog) -> None:
        """Catch up with several conversations at once, for a tier whose pace asks for that.

        What raises is tried again after a rest, with all of them.
        """
        left = await self.behind() if backlog.sweep else ()
        for scope in dict.fromkeys((*backlog.scopes, *left)):
            await backlog.attempt(scope)

    @property
    def drains(self) -> bool:
        """Whether closing waits for what is left to do, for a while."""
        return True

    async def behind(self) -> Sequence[Scope]:
        """Conversations that earlier processes, or others, left for this tier to catch up with."""
        return ()

    # -- erasing ------------------------------------------------------------------------------------------------------

    async def forget(self, scope: Scope) -> Counts:
        """Erase what this tier holds of a conversation, a user or a tenant outside the store, and count what went.

        It is called before the store erases the scope and once more afterwards, so that nothing written in between stays. What raises
        in a tier from outside the second time is told once everything else is erased.
        """
        return _NOTHING

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        """Erase what this tier holds of one turn or one page outside the store, which has erased it.

        `receipt` names it, and every conversation and place in which a turn stood. A tier that holds nothing of single turns lets
        it be; of a tier from outside that has no such verb the receipt says that it may hold something.
        """

    # -- made again ---------------------------------------------------------------------------------------------------

    def trace(self, offered: Sequence[Candidate]) -> JsonValue:
        """What is written down with a call, so that its window can be made again; None when the log tells it all."""
        return [candidate_json(one) for one in offered]

    async def replay(self, past: PastWindow) -> "Tier":
        """The tier that offers what this one offered when a recorded window was made."""
        return Remembered(self, traced(past.traces.get(self.name)))

    # -- looking in ---------------------------------------------------------------------------------------------------

    async def describe(self) -> JsonObject:
        """What `memory.describe()` says of it, by key."""
        return {}


class Remembered(Tier):
    """Offers what was offered then, where that still holds; else what the tier offers now."""

    def __init__(
        self,
        tier: Tier,
        offered: Sequence[Candidate] = (),
        holds: Callable[[Occasion], bool] = lambda _: True,
    ) -> None:
        self.name = tier.name
        self._tier = tier
        self._offered = offered
        self._holds = holds

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        return self._offered if self._holds(occasion) else await self._tier.offer(occasion)

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return self._tier.limits(window_tokens)


def within(home: Scope, scope: Scope) -> bool:
    """Whether something is of a scope; what names nobody may be of anybody of its tenant."""
    return (
        home.tenant == scope.tenant
        and (scope.user is None or home.user in {None, scope.user})
        and (scope.conversation is None or home.conversation == scope.conversation)
    )


def homes(receipt: ErasureReceipt) -> list[Scope]:
    """The conversations in which a turn or a page was erased, whoever owns them."""
    return [Scope(receipt.scope.tenant, None, name) for name, _ in receipt.places]


def traced(trace: JsonValue) -> list[Candidate]:
    """The candidates that a trace holds; none when the tier failed or wrote none down."""
    rows = trace if isinstance(trace, Sequence) and not isinstance(trace, str) else ()
    return [candidate_from(one) for one in rows if isinstance(one, Mapping)]
