"""Which erasures have reached the places outside: rows of `erasure_marks`."""

from collections.abc import Mapping

from pagefile.ports import Erasures, Owed
from pagefile.stores.sql.plays import Player, Row, Values, count, rows


class SqlErasures(Erasures):
    def __init__(self, player: Player) -> None:
        self._player = player

    async def begin(self, place: str) -> None:
        if await self._read("erasure_mark", {"name": place}):
            # Asked for whenever a home is prepared, also in a database that cannot be written.
            return
        await self._write("erasure_mark_begin", {"name": place})

    async def owed(self, place: str) -> Owed:
        found = await self._read("erasures_owed", {"name": place})
        return Owed(found[0][0] if found else 0, {scope: epoch for _, scope, epoch in found if scope})

    async def done(self, place: str, owed: Owed) -> None:
        await self._write("erasure_mark_done", {"name": place, "epoch": owed.since, "through": owed.through})

    async def redo(self, place: str, epoch: int) -> None:
        await self._write("erasure_mark_redo", {"name": place, "epoch": epoch})

    async def places(self) -> Mapping[str, int]:
        return {one[0]: one[1] for one in await self._read("erasure_marks", {})}

    async def _read(self, statement: str, values: Values) -> list[Row]:
        return await self._player.read(lambda: rows(statement, values))

    async def _write(self, statement: str, values: Values) -> None:
        await self._player.write(lambda: count(statement, values))
