"""Background work for all tiers: when it starts, how much runs at once, and what happens when it fails.

A tier asks for work on a conversation; its line decides when to do it. Exceptions are logged and counted, and
the work is retried with exponential backoff. What is left when the process ends or dies is found by the next
one from the watermarks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic

import anyio
import anyio.lowlevel

from pagefile.backoff import Backoff, LookPause
from pagefile.ports import Meter
from pagefile.records import Scope
from pagefile.tiers.base import Backlog, Pace, RetryLater, Tier, guarded

logger = logging.getLogger("pagefile")

_LOOKING = "look for what others wrote"
#: A task that takes longer, such as a model that hangs, no longer counts as one of those that run at once.
SLOW_S = 1.0
#: How many slow tasks a line may have besides; then the others wait.
_MOST_SLOW = 500
#: What a task concerns: a conversation, or None for a scan of the whole log for other processes' writes.
_Key = Scope | None
Job = Callable[[Scope], Awaitable[object]]


class Jobs(Tier):
    """Work that belongs to no tier: the caller brings the function, so it is always done by this process."""

    name = "jobs"
    pace = Pace(at_once=4)


@dataclass(slots=True, eq=False)
class _Task:
    #: When to start, and the deadline that further writes do not move.
    due: float
    latest: float
    jobs: dict[Job, None]
    #: Not retried before this time; infinite: until the line's backoff has elapsed.
    rests_until: float = 0.0
    #: Its last attempt failed: once it succeeds, other failed tasks are worth retrying.
    failed: bool = False
    #: A scheduled scan of the log that no caller asked for.
    routine: bool = False

    def begins(self, rested: float, *, when_due: bool) -> float:
        """When it may start, given the end of the line's backoff."""
        rests_until = rested if self.rests_until == inf else self.rests_until
        return max(self.due, rests_until) if when_due else rests_until


