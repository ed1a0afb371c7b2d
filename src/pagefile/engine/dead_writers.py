"""Ends turns whose process died while it answered them, so that what the user said is summarized and recalled.

Until then they are in the windows of their own conversation only. Whoever answers a turn holds a lease in the database that says which
turn it is. When one has ended and nobody took it over for a while, any process that does background work gives up the turn. A slow
answer renews its lease, however long it takes.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from pagefile.errors import ConflictError, ErasedError, NotFoundError, StoreError
from pagefile.ports import Claim, Clock, LeaseStore
from pagefile.records import Scope
from pagefile.tiers.base import Backlog, Pace, Tier

logger = logging.getLogger("pagefile")

#: After the end of its lease, the client of an answer has so long to come back: whoever it reaches goes on with the turn.
PATIENCE = timedelta(seconds=30)
#: The lease of an answer is kept for so long, by whom nobody looks after earlier.
KEPT = timedelta(days=365)
_NOT_SHORT = timedelta(days=30)
#: The lease of a turn that is answered by a process of somebody else's, whose event loop may be held up.
_HELD = timedelta(minutes=2)
_AT_ONCE = 100
_MINUTE = timedelta(minutes=1)

GiveUp = Callable[[Scope, str], Awaitable[object]]


def about(scope: Scope, turn_id: str) -> str:
    """What the lease of an answer says of it."""
    return json.dumps([scope.tenant, scope.user, scope.conversation, turn_id])


class DeadWriters(Tier):
    """Background work like a tier's, in every process that does any."""

    name = "dead writers"
    pace = Pace(first_sweep_s=5.0, sweep_every_s=15.0, together=True)

    def __init__(self, leases: LeaseStore, clock: Clock) -> None:
        self._leases, self._clock = leases, clock
        #: Ends a turn without an answer; set by whoever opened the memory.
        self.give_up: GiveUp | None = None
        #: The leases of turns that this process answers, which are renewed here.
        self._held: set[str] = set()

    async def hold(self, scope: Scope, turn_id: str) -> str | None:
        """Say that this process answers a turn and nobody else will; returns the lease, if there is one."""
        lease, now = uuid4().hex, self._clock.now()
        claim = Claim(lease, scope, "turn", now, now + _HELD, now + KEPT, about(scope, turn_id))
        try:
            await self._leases.claim(claim)
        except StoreError as error:
            logger.warning("If this process dies, turn %s stays open for a day: %s", turn_id, error)
            return None
        self._held.add(lease)
        return lease

    async def let_go(self, lease: str | None) -> None:
        """The turn has ended. A lease that cannot be released is, once it has lapsed."""
        if lease is not None:
            self._held.discard(lease)
            with suppress(StoreError):
                await self._leases.release(lease)

    async def maintain_all(self, backlog: Backlog) -> None:
        if self.give_up is None or not backlog.sweep:
            return
        now = self._clock.now()
        await self._leases.renew(self._held, now + _HELD)
        for lease, said in await self._leases.lapsed(now - PATIENCE, kept=now + _NOT_SHORT, limit=_AT_ONCE):
            *names, turn_id = json.loads(said)
            await self._ended(lease, said, Scope(*names), turn_id, self.give_up)

    async def _ended(self, lease: str, said: str, scope: Scope, turn_id: str, give_up: GiveUp) -> None:
        now = self._clock.now()
        claim = Claim(lease, scope, "stream", now, now + _MINUTE, now + KEPT, said)
        if await self._leases.claim(claim, take_over=True) is not None:
            # Somebody goes on with it, or another process ends it.
            return
        try:
            await give_up(scope, turn_id)
        except (ConflictError, NotFoundError, ErasedError):
            # It was answered at the last moment, or erased.
            pass
        else:
            logger.info("turn %s was given up: the process that answered it is gone", turn_id)
        await self._leases.release(lease)

    @property
    def drains(self) -> bool:
        return False
