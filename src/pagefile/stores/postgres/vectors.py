"""Vectors in the same PostgreSQL, with the extension pgvector, searched exactly."""

from collections.abc import Sequence

from pagefile.errors import VectorIndexError
from pagefile.ports import EmbeddingModel, Vector, VectorHit
from pagefile.records import JsonObject, Scope
from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.driver import FORBIDDEN, RawConnection, Values, sql, translating
from pagefile.stores.sql.rows import keys, part_of
from pagefile.stores.sql.vectors import SqlVectors
from pagefile.stores.vectors import Matrix, asked, nearest, rounded

#: "PGFV": extensions belong to a database, whatever the schema.
_LOCK = 0x50474656
#: The first that has vectors of half precision.
_OLDEST = (0, 7)
_MAKE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"


class PostgresVectors(SqlVectors):
    """The vectors of a user are read by key and compared one by one: a search is exact, and
    writes by others do not slow it down. The cost is linear, a few milliseconds per thousand turns.
    """

    name = "pgvector"
    rows_at_once = 1000

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database
        #: Whether the tables are known to exist.
        self._known = False
        self._prepared: set[EmbeddingModel] = set()

    async def prepare(self, model: EmbeddingModel) -> None:
        if not await self._is_there():
            await self._make()
        await super().prepare(model)
        self._prepared.add(model)

    async def _ready(self, model: EmbeddingModel) -> None:
        if model not in self._prepared:
            await self.prepare(model)

    def _bound(self, vectors: Matrix) -> Sequence[list[float]]:
        return vectors.tolist()

    def forget(self) -> None:
        self._prepared.clear()

    async def search(
        self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
    ) -> list[VectorHit]:
        wanted = asked(model, vector)
        if not await self._is_there() or wanted is None or limit <= 0:
            return []
        values: Values = {**keys(scope), "maker": model.key, "vector": wanted.tolist(), "limit": limit}
        found = await self._rows(f"episodes_near_{part_of(scope)}", values)
        return nearest([VectorHit(name, seq, key, rounded(1 - far)) for name, seq, key, far in found], limit)

    async def describe(self) -> JsonObject:
        self._check_open()
        found = await self._row("extension_found", {})
        return {
            "backend": "pgvector",
            "version": None if found is None else found[1],
            "place": self._database.place.shown,
            "prepared": found is not None and found[2],
        }

    async def _is_there(self) -> bool:
        self._check_open()
        if not self._known:
            found = await self._row("extension_found", {})
            if found is not None and found[2]:
                self._know(found[0])
        return self._known

    def _know(self, schema: str) -> None:
        self._database.extension = quoted(schema)
        self._known = True

    async def _make(self) -> None:
        """Create the extension and the tables; other processes may be doing so too."""
        place = self._database.place.shown
        with translating(place):
            async with self._database.raw() as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
                schema = await _extension(connection, place)
                await connection.execute(sql("episodes_make", quoted(schema)).text)
        self._know(schema)


async def _extension(connection: RawConnection, place: str) -> str:
    found = await connection.fetchrow(sql("extension_found").text)
    if found is None:
        await _make_extension(connection, place)
        found = await connection.fetchrow(sql("extension_found").text)
    schema, version = (found or ("", "0"))[:2]
    if tuple(int(part) for part in str(version).split(".")[:2] if part.isdecimal()) < _OLDEST:
        raise VectorIndexError(
            f"{place} has pgvector {version}, and 0.7 or newer is needed: install a newer one on the server and run "
            "`ALTER EXTENSION vector UPDATE` in this database."
        )
    return schema


async def _make_extension(connection: RawConnection, place: str) -> None:
    if await connection.fetchval(sql("extension_available").text) is None:
        raise VectorIndexError(
            f"The server of {place} does not have pgvector: install its package there (postgresql-NN-pgvector, or as "
            'pgvector\'s own pages say), or give the vectors another place (`vectors = "milvus://…"`, or "none").'
        )
    try:
        # Not in our own schema, which may be dropped one day with everything in it.
        public = await connection.fetchval(sql("public_is_ours").text)
        await connection.execute(f"{_MAKE_EXTENSION} SCHEMA public" if public else _MAKE_EXTENSION)
    except FORBIDDEN as error:
        raise VectorIndexError(
            f"The user of {place} may not make the extension pgvector: let an administrator run `CREATE EXTENSION vector` "
            "in this database once."
        ) from error
