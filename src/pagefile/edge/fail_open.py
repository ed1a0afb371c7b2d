"""Fail-open execution: a failing or slow memory never costs the user an answer.

In almost every framework a hook that raises or hangs takes the user's run with it. So each hook hands its work to `FailOpen`, which
runs it on the memory's event loop, from any other loop or thread. A failure or timeout is logged once per kind, counted every time,
and replaced by what the hook would have done without a memory.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from os import PathLike
from time import monotonic
from traceback import format_tb
from typing import Any, TypeAlias, TypeVar

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.errors import (
    ClosedError,
    ConflictError,
    InvalidArgumentError,
    SettingsError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from pagefile.stores.breaker import Breaker

logger = logging.getLogger("pagefile")

R = TypeVar("R")
D = TypeVar("D")
Work: TypeAlias = Callable[[], Awaitable[R]]


class SlowMemoryError(TimeoutError):
    """The memory took longer than a hook may wait."""


#: Failures whose words say all there is to say: a traceback would only hide them.
_SELF_EXPLAINING = (SettingsError, ClosedError, ConflictError, InvalidArgumentError)
#: Failures in words that name nobody.
_SAID: dict[type[Exception], str] = {
    ConflictError: "the conversation belongs to another user, or was changed meanwhile",
    StoreFullError: "the disk is full",
    StoreUnavailableError: "the database does not answer",
    StoreError: "the database reports an error",
    ClosedError: "it is closed",
}
#: Told why work was not done, in words that name nobody and nothing of a user's.
Told: TypeAlias = Callable[[str], object]


def inner_of(memory: Memory | BlockingMemory | str | PathLike[str] | None) -> Memory:
    """The memory itself; the name of a database, which is easily given in its place, is refused."""
    if memory is None or isinstance(memory, str | PathLike):
        raise SettingsError(
            f"This takes an open memory, not {memory!r}: `with BlockingMemory.open(…) as memory`, or `memory = BlockingMemory.connect(…)`."
        )
    return memory.inner if isinstance(memory, BlockingMemory) else memory


class MemoryLoop:
    """The event loop that a memory lives on. Its work runs there, wherever the caller is.

    For a `Memory` that is the loop this is created in, or the first one it is used from.
    """

    def __init__(self, memory: Memory | BlockingMemory) -> None:
        self.memory = inner_of(memory)
        self._check_open = (
            memory.loop.check_open if isinstance(memory, BlockingMemory) else self.memory.engine.check_open
        )
        self._loop = memory.loop.wait(_this_loop) if isinstance(memory, BlockingMemory) else _running_loop()

    @property
    def is_known(self) -> bool:
        return self._loop is not None

    @property
    def is_here(self) -> bool:
        return self._loop is not None and self._loop is _running_loop()

    def started(self, work: Work[R]) -> asyncio.Future[R]:
        here = asyncio.get_running_loop()
        self._loop = self._loop or here
        if self._loop is here:
            return here.create_task(_awaited(work))
        return asyncio.wrap_future(self.submitted(work))

    def waited(self, work: Work[R], waits: Iterable[float | None] = (None,), *, keep: bool = False) -> R:
        """The result of the work, from a thread without an event loop, or with one that is not the memory's.

        It may take as long as the `waits`, one after the other. With `keep`, work that takes longer is not cancelled.
        """
        if self.is_here:
            raise SettingsError(
                "A synchronous call would hold up the event loop that this memory lives on: use the asynchronous one "
                "(`AsyncOpenAI()`, `await agent.ainvoke(…)`, `await store.aput(…)`), or give a BlockingMemory."
            )
        running = self.submitted(work)
        done: set[Future[R]] = set()
        try:
            for seconds in waits:
                done, _ = wait({running}, seconds)
                if done:
                    break
        finally:
            if not keep:
                running.cancel()  # without effect once it is done
        if not done:
            raise SlowMemoryError
        return running.result()

    def submitted(self, work: Work[R]) -> Future[R]:
        """The work, started on the memory's loop from another thread."""
        if self._loop is None:
            raise SettingsError(
                "It is not known in which event loop this memory was opened: wrap the client or make the integration there, or give a BlockingMemory."
            )
        self._check_open()  # says how to open this kind of memory
        if self._loop.is_closed() or self.memory.engine.closed:
            raise ClosedError
        return asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)


