"""Work that nobody waits for: writing down the windows that were handed out."""

import logging
from collections import deque
from collections.abc import Callable

import anyio

from pagefile.errors import PagefileError
from pagefile.ports import CallLog
from pagefile.records import Call

logger = logging.getLogger("pagefile")

#: Windows waiting to be written; beyond that the oldest are dropped, and the log says so.
MAX_WAITING = 1000
#: Calls of this long are written together.
_GATHER_S = 0.05

MakeCall = Callable[[], Call]


class CallWriter:
    """Writes calls in batches, off the read path."""

    def __init__(self, calls: CallLog, *, keep: int) -> None:
        self._calls = calls
        self._keep = keep
        self._waiting: deque[MakeCall] = deque()
        self._wake = anyio.Event()
        self._settled = anyio.Event()
        self._settled.set()
        self.dropped = 0

    def add(self, make: MakeCall) -> None:
        """Have a call written soon. The call is built then, not now."""
        if self._keep < 1:
            return
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
            logger.warning("dropped a recorded window: %d are waiting to be written", MAX_WAITING)
        self._waiting.append(make)
        if self._settled.is_set():
            self._settled = anyio.Event()
        self._wake.set()

    async def settle(self) -> None:
        """Wait until everything added so far is written."""
        await self._settled.wait()

    async def run(self) -> None:
        """Write what comes in, until cancelled."""
        while True:
            await self._wake.wait()
            await anyio.sleep(_GATHER_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what is waiting now."""
        self._wake = anyio.Event()
        batch = [make() for make in self._waiting]
        self._waiting.clear()
        if batch:
            await self._write(batch)
        if not self._waiting:
            self._settled.set()

    async def _write(self, batch: list[Call]) -> None:
        try:
            await self._calls.add(batch, keep=self._keep)
        except PagefileError as error:
            self.dropped += len(batch)
            logger.warning("could not record %d windows: %s", len(batch), error)
