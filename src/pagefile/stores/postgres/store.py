"""A Pagefile database in PostgreSQL."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any

import anyio

from pagefile.errors import StoreCorruptError, StoreUnavailableError
from pagefile.ports import Clock, VectorIndex
from pagefile.records import JsonObject
from pagefile.stores.erasure import OF_CONVERSATIONS, OF_OWNERS
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.driver import FORBIDDEN, Connection
from pagefile.stores.postgres.log import READ_TOGETHER, PostgresReader, PostgresTurnLog
from pagefile.stores.postgres.migration import migrate
from pagefile.stores.postgres.vectors import PostgresVectors
from pagefile.stores.sql.auditor import SqlAuditor
from pagefile.stores.sql.plays import row
from pagefile.stores.sql.store import SqlStore
from pagefile.stores.sql.tables import SqlTerms


class PostgresStore(SqlStore):
    """The store of `postgresql://…`: make one with `PostgresStore.open`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._database = database
        self.log = PostgresTurnLog(database, clock)
        self.reader = self.source = PostgresReader(database)
        self.audit = PostgresAuditor(database)
        self.terms = PostgresTerms(database)

    @classmethod
    async def open(cls, place: Place, *, clock: Clock) -> "PostgresStore":
        async with AsyncExitStack() as undo:
            database = await Database.open(place)
            undo.push_async_callback(database.close)
            await migrate(database)
            undo.pop_all()
            return cls(database, clock)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex:
        return PostgresVectors(self._database)

    async def _left(self) -> Sequence[str]:
        return FREED, LOGGED

    async def scrub(self) -> Sequence[str]:
        return await self._database.run(scrub)

    async def describe(self) -> JsonObject:
        place = self._database.place
        found: Any = await self._database.read(lambda: row("describe", {}))
        version, revision, read_only, size = found
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


#: Every table that has a column `tenant`.
WALLED = (*OF_OWNERS, *OF_CONVERSATIONS, "api_keys", "conversation_episodes", "leases")
_TO_DO = (
    "Row-level security does not hold this role. Give the service one that it holds, and keep this one for `pagefile upgrade`",
    "Row-level security was removed from some tables. Put it back",
)


async def walls(database: Database) -> JsonObject:
    """Whether row-level security applies to the role of the URL, for `describe`."""
    found: Any = await database.read(lambda: row("describe_walls", {"names": list(WALLED)}))
    role, privilege, open_tables, mended = found
    state = f"off for {', '.join(open_tables)}" if open_tables else "on"
    return {
        "role": role,
        "row_security": state if privilege is None else f"bypassed by {privilege}",
        "advice": None if mended is None else f"{_TO_DO[privilege is None]}: {mended}",
    }


logger = logging.getLogger("pagefile")


class PostgresTerms(SqlTerms):
    together = READ_TOGETHER


class PostgresAuditor(SqlAuditor):
    keeps_sums = True

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    async def errors(self, *, full: bool) -> list[str]:
        """Check indexes where the extension amcheck is installed, and only in a full run: it reads all of them."""
        found = await self._row("audit_amcheck", {})
        if not full or found is None:
            return []
        errors: list[str] = []
        for (index,) in await self._rows("audit_indexes", {}):

            async def check(connection: Connection, index: str = index) -> None:
                await Connection(connection.raw, quoted(found[0])).row("audit_index", {"name": index})

            try:
                await self._database.run(check)
            except StoreCorruptError as error:
                errors.append(f"index {index}: {error}")
            except StoreUnavailableError as error:
                logger.warning("the indexes of the database are not checked: %s", error)
                break
        return errors


#: What no command of ours can erase.
LOGGED = (
    "PostgreSQL's write-ahead log, until the server has recycled it, and backups and replicas made before"
)
#: What an erasure leaves before a scrub.
FREED = "PostgreSQL's table files, which keep the bytes of deleted rows: `pagefile forget … --scrub` rewrites them"
#: What VACUUM skips with a warning: it rewrites only the tables of its own role.
OWNED = (
    "PostgreSQL's table files, which keep the bytes of deleted rows: run `pagefile forget … --scrub` with the URL of the role "
    "that owns the tables"
)
#: What a transaction that does not end keeps.
WATCHED = (
    "rows that a transaction on the server can still see: end it, then run `pagefile forget … --scrub` again"
)
#: How long to wait for transactions that began before the erasure.
OTHERS_S = 30.0
_LOOK_S = 0.1
#: A table may be of any size.
_LONGEST_S = 24 * 3600.0


async def scrub(connection: Connection) -> Sequence[str]:
    """Rewrite our tables, and samples of their values in the statistics; returns what the role of the URL may not do."""
    raw = connection.raw
    watched = await _watched(connection)
    before = await _files(connection)
    rows = list(before)
    for schema, table in rows:
        await raw.execute(f"VACUUM (FULL, ANALYZE) {quoted(schema)}.{quoted(table)}", timeout=_LONGEST_S)
    kept = set(before.items()) & set((await _files(connection)).items())
    left = [LOGGED, *([WATCHED] if watched else []), *([OWNED] if kept else [])]
    if not await raw.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        left.append(
            "samples of values in PostgreSQL's statistics: a superuser runs `VACUUM FULL pg_statistic`"
        )
        return left
    # For a table that is empty now, ANALYZE keeps the old samples.
    await connection.count("scrub_samples", {})
    if await _watched(connection) and WATCHED not in left:
        left.append(WATCHED)
    await raw.execute("VACUUM FULL pg_catalog.pg_statistic", timeout=_LONGEST_S)
    for schema, table in rows:
        await raw.execute(f"ANALYZE {quoted(schema)}.{quoted(table)}", timeout=_LONGEST_S)
    try:
        await raw.execute("CHECKPOINT", timeout=_LONGEST_S)
    except FORBIDDEN:
        left.append("files that the server has not written yet: its next checkpoint does")
    return left


async def _files(connection: Connection) -> dict[tuple[str, str], int]:
    """The file number of each of our tables: a rewrite changes it."""
    found = await connection.raw.fetch(
        "SELECT n.nspname, r.relname, r.relfilenode::bigint FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace"
        " WHERE r.relkind = 'r' AND n.nspname = current_schema()"
    )
    return {(schema, table): number for schema, table, number in found}


async def _watched(connection: Connection) -> bool:
    """Wait until no transaction can see the erased rows, which VACUUM would copy to the new files; True if one still can."""
    now = (await connection.rows("scrub_now", {}))[0][0]
    limit = monotonic() + OTHERS_S
    while await connection.row("scrub_watched", {"id": now}) is not None:
        if monotonic() > limit:
            return True
        await anyio.sleep(_LOOK_S)
    return False
