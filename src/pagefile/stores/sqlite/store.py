"""A Pagefile database in one SQLite file."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apsw

from pagefile.errors import StoreFullError, StoreUnavailableError
from pagefile.ports import Clock, Part, Store, VectorHome
from pagefile.records import ErasureReceipt, JsonObject, Scope, utc
from pagefile.stores.erasing import Places
from pagefile.stores.sqlite.auditing import SqliteAuditor
from pagefile.stores.sqlite.connecting import Place, open_connections, rewrite
from pagefile.stores.sqlite.derived import SqliteTerms, SqliteWatermarks
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.erasing import erase
from pagefile.stores.sqlite.erasures import SqliteErasures
from pagefile.stores.sqlite.facts import SqliteFacts
from pagefile.stores.sqlite.items import SqliteItems
from pagefile.stores.sqlite.keeping import SqlitePageKeeper
from pagefile.stores.sqlite.keys import SqliteKeys
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.log import SqliteTurnLog
from pagefile.stores.sqlite.media import SqliteMedia
from pagefile.stores.sqlite.pages import SqlitePages
from pagefile.stores.sqlite.parts import erase_part
from pagefile.stores.sqlite.passages import SqlitePageIndex
from pagefile.stores.sqlite.reader import SqliteReader
from pagefile.stores.sqlite.reserve import Reserve
from pagefile.stores.sqlite.shelves import SqliteCalls, SqliteSessions
from pagefile.stores.sqlite.thinning import erased_on_full_disk
from pagefile.stores.sqlite.vectors import CACHE_BYTES, SqliteVectors


@dataclass(frozen=True, slots=True)
class Parts:
    """What an open store works with."""

    writer: Writer
    readers: Readers
    clock: Clock
    place: Place
    read_only: bool
    reserve: Reserve


#: Up to this size the file is rewritten after every erasure: others who write wait for about half a second.
REWRITTEN_BYTES = 64 * 2**20
#: What is left in a larger one.
MOVED = (
    "copies of rows that SQLite moved from one page of its file to another, which it does not overwrite: "
    "`pagefile forget … --scrub` rewrites the file"
)

#: How many rows went, where a turn stood, and which conversations went.
_Erased = tuple[dict[str, int], Places, tuple[str, ...]]


class SqliteStore(Store):
    """The store of `sqlite:///…`: make one with `SqliteStore.open`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._homes: list[SqliteVectors] = []
        writer, readers, clock = parts.writer, parts.readers, parts.clock
        self.log = SqliteTurnLog(writer, readers, clock)
        self.reader = self.source = SqliteReader(readers)
        self.facts = SqliteFacts(writer, readers)
        self.pages = SqlitePages(writer, readers)
        self.page_keeper = SqlitePageKeeper(writer, readers)
        self.page_index = SqlitePageIndex(writer, readers)
        self.media = SqliteMedia(readers)
        self.calls = SqliteCalls(writer, readers)
        self.sessions = SqliteSessions(writer, readers, clock)
        self.watermarks = SqliteWatermarks(writer, readers)
        self.terms = SqliteTerms(writer, readers)
        self.keys = SqliteKeys(writer, readers)
        self.items = SqliteItems(writer, readers)
        self.erasures = SqliteErasures(writer, readers)
        self.audit = SqliteAuditor(writer, readers)

    @classmethod
    async def open(cls, place: Place, *, clock: Clock, readers: int = 2) -> "SqliteStore":
        """Open the file, make or migrate its schema, and start the threads."""
        opened = await asyncio.to_thread(open_connections, place, readers=readers + 1)
        name, reserve = str(place.path), Reserve(place.path)
        if not opened.read_only:
            await asyncio.to_thread(reserve.keep)
        writer = Writer(opened.writer, name, now_and_then=None if opened.read_only else reserve.keep)
        readers_ = Readers(opened.readers, name)
        return cls(Parts(writer, readers_, clock, place, opened.read_only, reserve))

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome:
        size = CACHE_BYTES if cache_bytes is None else cache_bytes
        home = SqliteVectors(self._parts.writer, self._parts.readers, cache_bytes=size)
        self._homes.append(home)
        return home

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        counts, places, gone = await self._erased(scope, part)
        for home in self._homes:
            home.forget()
        one = (None, None) if part is None else (part.turn_id, part.page)
        left = await self._rewritten()
        return ErasureReceipt(scope, utc(self._parts.clock.now()), counts, left, *one, places, gone)

    async def _rewritten(self) -> tuple[str, ...]:
        """`secure_delete` overwrites the rows themselves, and not what the balancing of pages has left of them elsewhere."""
        place = self._parts.place
        if place.path.stat().st_size > REWRITTEN_BYTES:
            return (MOVED,)
        try:
            await asyncio.to_thread(rewrite, place)
        except (StoreFullError, StoreUnavailableError):
            # The rows are gone whatever becomes of it: a full disk has no room, somebody else writes all the time.
            return (MOVED,)
        return ()

    async def _erased(self, scope: Scope, part: Part | None) -> _Erased:
        writer, reserve = self._parts.writer, self._parts.reserve

        def work(connection: Connection) -> _Erased:
            if part is not None:
                return *erase_part(connection, scope, part), ()
            counts, gone = erase(connection, scope)
            return counts, (), gone

        try:
            return await writer.run(work, purge=True)
        except (StoreFullError, StoreUnavailableError) as error:
            if not isinstance(error.__cause__, apsw.FullError | apsw.IOError):
                raise
        full = partial(erased_on_full_disk, place=str(self._parts.place.path), reserve=reserve, scope=scope)
        try:
            return await writer.run_alone(
                lambda connection: full(
                    connection, work, part=part, of_pieces=lambda counts, gone: (counts, (), gone)
                )
            )
        finally:
            await asyncio.to_thread(reserve.keep)

    async def scrub(self) -> Sequence[str]:
        await asyncio.to_thread(rewrite, self._parts.place)
        return ()

    async def describe(self) -> JsonObject:
        place, read_only = self._parts.place, self._parts.read_only

        def read(connection: Connection) -> JsonObject:
            pages: Any = connection.pragma("page_count")
            return {
                "backend": "sqlite",
                "version": apsw.sqlite_lib_version(),
                "schema": connection.pragma("user_version"),
                "place": str(place.path),
                "bytes": pages * connection.pragma("page_size"),
                "read_only": read_only,
                "synchronous": place.synchronous,
            }

        return await self._parts.readers.run(read)

    async def close(self) -> None:
        # The writer's connection goes last, so that it can fold the write-ahead log into the file.
        await self._parts.readers.close()
        await self._parts.writer.close()
