"""What the first windows of a process need and do not have yet: a program that serves requests has it loaded before they come.

On a busy machine it takes longer than a request may wait for memory. So that time does not count: requests wait for it, up to a limit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import date
from time import monotonic

import anyio.to_thread

from pagefile.arrays import np
from pagefile.text.times import periods
from pagefile.text.words import terms

logger = logging.getLogger("pagefile")

#: How long requests wait, from the beginning of the loading.
PATIENCE_S = 10.0


class Loading:
    """Begun once, by whoever serves requests: opening a memory loads nothing."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._wanted, self._until = False, 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def left_s(self) -> float:
        """How long requests still wait; 0 once everything is loaded, or if nothing is."""
        return max(0.0, self._until - monotonic())

    def or_longer(self, timeout_s: float) -> float:
        """How long to wait for a vector."""
        return max(timeout_s, self.left_s)

    def begin(self) -> None:
        """From any thread, more than once."""
        if self._wanted:
            return
        self._until, self._wanted = monotonic() + PATIENCE_S, True
        if self._loop is not None:
            # A memory may be closed by now.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._begun.set)

    async def run(self, load: Callable[[], Awaitable[object]]) -> None:
        """Load when told to, in the memory's event loop; `load` never fails."""
        self._loop = asyncio.get_running_loop()
        try:
            if not self._wanted:
                await self._begun.wait()
            await anyio.to_thread.run_sync(_import, abandon_on_cancel=True)
            await load()
        finally:
            self._until = 0.0


def _import() -> None:
    try:
        np.zeros(1)
        # The dictionary of Chinese words, and the patterns of times.
        terms("加载")
        periods("last week", date(2000, 1, 1))
    except ImportError:
        # Whoever needs what is missing says so.
        pass
    except Exception as error:
        # Whatever an import may raise: it would close the memory under whoever uses it, for something that only saves time.
        logger.warning("what the first windows need was not loaded before them: %s", type(error).__name__)
