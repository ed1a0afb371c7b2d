"""Writes down the windows that were handed out, in batches and off the read path."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter

import anyio

from pagefile.errors import ErasedError, PagefileError
from pagefile.ports import CallLog
from pagefile.records import Call, Scope
from pagefile.tiers.base import Backlog, Pace, Report, unreported

logger = logging.getLogger("pagefile")

#: Windows waiting to be written; beyond that the oldest are dropped, and the log says so.
MAX_WAITING = 1000

MakeCall = Callable[[], Call]


class CallRecorder:
    """Background work like that of a tier, but always of this process: what it writes is in its memory only."""

    name = "calls"
    #: Calls of half a second are written together: of a conversation that asks again and again, only the newest are made at all.
    pace = Pace(quiet_s=0.5, longest_wait_s=0.5, together=True)
    drains = True

    def __init__(self, calls: CallLog, *, keep: int) -> None:
        self._calls = calls
        self._keep = keep
        #: By conversation, no more than are kept of it.
        self._waiting: OrderedDict[Scope, deque[tuple[int, int, MakeCall]]] = OrderedDict()
        self._added = 0
        self._done = 0
        self.dropped = 0
        self._told = False
        self.report: Report = unreported
        #: Has what waits written soon.
        self.wake: Callable[[Scope], None] = _unheard

    def add(self, scope: Scope, make: MakeCall, *, epoch: int = 0) -> None:
        """Have a call of a conversation written soon, unless its scope is erased before. The call is built then, not now."""
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
        waiting.append((self._added, epoch, make))
        self.wake(scope)

    @property
    def waiting(self) -> bool:
        """Whether a call is not written yet."""
        return self._done < self._added

    async def maintain(self, scope: Scope) -> None:
        await self.flush()

    async def maintain_all(self, backlog: Backlog) -> None:
        await self.flush()

    async def behind(self) -> Sequence[Scope]:
        return ()

    async def flush(self) -> None:
        """Write what is waiting now."""
        # In the order in which they were handed out, whosever they are.
        waiting = sorted(chain.from_iterable(self._waiting.values()), key=itemgetter(0))
        self._waiting.clear()
        batch = [(epoch, call) for _, epoch, make in waiting if (call := self._made(make)) is not None]
        # They wait nowhere any more: whoever was stopped here, as when a memory is closed, would lose them.
        with anyio.CancelScope(shield=True):
            for epoch, calls in groupby(batch, key=itemgetter(0)):
                await self._write([call for _, call in calls], epoch)
        self._done += len(waiting)

    def _made(self, make: MakeCall) -> Call | None:
        try:
            return make()
        except Exception:
            # As in `_write`; tried again it would fail again, and nothing would be written any more.
            self.dropped += 1
            logger.exception("could not record a window")
            return None

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

    async def _write(self, batch: list[Call], epoch: int) -> None:
        try:
            await self._calls.add(batch, keep=self._keep, epoch=epoch)
        except ErasedError:
            # One of them was erased, and takes the whole batch with it: the others are written one by one.
            for call in batch if len(batch) > 1 else ():
                await self._write([call], epoch)
        except PagefileError as error:
            # A database that may only be read, or is away: once is enough to know.
            self.dropped += len(batch)
            logger.log(
                logging.DEBUG if self._told else logging.WARNING, "could not record windows: %s", error
            )
            self._told = True
        except Exception:
            # No caller waits for this, and the memory must go on without it.
            self.dropped += len(batch)
            logger.exception("could not record %d windows", len(batch))
        else:
            self._told = False


def _unheard(_: Scope) -> None:
    """A recorder without a worker is flushed by hand."""