class FailOpen:
    """Runs an integration's work for a memory, and contains its failures.

    Create one per integration, where its memory is available: for a `Memory`, inside the event loop it was opened in.
    Use `attempt` from asynchronous hooks and `attempt_blocking` from synchronous ones. In a service for many (`of_many`) the log says
    where something failed and not what the error says, which may name a user's ids. `limit` is what `timeout_s` is called where it is set.

    Records of the log have the words of errors: an error itself would keep the work that it ended alive.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        integration: str,
        *,
        timeout_s: float = 5.0,
        limit: str = "timeout_s",
        of_many: bool = False,
    ) -> None:
        if timeout_s <= 0:
            raise SettingsError(f"timeout_s is {timeout_s!r}: give the seconds a hook may wait, above 0.")
        self._loop = MemoryLoop(memory)
        self.memory = self._loop.memory
        self.integration = integration
        self.timeout_s = timeout_s
        self._limit = f"{timeout_s:g} s ({limit})"
        self._of_many = of_many
        self._breaker = Breaker(monotonic)
        #: How much was skipped since memory was left alone.
        self._skipped = 0
        self._told: set[tuple[str, type[Exception]]] = set()
        # Python only keeps weak references to tasks, so abandoned ones are held here until they end.
        self._held: set[asyncio.Future[Any]] = set()

    @property
    def is_here(self) -> bool:
        """Whether the caller is on the memory's own event loop, which a synchronous call would hold up."""
        return self._loop.is_here

    @property
    def is_reachable(self) -> bool:
        """Whether the memory's event loop is known, so that other threads can use it."""
        return self._loop.is_known

    @property
    def failures(self) -> int:
        """How much of this integration's work has failed or been skipped so far."""
        return self.memory.engine.failures.get(self.integration, 0)

    async def attempt(
        self, what: str, work: Work[R], otherwise: D, *, always: bool = False, told: Told | None = None
    ) -> R | D:
        """The result of the work, or `otherwise` if it fails or times out; then `told` hears why.

        After a timeout a circuit breaker skips the memory for a while and returns `otherwise` immediately. Work marked `always`,
        without which something would be lost, is then carried out beside the run, and is not cancelled when it takes longer.
        `what` names the kind of work in the log.
        """
        ticket = self._entered(told)
        if ticket is None:
            if always:
                with self._contained(what, None):
                    self._hold(self._loop.started(partial(self._late, what, work)))
            return otherwise
        with self._contained(what, ticket, told):
            # A task of its own, so that work that cannot be cancelled at once, such as a thread, is abandoned and not awaited.
            running = self._loop.started(work)
            done: set[asyncio.Future[R]] = set()
            try:
                for seconds in self._waits():
                    done, _ = await asyncio.wait({running}, timeout=seconds)
                    if done:
                        break
            except asyncio.CancelledError:
                running.cancel()
                raise
            if not done:
                if not always:
                    running.cancel()
                self._hold(running)
                raise SlowMemoryError
            return running.result()
        return otherwise

    def attempt_blocking(
        self, what: str, work: Work[R], otherwise: D, *, always: bool = False, told: Told | None = None
    ) -> R | D:
        """Like `attempt`, from a thread without an event loop, or with one that is not the memory's."""
        ticket = self._entered(told)
        if ticket is None:
            if always:
                with self._contained(what, None):
                    self._loop.submitted(partial(self._late, what, work))
            return otherwise
        with self._contained(what, ticket, told):
            return self._loop.waited(work, self._waits(), keep=always)
        return otherwise

    async def awaited(self, work: Work[R]) -> R:
        """The result of work on the memory's loop, whose failures the caller must see."""
        return await self._loop.started(work)

    def waited(self, work: Work[R]) -> R:
        """Like `awaited`, from a thread without an event loop, or with one that is not the memory's."""
        return self._loop.waited(work)

    async def _late(self, what: str, work: Work[R]) -> None:
        with self._contained(what, None):
            await work()

    def attempt_here(self, what: str, work: Callable[[], R], otherwise: D) -> R | D:
        """Like `attempt`, for synchronous work."""
        with self._contained(what, None):
            return work()
        return otherwise

    def attempt_now_or_soon(self, what: str, work: Work[R], otherwise: D) -> R | D:
        """Like `attempt`, for a hook that cannot await: on the memory's own loop it only starts the work and returns `otherwise`."""
        if not self._loop.is_here:
            return self.attempt_blocking(what, work, otherwise)
        self._hold(asyncio.ensure_future(self.attempt(what, work, otherwise)))
        return otherwise

    def _hold(self, running: asyncio.Future[Any]) -> None:
        self._held.add(running)
        running.add_done_callback(self._ended)

    def _ended(self, running: asyncio.Future[Any]) -> None:
        self._held.discard(running)
        if not running.cancelled():
            running.exception()  # retrieved, so that asyncio does not report it again

    def _entered(self, told: Told | None) -> int | None:
        """A pass of the circuit breaker's; None while memory is left alone."""
        ticket = self._breaker.enter()
        if ticket is None:
            self._count()
            self._skipped += 1
            if told is not None:
                told(f"memory is left alone for {self._breaker.rest_s:.1f} s more because it was slow")
        return ticket

    def _waits(self) -> Iterator[float]:
        """How long to wait for work, and how long then: the time in which the encoder is being loaded does not count."""
        while left_s := self.memory.engine.loading.left_s:
            yield min(left_s, self.timeout_s)
        yield self.timeout_s

    @contextmanager
    def _contained(self, what: str, ticket: int | None, told: Told | None = None) -> Generator[None]:
        """The one place where a failure stops: it is reported, and the caller continues after the block."""
        try:
            yield
        except Exception as error:
            if self.memory.engine.settings.on_tier_error == "raise":
                raise
            self._count()
            why = f"failed: {_words(error)}"
            if ticket is not None and isinstance(error, SlowMemoryError):
                why = f"took longer than {self._limit}"
                self._pause(what, ticket)
            else:
                self._report(what, error)
            if told is not None:
                told(f"memory {why}")
        else:
            if ticket is not None and self._breaker.succeeded(ticket):
                logger.warning("%s: memory answers again; %d went without", self.integration, self._skipped)
                self._skipped = 0

    def _pause(self, what: str, ticket: int) -> None:
        """After a timeout memory is left alone for a while: told once each time."""
        self._skipped += 1
        if not self._breaker.is_current(ticket):
            return
        self._breaker.failed(ticket)
        said = "%s: %s took longer than %s; the run continues without memory, which is left alone for %.0f s"
        logger.warning(said, self.integration, what, self._limit, self._breaker.rest_s)

    def _report(self, what: str, error: Exception) -> None:
        # A conflict lies in what the run names, such as another user's conversation, and fails all that the run does.
        kind = ("" if isinstance(error, ConflictError) else what, type(error))
        if kind in self._told:
            said = type(error).__name__ if self._of_many else str(error)
            logger.debug("%s: %s failed again: %s", self.integration, what, said)
            return
        self._told.add(kind)
        once = "%s: %s failed; the run continues without memory (logged once for this kind of failure)"
        if isinstance(error, _SELF_EXPLAINING) and not self._of_many:
            logger.error(f"{once}: %s", self.integration, what, str(error))  # noqa: G004
        elif self._of_many:
            places = "".join(format_tb(error.__traceback__))
            located = "%s: %s failed, the run continues without memory: %s at\n%s"
            logger.error(located, self.integration, what, type(error).__name__, places)
        else:
            logger.error(once, self.integration, what, exc_info=error)

    def _count(self) -> None:
        engine = self.memory.engine
        engine.failures[self.integration] = engine.failures.get(self.integration, 0) + 1
        engine.meter.count("pagefile_degraded_total", tier=self.integration)


def _words(error: Exception) -> str:
    """What to say of a failure to whoever sent the request, who does not know our classes."""
    return next((said for kind, said in _SAID.items() if isinstance(error, kind)), type(error).__name__)


async def _awaited(work: Work[R]) -> R:
    """Creates the awaitable inside the running loop, so that whatever it creates belongs to that loop."""
    return await work()


async def _this_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
