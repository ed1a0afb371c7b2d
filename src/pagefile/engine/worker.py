"""All background work, of every tier: when it begins, how much of it at once, what happens when it fails.

A tier says that a conversation wants looking after; its line decides when, and calls it. What raises is logged, counted and tried again
after a rest that doubles. What is left when the process ends, or dies, the next one finds behind its watermark.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

import anyio

from pagefile.backoff import Backoff
from pagefile.ports import Meter
from pagefile.records import Scope
from pagefile.tiers.base import Backlog, Pace, RetryLater

logger = logging.getLogger("pagefile")

#: Beyond this many waiting conversations it is cheaper to look at the log than to remember each.
_MOST_WAITING = 1000

Job = Callable[[Scope], Awaitable[object]]


class Chore(Protocol):
    """Something that has background work: every tier does."""

    name: str
    pace: Pace

    @property
    def drains(self) -> bool: ...

    async def maintain(self, scope: Scope) -> None: ...

    async def maintain_all(self, backlog: Backlog) -> None: ...

    async def behind(self) -> Sequence[Scope]: ...


@dataclass(slots=True)
class _Waiting:
    """A conversation that wants work, and since when."""

    first: float
    due: float
    jobs: dict[Job, None]


class _Signal:
    """An event that can be set again and again."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        # One that is not set may be waited for: replaced, it would never wake its waiters.
        if self._event.is_set():
            self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()

    def pulse(self) -> None:
        """Wake all who wait now."""
        self._event.set()
        self._event = anyio.Event()


