"""Writes that did not reach the session cache: they are not acknowledged before everybody knows that the cache may be out of date.

A process believes a cached session for `TRUST_S` after it was compared with the database. Whoever writes and cannot tell the cache
says so in the database, where every process looks before it believes, and waits until what was believed earlier has ended. The
cache is told meanwhile if it answers after all. While the doubt lasts, writes wait no longer and every read is compared.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio

from pagefile.errors import StoreError
from pagefile.ports import Claim, Clock, LeaseStore
from pagefile.records import DEFAULT_TENANT, Scope

logger = logging.getLogger("pagefile")

#: How long a process trusts a cached session after its version was checked against the database.
TRUST_S = 2.0
#: How long a doubt lasts if it is not renewed, and by how much the clocks of two hosts may differ.
_DOUBT_S, _SKEW_S = 30.0, 10.0
#: A process that looked so recently does not look again.
_LOOK_S = TRUST_S / 2
#: What is left of it when it is renewed, by the next write that needs it: longer than `TRUST_S`, so that what was compared before
#: a write is over before the doubt about it.
_RENEW_S = 10.0
_RETRY_S = 0.05
_KEPT = timedelta(days=365)
#: One for all caches of a database: its processes may know a server by different names.
_LEASE = "session cache in doubt"


class CacheDoubts:
    """What a process knows of its own lost writes and those of others."""

    def __init__(
        self,
        leases: LeaseStore,
        clock: Clock,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._leases, self._clock = leases, clock
        self._now, self._sleep = monotonic, sleep
        #: Until when nobody can have lost a write that others do not know of.
        self.clear_until = -float("inf")
        self._looked_at = -float("inf")
        #: Since when this process says that it loses writes, and until when at least others will read it.
        self._said_at, self._said_until = -float("inf"), -float("inf")

    async def look(self) -> None:
        """Find out whether anybody loses writes, unless that was looked up a moment ago."""
        began = self._now()
        if began - self._looked_at < _LOOK_S:
            return
        try:
            doubted = await self._leases.running([_LEASE], self._clock.now())
        except StoreError:
            # Whoever reads now finds out as well.
            return
        self._looked_at, self.clear_until = began, -float("inf") if doubted else began + TRUST_S

    async def outlast(self, retry: Callable[[], Awaitable[bool]]) -> None:
        """Return when no process believes what it compared before now, or as soon as the cache is told after all."""
        until = self._said_until
        if until - self._now() < _RENEW_S:
            await self._say()
        if self._now() >= until:
            # It was not said before, or was over before it was said again.
            self._said_at = self._now()
        while (left := self._said_at + TRUST_S - self._now()) > 0:
            await self._sleep(min(left, _RETRY_S))
            if await retry():
                return

    async def _say(self) -> None:
        began, now = self._now(), self._clock.now()
        until = now + timedelta(seconds=_DOUBT_S)
        claim = Claim(_LEASE, Scope(DEFAULT_TENANT), "doubt", now, until, now + _KEPT)
        try:
            if await self._leases.claim(claim, take_over=True) is not None:
                await self._leases.renew([_LEASE], until)
        except StoreError as error:
            logger.warning(
                "Other processes may see writes later: neither the cache nor they could be told: %s", error
            )
        else:
            self._said_until = began + _DOUBT_S - _SKEW_S
