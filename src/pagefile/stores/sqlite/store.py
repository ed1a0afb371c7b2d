"""A Pagefile database in one SQLite file."""

import asyncio
from collections.abc import Sequence
from functools import partial
from math import ceil
from time import monotonic
from typing import Any

import apsw

from pagefile.errors import StoreFullError, StoreUnavailableError
from pagefile.ports import Clock, Part, VectorIndex
from pagefile.records import JsonObject, Scope
from pagefile.stores.sql.auditor import SqlAuditor
from pagefile.stores.sql.plain import PlainReader, PlainTurnLog
from pagefile.stores.sql.plays import row
from pagefile.stores.sql.store import Erased, SqlStore
from pagefile.stores.sqlite.database import FileWatch, Place, Reserve, open_connections, rewrite
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.piecewise_erasure import Eraser
from pagefile.stores.sqlite.player import ConnectionPlayer, SqlitePlayer, uncompiled
from pagefile.stores.sqlite.rewriting import RewriteBudget
from pagefile.stores.sqlite.vectors import CACHE_BYTES, SqliteVectors

#: Up to this size the file is rewritten after every erasure: other writers wait for about half a second.
REWRITTEN_BYTES = 64 * 2**20
#: What may remain in a larger one.
MOVED = (
    "copies of rows that SQLite moved from one page of its file to another, which it does not overwrite: "
    "`pagefile forget … --scrub` rewrites the file"
)
#: What remains for a while after many erasures.
MOVED_YET = "copies of rows that SQLite moved: after so many erasures the file is rewritten in {seconds} s, or when it is closed"
#: What remains of an erasure while somebody reads what was there before it.
IN_LOG = "the write-ahead log, which cannot be emptied while another process reads: this is tried again until the database is closed"


class ConnectionStore(SqlStore):
    """A SQLite database in a file or in memory."""

    index_name = "sqlite"

    def __init__(self, player: ConnectionPlayer, clock: Clock) -> None:
        super().__init__(player, clock)
        self._connections = player
        self._indexes: list[SqliteVectors] = []
        self.log = PlainTurnLog(player, clock)
        self.reader = self.source = PlainReader(player)
        self.audit = SqliteAuditor(player)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex:
        size = CACHE_BYTES if cache_bytes is None else cache_bytes
        index = SqliteVectors(self._connections, self.index_name, cache_bytes=size)
        self._indexes.append(index)
        return index

    async def _left(self) -> Sequence[str]:
        for index in self._indexes:
            index.forget()
        return ()


class SqliteStore(ConnectionStore):
    """The store of `sqlite:///…`: make one with `SqliteStore.open`."""

    def __init__(self, place: Place, connections: Sequence[Connection], clock: Clock) -> None:
        writer, *readers = connections
        self._place, self._read_only, self._reserve = place, writer.readonly("main"), Reserve(place.path)
        self._watch = FileWatch(place.path)
        often = None if self._read_only else self._reserve.keep
        self._budget = RewriteBudget()
        self._writer = Writer(writer, str(place.path), check=self._watch.check, now_and_then=often)
        self._readers = Readers(readers, str(place.path))
        super().__init__(SqlitePlayer(self._writer, self._readers), clock)

    @classmethod
    async def open(cls, place: Place, *, clock: Clock, readers: int = 2) -> "SqliteStore":
        # All that may take long comes before the threads: a caller that is cancelled meanwhile leaves none behind.
        return cls(place, await asyncio.to_thread(_opened, place, readers + 1), clock)

    async def _left(self) -> Sequence[str]:
        """`secure_delete` overwrites the rows themselves, but not copies that page balancing has left elsewhere."""
        await super()._left()
        moved = await self._moved()
        return (*moved, IN_LOG) if self._writer.owes_purge else moved

    async def _moved(self) -> tuple[str, ...]:
        if self._place.path.stat().st_size > REWRITTEN_BYTES:
            return (MOVED,)
        if (wait_s := self._budget.wait_s()) > 0:
            self._writer.later(monotonic() + wait_s, self._rewrite_now)
            return (MOVED_YET.format(seconds=ceil(wait_s)),)
        try:
            await self._rewrite()
        except (StoreFullError, StoreUnavailableError):
            # The rows are erased even if this fails: the disk may be full, or another process may keep writing.
            return (MOVED,)
        return ()

    async def _erased(self, scope: Scope, part: Part | None) -> Erased:
        try:
            return await super()._erased(scope, part)
        except (StoreFullError, StoreUnavailableError) as error:
            if not isinstance(error.__cause__, apsw.FullError | apsw.IOError):
                raise

        def work(connection: Connection) -> Erased:
            eraser = Eraser(connection, str(self._place.path), self._reserve)
            return eraser.erased(scope, part, lambda: self._erasing(scope, part))

        try:
            return await self._writer.run_alone(work)
        finally:
            await asyncio.to_thread(self._reserve.keep)

    async def _rewrite(self) -> None:
        await self._writer.run_alone(lambda _: self._rewrite_now())

    def _rewrite_now(self) -> None:
        """In the writer's thread."""
        self._budget.spend(partial(rewrite, self._place))

    async def scrub(self) -> Sequence[str]:
        await self._rewrite()
        return () if await self._writer.purge() else (IN_LOG,)

    async def describe(self) -> JsonObject:
        self._watch.check()
        found: Any = await self._player.read(lambda: row("describe", {}))
        version, schema, size = found
        return {
            "backend": "sqlite",
            "version": version,
            "schema": schema,
            "place": str(self._place.path),
            "bytes": size,
            "read_only": self._read_only,
            "synchronous": self._place.synchronous,
        }

    async def close(self) -> None:
        # The writer's connection goes last, so that it can fold the write-ahead log into the file.
        await self._readers.close()
        await self._writer.close()


class SqliteAuditor(SqlAuditor):
    def __init__(self, player: ConnectionPlayer) -> None:
        super().__init__(player)
        self._connected = player

    async def errors(self, *, full: bool) -> list[str]:
        found = await self._rows("integrity_check" if full else "quick_check", {})
        damaged = await self._connected.look(uncompiled)
        return [*(str(one[0]) for one in found if one[0] != "ok"), *damaged]


def _opened(place: Place, number: int) -> Sequence[Connection]:
    connections = open_connections(place, readers=number)
    if not connections[0].readonly("main"):
        Reserve(place.path).keep()
    return connections
