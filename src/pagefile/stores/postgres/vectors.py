"""Vectors in the same PostgreSQL, with the extension pgvector, searched exactly."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from pagefile.errors import ClosedError, VectorHomeError
from pagefile.ports import HeldVector, Maker, Near, Shelf, Vector, VectorHome, VectorRow
from pagefile.records import JsonObject, Scope
from pagefile.stores.postgres.database import Database, played, quoted
from pagefile.stores.postgres.driver import (
    FORBIDDEN,
    Connection,
    RawConnection,
    Statement,
    Values,
    sql,
    translating,
)
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import keys, part_of
from pagefile.stores.sql.texts import ALL_TENANTS
from pagefile.stores.vectors import asked, batch_of, nearest, place_of, rounded

#: "PGFV": extensions belong to a database, whatever the schema.
_LOCK = 0x50474656
#: The first that has vectors of half precision.
_OLDEST = (0, 7)
_MAKE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
#: What one transaction writes.
_ROWS_AT_ONCE = 1000


class PostgresVectors(VectorHome):
    """Rows of `conversation_episodes`, all makers in one table. They go with the conversation they belong to.

    The vectors of a user are read by their key and compared one by one: whoever searches gets all that is theirs, and
    nothing slows down when others write. The price is linear, a few milliseconds for each thousand turns.
    """

    name = "pgvector"

    def __init__(self, database: Database) -> None:
        self._database = database
        #: The schema of the extension, quoted; None while it is not known that the tables are there.
        self._extension: str | None = None
        self._prepared: set[Maker] = set()
        self._closed = False

    async def prepare(self, maker: Maker) -> None:
        self._check_open()
        if await self._is_there() is None:
            await self._make()
        # `version` is a number in other statements.
        values: Values = {**asdict(maker), "maker": maker.key, "made_by": maker.version}
        known = await self._database.row("maker_known", values)
        if known is None or not known[0]:
            await self._database.write(lambda connection: connection.count("maker_write", values))
        self._prepared.add(maker)

    async def put(self, maker: Maker, rows: Sequence[VectorRow], *, epoch: int | None = None) -> None:
        self._check_open()
        batch = batch_of(maker, rows)
        if maker not in self._prepared:
            await self.prepare(maker)
        gone = [place_of(maker, row) for row in batch.gone]
        kept = [
            {
                **place_of(maker, row),
                "id": row.turn_id,
                "vector": vector.tolist(),
                "seconds": int(row.at.timestamp()),
            }
            for row, vector in zip(batch.kept, batch.vectors, strict=True)
        ]
        scopes, statement = [row.scope for row in rows], self._with_extension("episode_write")

        async def write(connection: Connection, part: slice) -> None:
            await played(connection, check_writable(epoch, scopes))
            await connection.many("episode_drop", gone[part])
            await connection.many(statement, kept[part])

        for start in range(0, max(len(kept), len(gone)), _ROWS_AT_ONCE):
            await self._database.write(partial(write, part=slice(start, start + _ROWS_AT_ONCE)))

    async def search(self, maker: Maker, scope: Scope, vector: Vector, limit: int) -> list[Near]:
        self._check_open()
        wanted = asked(maker, vector)
        if wanted is None or limit <= 0 or await self._is_there() is None:
            return []
        values: Values = {**keys(scope), "maker": maker.key, "vector": wanted.tolist(), "limit": limit}
        statement = self._with_extension(f"episodes_near_{part_of(scope)}")
        rows = await self._database.read(lambda connection: connection.rows(statement, values))
        return nearest([Near(name, seq, key, rounded(1 - far)) for name, seq, key, far in rows], limit)

    async def shelves(self) -> list[Shelf]:
        self._check_open()
        if await self._is_there() is None:
            return []
        rows = await self._database.rows("makers", ALL_TENANTS)
        return [Shelf(Maker(*maker), count) for *maker, count in rows]

    async def held(self, maker: Maker, scope: Scope, after: int, through: int) -> list[HeldVector]:
        self._check_open()
        if await self._is_there() is None:
            return []
        values: Values = {**keys(scope), "maker": maker.key, "dimension": maker.dimension}
        values |= {"after_seq": after, "through": through}
        statement = self._with_extension("vectors_held")
        rows = await self._database.read(lambda connection: connection.rows(statement, values))
        return [HeldVector(*row) for row in rows]

    async def drop(self, maker: Maker) -> int:
        self._check_open()
        if await self._is_there() is None:
            return 0
        values: Values = {**ALL_TENANTS, "maker": maker.key}

        async def drop(connection: Connection) -> int:
            await connection.count("maker_drop", values)
            return await connection.count("episodes_drop", values)

        self._prepared.discard(maker)
        return await self._database.write(drop)

    async def erase(self, scope: Scope) -> int:
        self._check_open()
        if await self._is_there() is None:
            return 0
        statement = f"erase_episodes_of_{part_of(scope)}"
        return await self._database.write(lambda connection: connection.count(statement, keys(scope)))

    async def describe(self) -> JsonObject:
        self._check_open()
        found = await self._database.row("extension_found", {})
        return {
            "backend": "pgvector",
            "version": None if found is None else found[1],
            "place": self._database.place.shown,
            "prepared": found is not None and found[2],
        }

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError

    async def _is_there(self) -> str | None:
        """The schema of the extension, None unless the tables are there too."""
        if self._extension is None:
            found = await self._database.row("extension_found", {})
            if found is not None and found[2]:
                self._extension = quoted(found[0])
        return self._extension

    def _with_extension(self, name: str) -> Statement:
        statement = sql(name)
        return replace(statement, text=statement.text.replace("{extension}", self._extension or ""))

    async def _make(self) -> None:
        """Extension and tables; others may be making them too."""
        place = self._database.place.shown
        with translating(place):
            async with self._database.raw() as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
                schema = await _extension(connection, place)
                await connection.execute(sql("episodes_make").text.replace("{extension}", quoted(schema)))
        self._extension = quoted(schema)


async def _extension(connection: RawConnection, place: str) -> str:
    """The schema of the extension, made if need be."""
    found = await connection.fetchrow(sql("extension_found").text)
    if found is None:
        await _make_extension(connection, place)
        found = await connection.fetchrow(sql("extension_found").text)
    schema, version = (found or ("", "0"))[:2]
    if _numbers(version) < _OLDEST:
        raise VectorHomeError(
            f"{place} has pgvector {version}, and 0.7 or newer is needed: install a newer one on the server and run "
            "`ALTER EXTENSION vector UPDATE` in this database."
        )
    return schema


async def _make_extension(connection: RawConnection, place: str) -> None:
    if await connection.fetchval(sql("extension_available").text) is None:
        raise VectorHomeError(
            f"The server of {place} does not have pgvector: install its package there (postgresql-NN-pgvector, or as "
            'pgvector\'s own pages say), or give the vectors another home (`vectors = "milvus://…"`, or "none").'
        )
    try:
        # Not in a schema of ours, which somebody may drop one day with everything in it.
        public = await connection.fetchval(sql("public_is_ours").text)
        await connection.execute(f"{_MAKE_EXTENSION} SCHEMA public" if public else _MAKE_EXTENSION)
    except FORBIDDEN as error:
        raise VectorHomeError(
            f"The user of {place} may not make the extension pgvector: let an administrator run `CREATE EXTENSION vector` "
            "in this database once."
        ) from error


def _numbers(version: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version).split(".")[:2] if part.isdecimal())
