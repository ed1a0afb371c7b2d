"""A Pagefile database in PostgreSQL."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pagefile.ports import Clock, Part, Store, VectorHome
from pagefile.records import ErasureReceipt, JsonObject, Scope, utc
from pagefile.stores.postgres.auditing import PostgresAuditor
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.derived import PostgresTerms, PostgresWatermarks
from pagefile.stores.postgres.erasing import erase
from pagefile.stores.postgres.erasures import PostgresErasures
from pagefile.stores.postgres.facts import PostgresFacts
from pagefile.stores.postgres.items import PostgresItems
from pagefile.stores.postgres.keeping import PostgresPageKeeper
from pagefile.stores.postgres.keys import PostgresKeys
from pagefile.stores.postgres.log import PostgresTurnLog
from pagefile.stores.postgres.media import PostgresMedia
from pagefile.stores.postgres.migrating import migrate
from pagefile.stores.postgres.pages import PostgresPages
from pagefile.stores.postgres.parts import erase_part
from pagefile.stores.postgres.passages import PostgresPageIndex
from pagefile.stores.postgres.place import Place
from pagefile.stores.postgres.reader import PostgresReader
from pagefile.stores.postgres.scrubbing import FREED, LOGGED, scrub
from pagefile.stores.postgres.sessions import PostgresSessions
from pagefile.stores.postgres.shelves import PostgresCalls
from pagefile.stores.postgres.vectors import PostgresVectors
from pagefile.stores.postgres.walls import walls


class PostgresStore(Store):
    """The store of `postgresql://…`: make one with `PostgresStore.open`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.log = PostgresTurnLog(database, clock)
        self.reader = self.source = PostgresReader(database)
        self.facts = PostgresFacts(database)
        self.pages = PostgresPages(database)
        self.page_keeper = PostgresPageKeeper(database)
        self.page_index = PostgresPageIndex(database)
        self.media = PostgresMedia(database)
        self.calls = PostgresCalls(database)
        self.sessions = PostgresSessions(database, clock)
        self.watermarks = PostgresWatermarks(database)
        self.terms = PostgresTerms(database)
        self.keys = PostgresKeys(database)
        self.items = PostgresItems(database)
        self.erasures = PostgresErasures(database)
        self.audit = PostgresAuditor(database)

    @classmethod
    async def open(cls, place: Place, *, clock: Clock) -> "PostgresStore":
        """Connect, and make or migrate the schema."""
        database = await Database.open(place)
        try:
            await migrate(database)
        except BaseException:
            await database.close()
            raise
        return cls(database, clock)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome:
        return PostgresVectors(self._database)

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        if part is not None:
            work = partial(erase_part, scope=scope, part=part, now=utc(self._clock.now()))
            counts, places = await self._database.write(work, again=False)
            pending = (FREED, LOGGED)
            return ErasureReceipt(
                scope, utc(self._clock.now()), counts, pending, part.turn_id, part.page, places
            )
        counts, gone = await self._database.write(lambda connection: erase(connection, scope), again=False)
        return ErasureReceipt(scope, utc(self._clock.now()), counts, (FREED, LOGGED), conversations=gone)

    async def scrub(self) -> Sequence[str]:
        return await self._database.read(scrub)

    async def describe(self) -> JsonObject:
        place = self._database.place
        row: Any = await self._database.row("describe", {})
        version, revision, read_only, size = row
        return {
            "backend": "postgresql",
            "version": version,
            "schema": revision,
            "place": place.shown,
            "namespace": place.schema,
            "bytes": size,
            "read_only": read_only,
            "synchronous": place.synchronous,
            **await walls(self._database),
        }

    async def close(self) -> None:
        await self._database.close()
