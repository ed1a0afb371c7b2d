"""A Pagefile database in PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from pagefile.ports import Clock, Part, VectorHome
from pagefile.records import ErasureReceipt, JsonObject, Scope, utc
from pagefile.stores.postgres.auditing import PostgresAuditor
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.log import PostgresTurnLog
from pagefile.stores.postgres.migrating import migrate
from pagefile.stores.postgres.place import Place
from pagefile.stores.postgres.player import PostgresPlayer
from pagefile.stores.postgres.reader import PostgresReader
from pagefile.stores.postgres.scrubbing import FREED, LOGGED, scrub
from pagefile.stores.postgres.vectors import PostgresVectors
from pagefile.stores.postgres.walls import walls
from pagefile.stores.sql.store import SqlStore


class PostgresStore(SqlStore):
    """The store of `postgresql://…`: make one with `PostgresStore.open`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        player = PostgresPlayer(database)
        super().__init__(player, clock)
        self._database = database
        self.log = PostgresTurnLog(player, database, clock)
        self.reader = self.source = PostgresReader(player)
        self.audit = PostgresAuditor(player, database)

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
        counts, places, gone = await self._player.write(
            lambda: self._erasing(scope, part), again=False, erases=True
        )
        one = (None, None) if part is None else (part.turn_id, part.page)
        return ErasureReceipt(scope, utc(self._clock.now()), counts, (FREED, LOGGED), *one, places, gone)

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
