"""Threads for work that would hold up the event loop, shared fairly: tenants take turns, however much one of them wants done."""

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

R = TypeVar("R")

#: Whose work the current task does; the service sets it for every request.
working_for: ContextVar[str] = ContextVar("working_for", default="")
#: Work is mostly Python, which runs in one thread at a time: more would only wait for each other.
_THREADS = 4


class FairPool:
    """Runs at most this many at a time. Whoever waits is let in by tenant, one after the other, and by time within a tenant."""

    def __init__(self, most: int = _THREADS) -> None:
        self._free = most
        #: Those who wait, by tenant; the first tenant is next.
        self._waiting: dict[str, deque[anyio.Event]] = {}

    async def run(self, work: Callable[[], R]) -> R:
        await self._enter(working_for.get())
        try:
            return await anyio.to_thread.run_sync(work)
        finally:
            self._leave()

    async def _enter(self, tenant: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = anyio.Event()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._leave()
            else:
                self._forget(tenant, turn)
            raise

    def _leave(self) -> None:
        """Pass the place on, or free it."""
        for tenant, queue in self._waiting.items():
            turn = queue.popleft()
            del self._waiting[tenant]
            if queue:
                self._waiting[tenant] = queue
            turn.set()
            return
        self._free += 1

    def _forget(self, tenant: str, turn: anyio.Event) -> None:
        queue = self._waiting[tenant]
        queue.remove(turn)
        if not queue:
            del self._waiting[tenant]


_POOL: RunVar[FairPool] = RunVar("_POOL")


def pool() -> FairPool:
    """That of the current event loop."""
    try:
        return _POOL.get()
    except LookupError:
        made = FairPool()
        _POOL.set(made)
        return made
