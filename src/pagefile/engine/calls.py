"""Records the windows that were handed out, in batches and off the read path."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

import anyio

from pagefile.errors import ErasedError, PagefileError
from pagefile.ports import WindowLog
from pagefile.records import Scope, WindowRecord
from pagefile.tiers.base import Backlog, Pace, Tier, guarded

logger = logging.getLogger("pagefile")

#: Windows waiting to be written; beyond this the oldest are dropped, with a warning in the log.
MAX_WAITING = 1000

MakeRecord = Callable[[], WindowRecord]


class WindowRecorder(Tier):
    """Background work like a tier's, but always done by this process: pending calls exist only in its memory."""

    name = "calls"
    #: Half a second of calls is written together, so that a busy conversation only builds the newest ones.
    pace = Pace(quiet_s=0.5, longest_wait_s=0.5, together=True)

    def __init__(self, calls: WindowLog, *, keep: int) -> None:
        self._calls = calls
        self._keep = keep
        #: Pending calls by conversation, at most as many as are kept of each.
        self._waiting: dict[Scope, deque[tuple[int, int, MakeRecord]]] = {}
        self._added = 0
        self._done = 0
        self.dropped = 0
        self._told = False
        #: Schedules the pending calls to be written; without a worker, they are flushed explicitly.
        self.wake: Callable[[Scope], None] = lambda _: None

    def add(self, scope: Scope, make: MakeRecord, *, epoch: int = 0) -> None:
        """Schedule a call to be written, unless its scope is erased first. The call is built at that time."""
        if self._keep < 1:
            return
        # If nothing is queued, all of them are being written already.
        if self._waiting and self._added - self._done >= MAX_WAITING:
            first, queue = next(iter(self._waiting.items()))
            queue.popleft()
            if not queue:
                del self._waiting[first]
            self._done += 1
            self.dropped += 1
            logger.warning("dropped a recorded window: %d are waiting to be written", MAX_WAITING)
        waiting = self._waiting.setdefault(scope, deque(maxlen=self._keep))
        # The oldest goes if there are too many: writing the others would remove it again.
        self._done += len(waiting) == self._keep
        self._added += 1
        waiting.append((self._added, epoch, make))
        self.wake(scope)

    @property
    def waiting(self) -> bool:
        return self._done < self._added

    async def maintain_all(self, backlog: Backlog) -> None:
        await self.flush()

    async def flush(self) -> None:
        # In the order in which they were handed out, across conversations.
        waiting = sorted(chain.from_iterable(self._waiting.values()), key=itemgetter(0))
        self._waiting.clear()
        batch: list[tuple[int, WindowRecord]] = []
        for _, epoch, make in waiting:
            # Retrying would fail again and block all further writes.
            with guarded(partial(self._lost, 1)):
                batch.append((epoch, make()))
        # They are no longer queued: a cancellation here, as when a memory is closed, would lose them.
        with anyio.CancelScope(shield=True):
            for epoch, calls in groupby(batch, key=itemgetter(0)):
                await self._write([call for _, call in calls], epoch)
        self._done += len(waiting)

    def _lost(self, number: int, error: Exception) -> None:
        """No caller waits for this, and the memory must keep working without it."""
        self.dropped += number
        logger.error("could not record %d windows", number, exc_info=error)

    async def _write(self, batch: list[WindowRecord], epoch: int) -> None:
        with guarded(partial(self._lost, len(batch))):
            try:
                await self._calls.add(batch, keep=self._keep, epoch=epoch)
            except ErasedError:
                # One of them was erased, which fails the whole batch: write the others one by one.
                for call in batch if len(batch) > 1 else ():
                    await self._write([call], epoch)
            except PagefileError as error:
                # The database is read-only or unreachable: one warning is enough.
                self.dropped += len(batch)
                level = logging.DEBUG if self._told else logging.WARNING
                logger.log(level, "could not record windows: %s", error)
                self._told = True
            else:
                self._told = False
