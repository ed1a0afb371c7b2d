"""Which erasures have reached the places outside: rows of `erasure_marks`."""

from collections.abc import Mapping
from typing import Any

from pagefile.ports import Erasures, Owed
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values


class SqliteErasures(Erasures):
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def begin(self, place: str) -> None:
        if await self._read("erasure_mark", {"name": place}):
            # Asked for whenever a home is prepared, also in a database that cannot be written.
            return
        await self._write("erasure_mark_begin", {"name": place})

    async def owed(self, place: str) -> Owed:
        rows = await self._read("erasures_owed", {"name": place})
        return Owed(rows[0][0] if rows else 0, {scope: epoch for _, scope, epoch in rows if scope})

    async def done(self, place: str, owed: Owed) -> None:
        await self._write("erasure_mark_done", {"name": place, "epoch": owed.since, "through": owed.through})

    async def redo(self, place: str, epoch: int) -> None:
        await self._write("erasure_mark_redo", {"name": place, "epoch": epoch})

    async def places(self) -> Mapping[str, int]:
        return dict(await self._read("erasure_marks", {}))

    async def _read(self, statement: str, values: Values) -> list[Any]:
        def read(connection: Connection) -> list[Any]:
            rows: Any = connection.execute(sql(statement), values)
            return list(rows)

        return await self._readers.run(read)

    async def _write(self, statement: str, values: Values) -> None:
        def write(connection: Connection) -> None:
            connection.execute(sql(statement), values)

        await self._writer.run(write)