class Line:
    """The background work of one tier: tasks wait, run, and wait again if they fail."""

    def __init__(self, tier: Tier, meter: Meter, *, poll_s: float | None = None) -> None:
        self.tier = tier
        self._meter = meter
        self._pace = tier.pace
        self._together = self._pace.together
        #: How often a dedicated worker checks what other processes wrote.
        self._poll_s = poll_s
        # A dedicated worker has nothing else to do than to keep up.
        self._longest_wait_s = (
            self._pace.longest_wait_s if poll_s is None else min(poll_s, self._pace.longest_wait_s)
        )
        self._waiting: dict[_Key, _Task] = {}
        self._running: dict[_Key, _Task] = {}
        self._backoff = Backoff(first_s=self._pace.first_rest_s, longest_s=self._pace.longest_rest_s)
        self._last_write = -inf
        #: The wake-up time of each idle worker.
        self._naps: list[float] = []
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._hurry = asyncio.Event()
        self._hurried = 0
        #: The workers whose place another one took.
        self._relieved: set[anyio.CancelScope] = set()
        first_s, self._every_s = self._pace.first_sweep_s, self._pace.sweep_every_s
        if poll_s is not None and not self._together:
            first_s, self._every_s = 0.0, poll_s
        self._scans = first_s is not None
        #: Rounds start with the first scan of the log: a process that ends before it leaves them to the next
        #: one.
        self._opens_at = 0.0
        if first_s is not None:
            self._opens_at = monotonic() + first_s
            self._scan_at(self._opens_at)

    # -- asking for work ----------------------------------------------------------------------------------------------

    def wake(self, scope: Scope, job: Job | None = None) -> None:
        """Request work on a conversation, or a specific job; repeated requests are merged."""
        now = self._last_write = monotonic()
        task = self._waiting.get(scope)
        if task is None:
            task = self._waiting[scope] = _Task(now, now + self._longest_wait_s, {})
        elif task.rests_until == inf:
            # It failed; with more to work on it gets another chance.
            task.rests_until = 0.0
        task.jobs[job or self.tier.maintain] = None
        task.due = min(now + self._pace.quiet_s, task.latest)
        # A worker that wakes by then anyway need not be woken for every turn; a busy one checks when it is
        # done.
        if task.due < min(self._naps, default=-inf):
            self._wake.set()

    def scan(self) -> None:
        """A lot was written, possibly by others: scan for all of it."""
        if self._scans:
            self._scan_at(0.0)

    def drop(self, scope: Scope) -> None:
        for key in [key for key in self._waiting if key is not None and key.within(scope)]:
            del self._waiting[key]
        for key, task in self._running.items():
            if key is not None and key.within(scope):
                task.jobs.clear()
        self._note_progress()

    async def settle(self) -> None:
        """Wait until what is written by now has been processed; failures are retried later, without waiting for them."""
        with self._hurrying():
            asked = self._hurry_up(resting=True)
            if any(key is None for key, _ in asked):
                # Include what the scans find.
                await self._end_of((key, task) for key, task in asked if key is None)
                asked += self._hurry_up()
            await self._end_of(asked)

    async def drain(self) -> None:
        """Finish at the end what was written here. A process that never got that far leaves everything to the next one.

        A dedicated worker scans once more for what others wrote.
        """
        if not self.tier.drains:
            return
        if self._poll_s is None:
            self._waiting.pop(None, None)
        else:
            await self._try(_LOOKING, self._look)
        with self._hurrying():
            asked = self._hurry_up()
            await self._end_of(one for one in asked if one[0] is not None or self._poll_s is not None)

    @contextmanager
    def _hurrying(self) -> Generator[None]:
        self._hurried += 1
        self._hurry.set()
        try:
            yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self._hurry.clear()

    def _hurry_up(self, *, resting: bool = False) -> list[tuple[_Key, _Task]]:
        """Start all waiting tasks now, with `resting` even those in backoff; returns them and the running ones."""
        now = monotonic()
        waiting = [
            (key, task)
            for key, task in self._waiting.items()
            if not task.routine and (resting or task.rests_until <= now)
        ]
        for _, task in waiting:
            task.due = task.latest = task.rests_until = 0.0
        self._opens_at = 0.0
        self._wake.set()
        return [*self._running.items(), *waiting]

    def _note_progress(self) -> None:
        """Wake everyone who waits for progress now."""
        self._progress.set()
        self._progress.clear()

    async def _end_of(self, asked: Iterable[tuple[_Key, _Task]]) -> None:
        """Wait for tasks to end; one that fails or is requested again is replaced by a new task."""
        for key, task in asked:
            while self._waiting.get(key) is task or self._running.get(key) is task:
                await self._progress.wait()

    # -- doing it -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        async with anyio.create_task_group() as workers:
            self._workers = workers
            if self._poll_s is not None and self._together:
                workers.start_soon(self._poll, self._poll_s)
            for _ in range(1 if self._together else self._pace.at_once):
                workers.start_soon(self._work)

    async def _work(self) -> None:
        relieved = False
        while not relieved:
            keys, moment = self._ready()
            if not keys:
                await self._nap_until(moment)
                continue
            self._meter.observe("pagefile_background_waiting", len(self._waiting))
            batch = {key: self._waiting.pop(key) for key in keys}
            if self._waiting:
                # Others may have relied on this worker waking up in time.
                self._wake.set()
            self._running |= batch
            relief = anyio.CancelScope()
            if not self._together:
                self._workers.start_soon(self._relieve, relief)
            try:
                await (self._round(batch) if self._together else self._one_by_one(batch))
            finally:
                relieved = relief in self._relieved
                self._relieved.discard(relief)
                relief.cancel()
                for key in batch:
                    del self._running[key]
                self._note_progress()
                if relieved:
                    # The relief worker skipped new tasks of the conversations in this batch: run them now.
                    self._wake.set()

    async def _relieve(self, relief: anyio.CancelScope) -> None:
        """Take the place of a worker whose task turns out to be slow: it ends with that task."""
        with relief:
            await anyio.sleep(SLOW_S)
        if not relief.cancel_called and len(self._relieved) < _MOST_SLOW:
            self._relieved.add(relief)
            await self._work()

    async def _nap_until(self, moment: float) -> None:
        self._wake.clear()
        self._naps.append(moment)
        try:
            with anyio.move_on_after(moment - monotonic()):
                await self._wake.wait()
        finally:
            self._naps.remove(moment)

    async def _one_by_one(self, batch: dict[_Key, _Task]) -> None:
        for key, task in batch.items():
            work = self._try(_LOOKING, self._look) if key is None else self._do_jobs(key, task)
            self._ended(key, task, await work)

    async def _do_jobs(self, scope: Scope, task: _Task) -> float | None:
        """Keeps the jobs that failed; a failure does not stop the others."""
        rests: list[float] = []
        for job in [*task.jobs]:
            # Skipped if the conversation was erased meanwhile.
            if job in task.jobs:
                if (rest_s := await self._try(_caring(scope), job, scope)) is None:
                    task.jobs.pop(job, None)
                else:
                    rests.append(rest_s)
        return max(rests, default=None)

    async def _round(self, batch: dict[_Key, _Task]) -> None:
        rests: dict[_Key, float] = {}

        async def attempt(scope: Scope) -> None:
            if scope in self._waiting and scope not in batch:
                # Found in the log, but it has its own schedule.
                return
            if (rest_s := await self._try(_caring(scope), self.tier.maintain, scope)) is not None:
                rests[scope] = rest_s

        scopes = [key for key in batch if key is not None]
        backlog = Backlog(scopes, None in batch, self._hurry.is_set(), self._pause, self._busy, attempt)
        if (rest_s := await self._try("do its background work", self.tier.maintain_all, backlog)) is not None:
            rests |= dict.fromkeys(batch, rest_s)
        for key in {**batch, **rests}:
            task = batch.get(key) or _Task(0.0, 0.0, {self.tier.maintain: None})
            self._ended(key, task, rests.get(key))

    async def _try(self, what: str, work: Callable[..., Awaitable[object]], *args: object) -> float | None:
        """None on success, else how long to wait before a retry: infinite until the line's backoff has elapsed."""
        with guarded(partial(self._failed, what)):
            try:
                await work(*args)
            except RetryLater as later:
                return later.seconds
            return None
        return inf

    def _failed(self, what: str, error: Exception) -> None:
        """No caller waits for it: it is retried after the backoff, with the next turn or when the memory is next opened."""
        logger.error("the %s tier could not %s", self.tier.name, what, exc_info=error)
        self.tier.report(error, logs=False)
        self._backoff.failed()

    def _ended(self, key: _Key, task: _Task, rest_s: float | None) -> None:
        if rest_s is not None:
            # Merged with new requests; not retried if it was erased.
            if key is None or task.jobs:
                again, now = self._waiting.pop(key, None), monotonic()
                jobs = task.jobs if again is None else task.jobs | again.jobs
                self._waiting[key] = _Task(now, now, jobs, now + rest_s, task.failed or rest_s == inf)
            return
        if task.failed:
            # Everything else that failed is worth a retry.
            self._backoff.succeeded()
            for other in self._waiting.values():
                if other.rests_until == inf:
                    other.rests_until = 0.0
            self._wake.set()
        if key is None and self._scans and None not in self._waiting:
            self._scan_at(monotonic() + self._every_s, routine=True)

    # -- when ---------------------------------------------------------------------------------------------------------

    def _ready(self) -> tuple[list[_Key], float]:
        """A task that is due, or all that wait, once it is quiet or the first has waited long enough; else when that is."""
        now, moment = monotonic(), inf
        rested = now + self._backoff.left_s
        ready: dict[_Key, _Task] = {}
        for key, task in self._waiting.items():
            if key in self._running:
                continue
            begins = task.begins(rested, when_due=key is None or not self._together)
            if begins > now:
                moment = min(moment, begins)
            elif self._together:
                ready[key] = task
            else:
                # One of the failed tasks is retried first, to find out whether things work again.
                return [key], now
        if ready:
            quiet = max(task.due for task in ready.values())
            latest = min(task.latest for task in ready.values())
            moment = min(moment, max(self._opens_at, min(quiet, latest)))
        return ([*ready], now) if moment <= now else ([], moment)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless someone is waiting for the work to finish."""
        # Others get their turn even then.
        await anyio.lowlevel.checkpoint()
        with anyio.move_on_after(seconds):
            await self._hurry.wait()

    def _busy(self) -> bool:
        # A dedicated worker takes no time from those who write.
        return self._poll_s is None and monotonic() < self._last_write + self._pace.quiet_s

    # -- what others left behind --------------------------------------------------------------------------------------

    def _scan_at(self, moment: float, *, routine: bool = False) -> None:
        self._waiting[None] = _Task(moment, moment, {}, routine=routine)
        self._wake.set()

    async def _look(self) -> None:
        """Find out what others wrote. They may still be writing, so the same quiet period applies as for writes here."""
        behind = [scope for scope in await self.tier.behind() if scope not in self._waiting]
        due = monotonic() + self._pace.quiet_s
        if self._together:
            waiting = self._waiting.get(None)
            if behind and (waiting is None or waiting.routine):
                self._scan_at(due)
            return
        for scope in behind:
            self._waiting[scope] = _Task(due, due, {self.tier.maintain: None})
        self._wake.set()

    async def _poll(self, every_s: float) -> None:
        """A round over the whole log may cost more than a scan, so it starts only if there is something to do."""
        pause = LookPause(every_s)
        while True:
            began = monotonic()
            await self._try(_LOOKING, self._look)
            await anyio.sleep(pause.after(monotonic() - began))


def _caring(scope: Scope) -> str:
    return f"look after conversation {scope.conversation!r}"


def _leave(_tier: str | None, _scope: Scope | None) -> None:
    """The other process scans the log by itself."""


class Worker:
    """Runs the lines of all tiers, within the application's process or in a dedicated one."""

    def __init__(self, tiers: Sequence[Tier], meter: Meter, *, poll_s: float | None = None) -> None:
        self.lines = {tier.name: Line(tier, meter, poll_s=poll_s) for tier in tiers}
        #: Hints another process at the work of a tier on a conversation, or, without them, at a scan.
        self.hand_over: Callable[[str | None, Scope | None], object] = _leave

    def wake(self, name: str, scope: Scope) -> None:
        """Request work by a tier on a conversation; another process that does that tier's work may find it later."""
        line = self.lines.get(name)
        if line is not None:
            line.wake(scope)
        else:
            self.hand_over(name, scope)

    def do(self, scope: Scope, job: Job) -> None:
        """Run a job concerning a conversation; repeated requests before it starts are merged."""
        self.lines[Jobs.name].wake(scope, job)

    def scan(self) -> None:
        for line in self.lines.values():
            line.scan()
        self.hand_over(None, None)

    def drop(self, scope: Scope) -> None:
        for line in self.lines.values():
            line.drop(scope)

    async def run(self) -> None:
        async with anyio.create_task_group() as lines:
            for line in self.lines.values():
                lines.start_soon(line.run)

    async def settle(self) -> None:
        for line in self.lines.values():
            await line.settle()

    async def drain(self) -> None:
        for line in self.lines.values():
            await line.drain()
