"""Fail-open execution: a failing or slow memory never costs the user an answer.

In almost every framework a hook that raises or hangs takes the user's run with it. So each hook hands its work to
`FailOpen`, which runs it on the memory's event loop from wherever the hook was called: that same loop, another one, or a
thread without any. A failure or timeout is logged once per kind, counted every time, and replaced by what the hook
would have done without a memory.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any, TypeVar

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.errors import ClosedError, SettingsError
from pagefile.stores.breaker import Breaker

logger = logging.getLogger("pagefile")

R = TypeVar("R")
D = TypeVar("D")


class SlowMemoryError(TimeoutError):
    """The memory took longer than a hook may wait."""


class FailOpen:
    """Runs an integration's work for a memory, and contains its failures.

    Create one per integration, where its memory is available: for a `Memory`, inside the event loop it was opened in.
    Use `attempt` from asynchronous hooks and `attempt_blocking` from synchronous ones.
    """

    def __init__(self, memory: Memory | BlockingMemory, integration: str, *, timeout_s: float = 5.0) -> None:
        if timeout_s <= 0:
            raise SettingsError(f"timeout_s is {timeout_s!r}: give the seconds a hook may wait, above 0.")
        self.memory = memory.inner if isinstance(memory, BlockingMemory) else memory
        self.integration = integration
        self.timeout_s = timeout_s
        self._loop = memory.loop.wait(this_loop) if isinstance(memory, BlockingMemory) else running_loop()
        self._breaker = Breaker(monotonic)
        self._told: set[tuple[str, type[Exception]]] = set()
        # Python only keeps weak references to tasks, so abandoned ones are held here until they end.
        self._held: set[asyncio.Future[Any]] = set()

    async def attempt(
        self, what: str, work: Callable[[], Awaitable[R]], otherwise: D, *, always: bool = False
    ) -> R | D:
        """The result of the work, or `otherwise` if it fails or times out.

        After a timeout a circuit breaker skips the memory for a while and returns `otherwise` immediately, except for work marked
        `always`, without which something would be lost. `what` names the kind of work in the log.
        """
        ticket = self._breaker.enter()
        if ticket is None and not always:
            self._count()
            return otherwise
        try:
            return self._succeeded(ticket, await self._waited(work))
        except Exception as error:
            self._failed(what, error, ticket)
            return otherwise

    def attempt_blocking(
        self, what: str, work: Callable[[], Awaitable[R]], otherwise: D, *, always: bool = False
    ) -> R | D:
        """Like `attempt`, from a thread without an event loop, or with one that is not the memory's."""
        ticket = self._breaker.enter()
        if ticket is None and not always:
            self._count()
            return otherwise
        try:
            return self._succeeded(ticket, self._waited_blocking(work))
        except Exception as error:
            self._failed(what, error, ticket)
            return otherwise

    def attempt_here(self, what: str, work: Callable[[], R], otherwise: D) -> R | D:
        """Like `attempt`, for synchronous work."""
        try:
            return work()
        except Exception as error:
            self._failed(what, error, None)
            return otherwise

    def attempt_now_or_soon(self, what: str, work: Callable[[], Awaitable[R]], otherwise: D) -> R | D:
        """Like `attempt`, for a hook that cannot await: on the memory's own loop it only starts the work and returns `otherwise`."""
        if self._loop is None or self._loop is not running_loop():
            return self.attempt_blocking(what, work, otherwise)
        begun = self._loop.create_task(self.attempt(what, work, otherwise))
        self._held.add(begun)
        begun.add_done_callback(self._ended)
        return otherwise

    # -- running --------------------------------------------------------------------------------------------------------

    async def _waited(self, work: Callable[[], Awaitable[R]]) -> R:
        here = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = here
        if self._loop is here:
            # A separate task, so that work that cannot be cancelled at once, such as a thread, is abandoned and not awaited.
            running: asyncio.Future[R] = here.create_task(awaited(work))
        else:
            running = asyncio.wrap_future(self._started(work))
        try:
            done, _ = await asyncio.wait({running}, timeout=self.timeout_s)
        except BaseException:
            running.cancel()
            raise
        if not done:
            self._give_up(running)
            raise SlowMemoryError(f"no answer within {self.timeout_s:g} s")
        return running.result()

    def _waited_blocking(self, work: Callable[[], Awaitable[R]]) -> R:
        if self._loop is not None and self._loop is running_loop():
            raise SettingsError(
                "A synchronous call holds up the event loop that this memory lives on: use the asynchronous one (`await agent.ainvoke(…)`), "
                "or give a BlockingMemory."
            )
        running = self._started(work)
        try:
            return running.result(self.timeout_s)
        except BaseException as error:
            running.cancel()
            if isinstance(error, TimeoutError) and not running.done():
                raise SlowMemoryError(f"no answer within {self.timeout_s:g} s") from error
            raise

    def _started(self, work: Callable[[], Awaitable[R]]) -> Future[R]:
        if self._loop is None:
            raise SettingsError(
                "It is not known in which event loop this memory was opened: make the integration there, or give a BlockingMemory."
            )
        if self._loop.is_closed():
            raise ClosedError
        return asyncio.run_coroutine_threadsafe(awaited(work), self._loop)

    def _give_up(self, running: asyncio.Future[R]) -> None:
        running.cancel()
        self._held.add(running)
        running.add_done_callback(self._ended)

    def _ended(self, running: asyncio.Future[R]) -> None:
        self._held.discard(running)
        if not running.cancelled():
            running.exception()  # retrieved, so that asyncio does not report it again

    # -- reporting ------------------------------------------------------------------------------------------------------

    def _succeeded(self, ticket: int | None, result: R) -> R:
        if ticket is not None:
            self._breaker.succeeded(ticket)
        return result

    def _failed(self, what: str, error: Exception, ticket: int | None) -> None:
        if self.memory.engine.settings.on_tier_error == "raise":
            raise error
        if ticket is not None and isinstance(error, SlowMemoryError):
            self._breaker.failed(ticket)
        self._count()
        kind = (what, type(error))
        if kind in self._told:
            logger.debug("%s: %s failed again: %s", self.integration, what, error)
            return
        self._told.add(kind)
        logger.error(
            "%s: %s failed; the run goes on without it (said once for this kind of failure)",
            self.integration,
            what,
            exc_info=error,
        )

    def _count(self) -> None:
        engine = self.memory.engine
        engine.failures[self.integration] = engine.failures.get(self.integration, 0) + 1
        engine.meter.count("pagefile_degraded_total", tier=self.integration)


async def awaited(work: Callable[[], Awaitable[R]]) -> R:
    """Creates the awaitable inside the running loop, so that whatever it creates belongs to that loop."""
    return await work()


async def this_loop() -> asyncio.AbstractEventLoop:
    """The running event loop, for a call from another thread."""
    return asyncio.get_running_loop()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop running in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
