"""How far the vectors of turns are behind the log, seen from a process that need not be the one that makes them.

Words are always up to date; only recall by meaning lags. A look every second compares the watermarks with the log: a turn that an
earlier look saw beyond today's watermark has waited since that look. While the lag exceeds its limit and vectors are being made,
those who record wait a little, so that nobody writes faster than the encoder reads for long.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

import anyio

from pagefile.backoff import LookPause
from pagefile.ports import Behind
from pagefile.records import Scope
from pagefile.tiers.base import guarded

logger = logging.getLogger("pagefile")

LOOK_S = 1.0
#: Receipts name a lag from here on; below it is what a round of background work takes.
TOLD_S = 5.0
#: How long a turn waits at most.
LONGEST_WAIT_S = 1.0
#: Vectors that have not progressed for this long are not being made: waiting for them would help nothing.
_STALLED_S = 15.0
#: Looks remembered of a conversation.
_LOOKS = 120


@dataclass(slots=True)
class _Late:
    """A conversation that is behind: its watermark, and how long its log was at each look."""

    mark: int
    last_seq: int
    looks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_LOOKS))

    def since(self) -> float:
        """When the oldest turn beyond the watermark was first seen."""
        return next(at for at, last_seq in self.looks if last_seq > self.mark)


@dataclass(eq=False, repr=False)
class IndexLag:
    """The lag at the last look, of everything and of one user."""

    #: The conversations that are not fully read, a thousand at most.
    behind: Callable[[], Awaitable[Sequence[Behind]]]
    #: Beyond this, those who record wait; 0: never.
    limit_s: float = 0.0
    now: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    def __post_init__(self) -> None:
        self._late: dict[Scope, _Late] = {}
        self._progress = self.now()

    async def look(self) -> None:
        found, now = await self.behind(), self.now()
        before, self._late = self._late, {}
        for one in found:
            late = before.get(one.scope) or _Late(one.seq, one.last_seq)
            if one.seq != late.mark:
                self._progress = now
            late.mark, late.last_seq = one.seq, one.last_seq
            if not late.looks or late.looks[-1][1] < one.last_seq:
                late.looks.append((now, one.last_seq))
            self._late[one.scope] = late
        if before.keys() - self._late.keys() or not found:
            self._progress = now

    async def watch(self) -> None:
        """Look again and again; a store or a model that fails is reported by those who need it."""
        pause = LookPause(LOOK_S)
        while True:
            began = self.now()
            with guarded(lambda error: logger.debug("could not look how far vectors are: %s", error)):
                await self.look()
            await self.sleep(pause.after(self.now() - began))

    def turns(self, scope: Scope | None = None) -> int:
        """How many entries of the log are not read yet, at least."""
        return sum(late.last_seq - late.mark for late in self._of(scope))

    def seconds(self, scope: Scope | None = None) -> float:
        """How long the oldest of them has waited."""
        return max((self.now() - late.since() for late in self._of(scope)), default=0.0)

    def _of(self, scope: Scope | None) -> list[_Late]:
        return [late for home, late in self._late.items() if scope is None or home.within(scope)]

    def note(self, scope: Scope) -> str | None:
        """For a receipt: what recall by meaning does not know yet of a user."""
        seconds = self.seconds(scope)
        if seconds < TOLD_S:
            return None
        return f"recall by meaning is {seconds:.0f} s behind: {self.turns(scope)} turns are found by their words only"

    def wait_s(self, tenant: str) -> float:
        """How long a turn of a tenant waits now: the longer, the further its vectors are behind the limit."""
        if not self.limit_s or not self._late or self.now() - self._progress > _STALLED_S:
            return 0.0
        over = self.seconds(Scope(tenant)) / self.limit_s - 1
        return min(LONGEST_WAIT_S, over) if over > 0 else 0.0

    async def slow_down(self, tenant: str) -> None:
        if self._late and (seconds := self.wait_s(tenant)):
            await self.sleep(seconds)
