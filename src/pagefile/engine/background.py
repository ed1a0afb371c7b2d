"""Work that nobody waits for: writing down the windows that were handed out, purging old pages."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import timedelta
from itertools import chain
from operator import itemgetter

import anyio

from pagefile.errors import PagefileError
from pagefile.ports import CallLog, Clock, PageKeeper, PurgeRequest
from pagefile.records import Call, Scope

logger = logging.getLogger("pagefile")

#: Windows waiting to be written; beyond that the oldest are dropped, and the log says so.
MAX_WAITING = 1000
#: Calls of this long are written together: of a conversation that asks again and again, only the newest are made at all.
_GATHER_S = 0.5
#: How long a listing of calls waits for the newest ones to be written.
_CATCH_UP_S = 1.0

#: How often retention looks after the pages.
RETENTION_EVERY_S = 3600.0

MakeCall = Callable[[], Call]


class PageRetention:
    """Purges the texts of pages that are too old or too many, of every tenant."""

    def __init__(
        self,
        keeper: PageKeeper,
        clock: Clock,
        *,
        days: float,
        max_bytes: int,
    ) -> None:
        self._keeper = keeper
        self._clock = clock
        self._days = days
        self._max_bytes = max_bytes

    async def run(self) -> None:
        """Look after the pages now and then, until cancelled; does nothing when everything is kept for good."""
        while self._days or self._max_bytes:
            try:
                await self.purge()
            except Exception:
                # Nobody waits for this, and the next round tries again.
                logger.exception("could not purge old pages")
            await anyio.sleep(RETENTION_EVERY_S)

    async def purge(self) -> int:
        """Purge what is due; returns how many pages became tombstones."""
        now = self._clock.now()
        before = now - timedelta(days=self._days) if self._days else None
        purged = 0
        for tenant in await self._keeper.tenants():
            request = PurgeRequest(Scope(tenant), now, None, before, self._max_bytes or None)
            purged += len(await self._keeper.purge(request))
        if purged:
            logger.info("purged the texts of %d archived pages", purged)
        return purged


class CallWriter:
    """Writes calls in batches, off the read path."""

    def __init__(self, calls: CallLog, *, keep: int) -> None:
        self._calls = calls
        self._keep = keep
        #: By conversation, no more than are kept of it.
        self._waiting: OrderedDict[Scope, deque[tuple[int, MakeCall]]] = OrderedDict()
        self._wake = anyio.Event()
        self._hurry = anyio.Event()
        self._progress = anyio.Event()
        self._added = 0
        self._done = 0
        self.dropped = 0
        self._told = False

    def add(self, scope: Scope, make: MakeCall) -> None:
        """Have a call of a conversation written soon. The call is built then, not now."""
        if self._keep < 1:
            return
        if self._added - self._done >= MAX_WAITING:
            self._drop_one()
        waiting = self._waiting.setdefault(scope, deque())
        if len(waiting) >= self._keep:
            # It would be gone again with the writing of the others.
            waiting.popleft()
            self._done += 1
        self._added += 1
        waiting.append((self._added, make))
        self._wake.set()

    async def settle(self) -> None:
        """Wait until everything added so far is written; what others add meanwhile is not waited for."""
        target = self._added
        while self._done < target:
            self._hurry.set()
            await self._progress.wait()

    async def catch_up(self) -> None:
        """The same for whoever lists calls: a store that is slow is not waited for long."""
        with anyio.move_on_after(_CATCH_UP_S):
            await self.settle()

    async def run(self) -> None:
        """Write what comes in, until cancelled."""
        while True:
            await self._wake.wait()
            with anyio.move_on_after(_GATHER_S):
                await self._hurry.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write what is waiting now."""
        if self._wake.is_set():
            # One that is not set may be waited for: whoever replaced it would wake nobody.
            self._wake = anyio.Event()
        if self._hurry.is_set():
            self._hurry = anyio.Event()
        # In the order in which they were handed out, whosever they are.
        waiting = sorted(chain.from_iterable(self._waiting.values()), key=itemgetter(0))
        batch = [make() for _, make in waiting]
        self._waiting.clear()
        if batch:
            await self._write(batch)
        self._done += len(batch)
        self._progress.set()
        self._progress = anyio.Event()

    def _drop_one(self) -> None:
        scope, waiting = next(iter(self._waiting.items()), (None, None))
        if scope is None or waiting is None:
            # All of them are being written now.
            return
        waiting.popleft()
        if not waiting:
            del self._waiting[scope]
        self._done += 1
        self.dropped += 1
        logger.warning("dropped a recorded window: %d are waiting to be written", MAX_WAITING)

    async def _write(self, batch: list[Call]) -> None:
        try:
            await self._calls.add(batch, keep=self._keep)
        except PagefileError as error:
            # A database that may only be read, or is away: once is enough to know.
            self.dropped += len(batch)
            logger.log(
                logging.DEBUG if self._told else logging.WARNING, "could not record windows: %s", error
            )
            self._told = True
        except Exception:
            # Nobody waits for this, and the memory must go on without it.
            self.dropped += len(batch)
            logger.exception("could not record %d windows", len(batch))
        else:
            self._told = False
