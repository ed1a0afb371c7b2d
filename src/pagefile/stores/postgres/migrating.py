"""Brings a schema up to the revision of this version, with the Alembic migrations in `migrations/`.

Alembic only writes the statements (its "offline" mode); our own connection runs them, in one transaction and behind a
lock, so that several processes may open a new database at once. A migration therefore cannot look into the
database from Python: it says what is to be done in SQL. What SQL cannot work out, the digests of rows that have none, comes
behind the last one, in the same transaction.
"""

from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError

from pagefile.errors import SchemaVersionError, SettingsError
from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.digesting import fill_digests
from pagefile.stores.postgres.driver import Connection, RawConnection, translating

MIGRATIONS = Path(__file__).with_name("migrations")
#: "PGFL": whoever else takes advisory locks in this database has other numbers.
_LOCK = 0x5047464C
_READ_REVISION = "SELECT version_num FROM alembic_version"


async def migrate(database: Database, *, target: str = "head") -> None:
    """Make the schema if there is none, and apply what is missing; others may be doing the same."""
    place = database.place
    with translating(place.shown):
        async with database.raw() as connection:
            await _check_encoding(connection, place.shown)
            if await revision(connection) == head():
                return
            async with connection.transaction():
                await connection.execute("SET LOCAL synchronous_commit = on")
                await connection.execute(
                    "SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, place.schema or ""
                )
                if place.schema is not None:
                    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(place.schema)}")
                # Another process may have been faster while this one waited for the lock.
                found = await revision(connection)
                script = await anyio.to_thread.run_sync(_script, found, target, place.shown)
                if script:
                    await connection.execute(script)
                    if await revision(connection) == head():
                        await fill_digests(Connection(connection))


async def revision(connection: RawConnection) -> str | None:
    """The revision of the tables, None where there are none."""
    there = await connection.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL")
    return await connection.fetchval(_READ_REVISION) if there else None


@cache
def head() -> str:
    """The newest revision that this version of Pagefile knows."""
    return cast("str", ScriptDirectory(str(MIGRATIONS)).get_current_head())


def check_known(found: str | None, place: str) -> None:
    """`SchemaVersionError` for a revision that only a newer Pagefile knows."""
    _script(found, "head", place)


@cache
def _script(found: str | None, target: str, place: str) -> str:
    """The statements that lead from one revision to the other, none if they are the same."""
    scripts: Any = ScriptDirectory(str(MIGRATIONS))
    statements = StringIO()

    def steps(at: Any, context: Any) -> Any:
        return scripts._upgrade_revs(target, at)  # noqa: SLF001 - as Alembic's own `command.upgrade` does

    context = MigrationContext.configure(
        dialect_name="postgresql",
        opts={"as_sql": True, "output_buffer": statements, "starting_rev": found, "fn": steps},
    )
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        raise SchemaVersionError(
            f"{place} has revision {found!r}, this version of Pagefile knows {head()!r}: upgrade with "
            "`pip install --upgrade 'pagefile[postgres]'`. The database was left untouched."
        ) from error
    return statements.getvalue().strip()


async def _check_encoding(connection: RawConnection, place: str) -> None:
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise SettingsError(
            f"{place} has the encoding {encoding}, which cannot hold every text: make a database with ENCODING 'UTF8'."
        )
