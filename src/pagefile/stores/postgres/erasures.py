"""Which erasures have reached the places outside: rows of `erasure_marks`."""

from collections.abc import Mapping

from pagefile.ports import Erasures, Owed
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Values


class PostgresErasures(Erasures):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, place: str) -> None:
        if await self._database.rows("erasure_mark", {"name": place}):
            # Asked for whenever a home is prepared, also in a database that cannot be written.
            return
        await self._write("erasure_mark_begin", {"name": place})

    async def owed(self, place: str) -> Owed:
        rows = await self._database.rows("erasures_owed", {"name": place})
        return Owed(rows[0][0] if rows else 0, {scope: epoch for _, scope, epoch in rows if scope})

    async def done(self, place: str, owed: Owed) -> None:
        await self._write("erasure_mark_done", {"name": place, "epoch": owed.since, "through": owed.through})

    async def redo(self, place: str, epoch: int) -> None:
        await self._write("erasure_mark_redo", {"name": place, "epoch": epoch})

    async def places(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._database.rows("erasure_marks", {})}

    async def _write(self, statement: str, values: Values) -> None:
        await self._database.write(lambda connection: connection.count(statement, values))