class Line:
    """The background work of one tier."""

    def __init__(self, chore: Chore, meter: Meter, *, poll_s: float | None = None) -> None:
        self.chore = chore
        self._meter = meter
        self._pace = chore.pace
        self._every_s = self._pace.sweep_every_s if poll_s is None else poll_s
        self._waiting: OrderedDict[Scope, _Waiting] = OrderedDict()
        self._running: set[Scope] = set()
        #: What failed, waiting for the end of the rest.
        self._owed: OrderedDict[Scope, dict[Job, None]] = OrderedDict()
        self._backoff = Backoff(first_s=self._pace.first_rest_s, longest_s=self._pace.longest_rest_s)
        self._polls = poll_s is not None
        first = self._pace.first_sweep_s if poll_s is None else 0.0
        #: When what others left behind is looked for next; None for never.
        self._sweep_at = None if first is None else monotonic() + first
        self._swept = self._sweep_at is None
        self._last_write = -1e9
        self._rounds = 0
        self._in_round = False
        #: A round about conversations that were written to here is under way.
        self._owes_writes = False
        self._hurried = 0
        self._wake = _Signal()
        #: Until when the last one to pause does so.
        self._wakes_at = float("inf")
        self._hurry = _Signal()
        self._sweeping = _Signal()
        self._progress = _Signal()
        #: How often work failed since opening.
        self.failures = 0

    # -- asking for work ----------------------------------------------------------------------------------------------

    def wake(self, scope: Scope, job: Job | None = None) -> None:
        """Have a conversation looked after; asked for twice, it is done once. A job of one's own never runs beside that."""
        now = monotonic()
        self._last_write = now
        if self._pace.together and scope not in self._waiting and len(self._waiting) >= _MOST_WAITING:
            self.look()
            return
        waiting = self._waiting.setdefault(scope, _Waiting(now, now, {}))
        quiet_until = now if job is not None else now + self._pace.quiet_s
        waiting.due = min(quiet_until, waiting.first + self._pace.longest_wait_s)
        waiting.jobs[job or self.chore.maintain] = None
        # Who wakes by then anyway need not be woken for every turn.
        if waiting.due < self._wakes_at:
            self._wake.set()

    def look(self) -> None:
        """Much was written, by whomever: look for all of it."""
        if self._pace.first_sweep_s is not None:
            self._sweep_at = 0.0
            self._swept = False
            self._sweeping.set()
            self._wake.set()

    def drop(self, within: Callable[[Scope], bool]) -> None:
        """Forget the work on conversations that were erased."""
        for queue in (self._waiting, self._owed):
            for scope in [scope for scope in queue if within(scope)]:
                queue.pop(scope)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not (self._waiting or self._running or self._in_round)

    async def settle(self) -> None:
        """Wait until what is written by now was looked after; what fails is tried again later, without waiting."""
        self._pay()
        await self._finish()

    async def _finish(self) -> None:
        self._hurried += 1
        try:
            await (self._settle_rounds() if self._pace.together else self._settle_jobs())
        finally:
            self._hurried -= 1
            if not self._hurried:
                self._hurry.clear()

    async def _settle_jobs(self) -> None:
        while not (self.idle and self._swept):
            for signal in (self._hurry, self._wake, self._sweeping):
                signal.set()
            await self._progress.wait()

    async def _settle_rounds(self) -> None:
        # The round under way may have read the log already: the one after it has not.
        wanted = self._rounds + (2 if self._in_round else 1)
        while self._rounds < wanted:
            self._hurry.set()
            self._wake.set()
            await self._progress.wait()

    async def drain(self) -> None:
        """Finish at the end what was written here. A process that never got that far leaves everything to the next one.

        One that works for others looks once more for what they wrote.
        """
        if self._polls:
            self._sweep_at, self._swept = 0.0, False
            await self._finish()
            return
        if self._pace.together and not (self.chore.drains and (self._waiting or self._owes_writes)):
            return
        self._swept = True
        self._sweep_at = None
        await self._finish()

    # -- doing it -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled."""
        if self._pace.together:
            await self._run_rounds()
            return
        async with anyio.create_task_group() as workers:
            workers.start_soon(self._sweep_now_and_then)
            for _ in range(self._pace.at_once):
                workers.start_soon(self._run_jobs)

    async def _run_jobs(self) -> None:
        while True:
            scope = self._next()
            if scope is None:
                await self._pause_until(self._due_at())
                continue
            jobs = self._waiting.pop(scope).jobs
            self._running.add(scope)
            try:
                for job in jobs:
                    await self._try(scope, job)
            finally:
                self._running.discard(scope)
                self._progress.pulse()

    def _next(self) -> Scope | None:
        """A conversation whose time has come and that nobody works on."""
        if self._owed and not self._backoff.left_s:
            # One of them finds out whether things go well again.
            scope, jobs = self._owed.popitem(last=False)
            self._requeue(scope, jobs)
        now = monotonic()
        hurried = self._hurry.is_set()
        for scope, waiting in self._waiting.items():
            if scope not in self._running and (hurried or waiting.due <= now):
                return scope
        return None

    def _due_at(self) -> float | None:
        moments = [waiting.due for scope, waiting in self._waiting.items() if scope not in self._running]
        if self._owed:
            moments.append(monotonic() + self._backoff.left_s)
        return min(moments, default=None)

    async def _pause_until(self, moment: float | None) -> None:
        self._wake.clear()
        self._wakes_at = float("inf") if moment is None else moment
        with anyio.move_on_after(None if moment is None else max(0.0, moment - monotonic())):
            await self._wake.wait()

    async def _try(self, scope: Scope, job: Job) -> None:
        self._meter.observe("pagefile_background_waiting", len(self._waiting))
        try:
            await job(scope)
        except RetryLater:
            self._owe(scope, job)
        except Exception as error:
            # No caller waits for this: it is tried again after a rest, with the next turn or at the next opening.
            self._failed(f"could not look after conversation {scope.conversation!r}", error)
            self._owe(scope, job)
        else:
            self._paid(scope, job)

    def _paid(self, scope: Scope, job: Job) -> None:
        """A job went well. Unless another one of its conversation still fails, all that is owed is worth a trial."""
        owed = self._owed.get(scope, {})
        owed.pop(job, None)
        if owed:
            return
        self._owed.pop(scope, None)
        self._backoff.succeeded()
        self._pay()

    def _owe(self, scope: Scope, job: Job) -> None:
        self._backoff.failed()
        self._owed.setdefault(scope, {})[job] = None

    def _pay(self) -> None:
        """Try everything that is owed again."""
        while self._owed:
            self._requeue(*self._owed.popitem(last=False))

    def _requeue(self, scope: Scope, jobs: dict[Job, None]) -> None:
        waiting = self._waiting.setdefault(scope, _Waiting(0.0, 0.0, {}))
        waiting.jobs |= jobs
        self._wake.set()

    def _failed(self, what: str, error: Exception) -> None:
        self.failures += 1
        self._meter.count("pagefile_degraded_total", tier=self.chore.name)
        logger.error("%s: %s", what, error, exc_info=error)

    # -- what others left behind --------------------------------------------------------------------------------------

    async def _sweep_now_and_then(self) -> None:
        while self._sweep_at is not None:
            asked = self._sweeping.is_set() and not self._swept
            self._sweeping.clear()
            if asked or monotonic() >= self._sweep_at:
                await self._sweep()
            with anyio.move_on_after(max(0.0, self._sweep_at - monotonic())):
                await self._sweeping.wait()

    async def _sweep(self) -> None:
        self._sweep_at = monotonic() + self._every_s
        try:
            for scope in await self.chore.behind():
                if scope not in self._owed and scope not in self._running:
                    self._requeue(scope, {self.chore.maintain: None})
        except Exception as error:
            # As in `_try`: the next sweep looks again.
            self._failed(f"could not look for what the {self.chore.name} tier has left to do", error)
        self._swept = True
        self._progress.pulse()

    # -- in rounds ----------------------------------------------------------------------------------------------------

    async def _run_rounds(self) -> None:
        while True:
            while not self._round_due():
                moments = [moment for moment in (self._ready_at(), self._sweep_at) if moment is not None]
                await self._pause_until(min(moments, default=None))
            await self._round()

    def _round_due(self) -> bool:
        if self._hurry.is_set():
            return True
        now = monotonic()
        ready, sweep = self._ready_at(), self._sweep_at
        return (ready is not None and ready <= now) or (sweep is not None and sweep <= now)

    def _ready_at(self) -> float | None:
        """When it is quiet, or the first has waited long enough; never before the first look at the log."""
        if not self._waiting:
            return None
        waiting = self._waiting.values()
        quiet = max(one.due for one in waiting)
        longest = min(one.first for one in waiting) + self._pace.longest_wait_s
        ready = min(quiet, longest)
        return ready if self._swept or self._sweep_at is None else max(ready, self._sweep_at)

    async def _round(self) -> None:
        hurried = self._hurry.is_set()
        self._hurry.clear()
        scopes = list(self._waiting)
        self._waiting.clear()
        sweep = self._sweep_at is not None and (not self._swept or monotonic() >= self._sweep_at)
        if sweep:
            self._sweep_at = monotonic() + self._every_s
        self._in_round, self._owes_writes = True, bool(scopes)
        try:
            await self._try_round(Backlog(scopes, sweep, hurried, self._pause, self._busy))
        finally:
            self._in_round = self._owes_writes = False
            self._swept = True
            self._rounds += 1
            self._progress.pulse()

    async def _try_round(self, backlog: Backlog) -> None:
        try:
            await self.chore.maintain_all(backlog)
        except RetryLater as later:
            self._sweep_within(later.seconds)
        except Exception as error:
            # As in `_try`.
            self._backoff.failed()
            self._failed(f"background work of the {self.chore.name} tier", error)
            self._sweep_within(self._backoff.left_s)
        else:
            self._backoff.succeeded()

    def _sweep_within(self, seconds: float) -> None:
        if self._sweep_at is not None:
            self._sweep_at = min(self._sweep_at, monotonic() + seconds)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless somebody is in a hurry."""
        with anyio.move_on_after(seconds):
            await self._hurry.wait()

    def _busy(self) -> bool:
        return monotonic() < self._last_write + self._pace.quiet_s


class Worker:
    """Runs the lines of all tiers: inside the process that answers, or as a process of its own."""

    def __init__(self, chores: Sequence[Chore], meter: Meter, *, poll_s: float | None = None) -> None:
        self._lines = {chore.name: Line(chore, meter, poll_s=poll_s) for chore in chores}

    def line(self, name: str) -> Line:
        """The line of a tier."""
        return self._lines[name]

    def wake(self, name: str, scope: Scope) -> None:
        """Have a conversation looked after by a tier; one whose work is done by another process has no line here."""
        line = self._lines.get(name)
        if line is not None:
            line.wake(scope)

    def look(self) -> None:
        """Much was written: let every tier look at the whole log."""
        for line in self._lines.values():
            line.look()

    def drop(self, within: Callable[[Scope], bool]) -> None:
        """Forget the work on conversations that were erased."""
        for line in self._lines.values():
            line.drop(within)

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as lines:
            for line in self._lines.values():
                lines.start_soon(line.run)

    async def settle(self) -> None:
        """Wait until background work has caught up with everything written by now."""
        for line in self._lines.values():
            await line.settle()

    async def drain(self) -> None:
        """Finish what was begun here, and leave the rest to the next process."""
        for line in self._lines.values():
            await line.drain()
