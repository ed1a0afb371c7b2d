"""The threads that talk to SQLite: one that writes, a few that read. Small, warm reads need no thread.

A write is a function of a connection. The writer takes everything that waits and runs it in one transaction with one
commit at its end (*group commit*: one fsync for all), each function in its own savepoint, so that a failing one
does not harm the others. Functions may be run again and must not have other effects.

Callers may be cancelled: a job that has not begun is dropped, one that is running is interrupted and rolled back, and jobs that
shared its transaction are run again.
"""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import Any, TypeVar, cast

import apsw

from pagefile.errors import ClosedError, PagefileError
from pagefile.lru import Lru
from pagefile.stores.sqlite.driver import (
    BUSY_TIMEOUT_S,
    Connection,
    InterruptedStatementError,
    translating,
)
from pagefile.stores.sqlite.write_ahead import RESTS, WriteAheadLog

T = TypeVar("T")
logger = logging.getLogger("pagefile")

#: Keeps one commit, and the wait for it, short.
_MOST_IN_A_GROUP = 256
#: How long the last emptying of the write-ahead log waits for readers.
_LAST_EMPTYING_S = 1.0
#: When what was put off and failed is tried again, at the earliest.
_AGAIN_S = 60.0
_OFTEN = 50
#: A read that took less than this is done in place the next time. A window's turns take a quarter of a millisecond; the rest is
#: for times when another thread holds the interpreter, which can take five.
_QUICK_S = 0.01
_MOST_QUICK = 4096


@dataclass(slots=True, eq=False)
class _Job:
    function: Callable[[Connection], Any]
    purge: bool = False
    alone: bool = False
    cancelled: bool = False
    result: Any = None
    error: Exception | None = None
    future: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def run(self, connection: Connection, place: str) -> None:
        """Run the function; an exception goes to the caller, and the thread survives."""
        self.result, self.error = None, None
        try:
            with translating(place):
                self.result = self.function(connection)
        except Exception as error:
            self.error = error


