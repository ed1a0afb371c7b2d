"""The store of a SQL database: every port that needs nothing of its own."""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from anyio import CancelScope

from pagefile.ports import Clock, Part, Store
from pagefile.records import ErasureReceipt, Scope, utc
from pagefile.stores.erasure import Places
from pagefile.stores.sql.erasure import erase, erase_part
from pagefile.stores.sql.facts import SqlFacts
from pagefile.stores.sql.items import SqlItems
from pagefile.stores.sql.leases import SqlLeases
from pagefile.stores.sql.pages import SqlMedia, SqlPageIndex, SqlPageKeeper, SqlPages
from pagefile.stores.sql.plays import Play, Player
from pagefile.stores.sql.sessions import SqlSessions
from pagefile.stores.sql.tables import SqlCalls, SqlErasures, SqlKeys, SqlTerms, SqlWatermarks

logger = logging.getLogger("pagefile")

#: How many rows were erased, the position of the turn in the log, and which conversations were erased.
Erased = tuple[dict[str, int], Places, tuple[str, ...]]

#: The erasures so far, where a task makes many of them.
_many: ContextVar[list[Scope] | None] = ContextVar("_many", default=None)


class SqlStore(Store, ABC):
    """A dialect adds the log, its reader, the auditor and its description."""

    def __init__(self, player: Player, clock: Clock) -> None:
        self._player = player
        self._clock = clock
        self.facts = SqlFacts(player)
        self.pages = SqlPages(player)
        self.page_keeper = SqlPageKeeper(player)
        self.page_index = SqlPageIndex(player)
        self.media = SqlMedia(player)
        self.calls = SqlCalls(player)
        self.sessions = SqlSessions(player, clock)
        self.watermarks = SqlWatermarks(player)
        self.terms = SqlTerms(player)
        self.keys = SqlKeys(player)
        self.items = SqlItems(player)
        self.leases = SqlLeases(player)
        self.erasures = SqlErasures(player)

    @abstractmethod
    async def _left(self) -> Sequence[str]:
        """Where files may still hold erased data; called after every erasure."""

    async def _erased(self, scope: Scope, part: Part | None) -> Erased:
        alone = _many.get() is None
        return await self._player.write(lambda: self._erasing(scope, part), again=False, erases=alone)

    @asynccontextmanager
    async def many_erasures(self) -> AsyncGenerator[None]:
        erased: list[Scope] = []
        token = _many.set(erased)
        try:
            yield
        finally:
            _many.reset(token)
            if erased:
                # Also where it was cancelled: the rows are erased, and the copies of them are not yet.
                with CancelScope(shield=True):
                    await self._player.write(_nothing, erases=True)
                    for left in await self._left():
                        logger.warning("after %d erasure(s) something may remain: %s", len(erased), left)

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        counts, places, gone = await self._erased(scope, part)
        if (erased := _many.get()) is not None:
            erased.append(scope)
        left = tuple(await self._left()) if erased is None else ()
        one = (None, None) if part is None else (part.turn_id, part.page)
        return ErasureReceipt(scope, utc(self._clock.now()), counts, left, *one, places, gone)

    def _erasing(self, scope: Scope, part: Part | None) -> Play[Erased]:
        if part is not None:
            return *(yield from erase_part(scope, part, utc(self._clock.now()))), ()
        counts, gone = yield from erase(scope)
        return counts, (), gone


def _nothing() -> Play[None]:
    """A write after which the write-ahead log is emptied."""
    return
    yield