class _Lane(ABC):
    """Threads that take jobs from one queue."""

    def __init__(self, place: str, name: str) -> None:
        self._place = place
        self._name = name
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        #: The jobs that are running, and a lock, so that an interrupt never hits another one.
        self._running: dict[_Job, Connection] = {}
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def _start(self, connections: Sequence[Connection]) -> None:
        for connection in connections:
            thread = threading.Thread(target=self._serve, args=(connection,), name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    async def _run(self, job: _Job) -> Any:
        if self._closed:
            raise ClosedError
        self._queue.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            with self._lock:
                job.cancelled = True
                if job in self._running:
                    self._running[job].interrupt()
            raise

    async def close(self) -> None:
        """Finish what was accepted, then end the threads; their connections close with them."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    @abstractmethod
    def _serve(self, connection: Connection) -> None:
        """Run jobs until there are no more."""


class Writer(_Lane):
    def __init__(
        self,
        connection: Connection,
        place: str,
        *,
        check: Callable[[], None] = lambda: None,
        now_and_then: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(place, "pagefile-writer")
        #: Called before each transaction: raises if what is written would be lost.
        self._check = check
        #: Called after every `_OFTEN` groups.
        self._now_and_then = now_and_then
        self._groups = 0
        self._connection = connection
        self._log = WriteAheadLog(connection)
        #: What was put off, and until when.
        self._later: tuple[float, Callable[[], None]] | None = None
        self._start([connection])

    async def run(self, function: Callable[[Connection], T], *, purge: bool = False) -> T:
        """The function's result, once it is durable; `purge` empties the write-ahead log after it."""
        return cast("T", await self._run(_Job(function, purge=purge)))

    @property
    def owes_purge(self) -> bool:
        """Whether erased text may still be in the write-ahead log."""
        return self._log.is_owed

    async def purge(self) -> bool:
        """Empty the write-ahead log, waiting for readers as long as for locks; whether it is empty."""
        return cast("bool", await self._run(_Job(lambda _: self._log.empty(BUSY_TIMEOUT_S), alone=True)))

    async def run_alone(self, function: Callable[[Connection], T]) -> T:
        """The result of an erasure that begins and ends its own transactions; all other writes wait for it."""
        return cast("T", await self._run(_Job(function, alone=True, purge=True)))

    def _serve(self, connection: Connection) -> None:
        going = True
        while going:
            # All jobs waiting now, at least one; None means the end. Only this thread takes from the queue.
            group = [self._next()]
            while len(group) < _MOST_IN_A_GROUP and not self._queue.empty():
                group.append(self._queue.get())
            jobs = [job for job in group if job is not None]
            going = len(jobs) == len(group)
            self._settle(jobs)
            _deliver(jobs)
            self._catch_up(ending=not going)
            self._groups += 1
            if self._now_and_then is not None and self._groups % _OFTEN == 0:
                self._now_and_then()
        connection.close()

    def later(self, at: float, work: Callable[[], None]) -> None:
        """Have the writer's thread do something at that time (monotonic), or when it is closed; what is put off already is not done twice."""
        if self._later is None:
            self._later = at, work
            # It may be waiting for the next job without an end.
            self._queue.put(_Job(lambda _: None))

    def _next(self) -> _Job | None:
        """The next job; what is due meanwhile is done without one."""
        while (due := self._due()) is not None:
            try:
                return self._queue.get(timeout=max(0.0, due - monotonic()))
            except Empty:
                self._catch_up()
        return self._queue.get()

    def _due(self) -> float | None:
        times = [self._log.tried_next] if self._log.is_owed else []
        return min(times + ([] if self._later is None else [self._later[0]]), default=None)

    def _catch_up(self, *, ending: bool = False) -> None:
        if self._later is not None and (ending or monotonic() >= self._later[0]):
            self._do_late(self._later[1])
        if self._log.is_owed:
            self._log.empty(_LAST_EMPTYING_S if ending else None)

    def _do_late(self, work: Callable[[], None]) -> None:
        self._later, began = None, monotonic()
        try:
            self._check()
            work()
            self._log.is_owed = True
        except Exception as error:
            # Whatever it is, without this thread every later write would wait for ever.
            logger.warning("the file was not rewritten after an erasure, `--scrub` does it: %s", error)
            ended = monotonic()
            self._later = ended + max(_AGAIN_S, RESTS * (ended - began)), work

    def _settle(self, jobs: Sequence[_Job]) -> None:
        waiting: Sequence[_Job] = [job for job in jobs if not job.alone]
        for job in jobs:
            if job.alone and not job.cancelled:
                job.run(self._connection, self._place)
                self._roll_back()
        while waiting:
            with self._lock:
                waiting = [job for job in waiting if not job.cancelled]
                self._running = dict.fromkeys(waiting, self._connection)
            if waiting:
                waiting = self._transact(waiting)
            with self._lock:
                self._running = {}
        if any(job.purge for job in jobs):
            self._log.empty()

    def _transact(self, group: Sequence[_Job]) -> Sequence[_Job]:
        """Run a group in one transaction; returns those that must be run again."""
        try:
            with translating(self._place):
                self._check()
                self._connection.execute("BEGIN IMMEDIATE")
        except InterruptedStatementError:
            return group
        except PagefileError as error:
            for job in group:
                job.error = error
            return ()
        try:
            with translating(self._place):
                again = self._play(group)
                if again is None:
                    self._connection.execute("COMMIT")
                    return ()
        except InterruptedStatementError:
            again = group
        except PagefileError as error:
            self._roll_back()
            if len(group) == 1:
                group[0].error = error
                return ()
            # Nothing of the group was written. Run alone, each job gets a result of its own.
            for job in group:
                waiting: Sequence[_Job] = [job]
                while waiting and not job.cancelled:
                    waiting = self._transact(waiting)
            return ()
        self._roll_back()
        return again

    def _play(self, group: Sequence[_Job]) -> Sequence[_Job] | None:
        """Run every job of a group inside its transaction; None when it may be committed."""
        connection = self._connection
        several = len(group) > 1
        for job in group:
            if several:
                connection.execute("SAVEPOINT job")
            job.run(connection, self._place)
            if isinstance(job.error, InterruptedStatementError):
                return group
            if job.error is not None:
                if not several or not connection.in_transaction:
                    return [other for other in group if other is not job]
                connection.execute("ROLLBACK TO job")
            if several:
                connection.execute("RELEASE job")
        return group if any(job.cancelled for job in group) else None

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class Readers(_Lane):
    """A few threads that read, each with its own connection, and one more connection for reads in place."""

    def __init__(
        self, connections: Sequence[Connection], place: str, *, monotonic: Callable[[], float] = perf_counter
    ) -> None:
        super().__init__(place, "pagefile-reader")
        self._monotonic = monotonic
        here, *others = connections
        # A read that finds the database busy moves to a thread and waits there.
        here.set_busy_handler(None)
        self._here: Connection | None = here
        self._here_lock = threading.Lock()
        #: Reads that were quick the last time.
        self._quick: Lru[Hashable, None] = Lru(_MOST_QUICK)
        self._quick_lock = threading.Lock()
        self._start(others)

    async def run(self, function: Callable[[Connection], T]) -> T:
        """The function's result, read from one snapshot."""
        return cast("T", await self._run(_Job(partial(_snapshot, function=function))))

    async def run_again(self, what: Hashable, function: Callable[[Connection], T]) -> T:
        """The same for a frequent read: in place if it was quick the last time.

        A thread switch takes as long as such a read. A cold or large read is done by a thread, and warms the
        cache for the next time.
        """
        if what in self._quick:
            # Let other tasks run, as they would while a thread reads.
            await asyncio.sleep(0)
            if self._here_lock.acquire(blocking=False):
                try:
                    if self._here is not None:
                        return self._timed(what, partial(_snapshot, self._here, function))
                except apsw.Error:
                    # A thread waits longer, and raises a proper error.
                    self._note(what, quick=False)
                finally:
                    if self._here is not None:
                        _end_read(self._here)
                    self._here_lock.release()
        return await self.run(lambda connection: self._timed(what, lambda: function(connection)))

    def _timed(self, what: Hashable, read: Callable[[], T]) -> T:
        began = self._monotonic()
        result = read()
        self._note(what, quick=self._monotonic() - began <= _QUICK_S)
        return result

    def _note(self, what: Hashable, *, quick: bool) -> None:
        with self._quick_lock:
            if quick:
                self._quick[what] = None
            else:
                self._quick.pop(what, None)

    async def close(self) -> None:
        await super().close()
        with self._here_lock:
            if self._here is not None:
                self._here.close()
                self._here = None

    def _serve(self, connection: Connection) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.cancelled:
                    continue
                self._running[job] = connection
            job.run(connection, self._place)
            with self._lock:
                del self._running[job]
            _end_read(connection)
            _deliver((job,))
        connection.close()


def _end_read(connection: Connection) -> None:
    """End a reader's transaction. A damaged file may refuse the commit, and the thread must survive to report it."""
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


def _snapshot(connection: Connection, function: Callable[[Connection], T]) -> T:
    connection.execute("BEGIN")
    return function(connection)


def _deliver(jobs: Sequence[_Job]) -> None:
    """Wake all waiting callers, once per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, mine in by_loop.items():
        # A loop that is closed has no callers waiting.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        if not job.future.done():
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)
