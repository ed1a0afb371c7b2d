"""Brings a schema up to the revision of this version, with the statements in `migrations/`.

All of them run in one transaction and behind a lock, so that several processes may open a new database at once. What SQL
cannot compute, the digests of rows that have none, is filled in after the last one. The revision is in the table of Alembic,
which made the first databases.
"""

import logging
import shlex
from functools import cache
from pathlib import Path
from time import monotonic
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio

from pagefile.errors import SchemaVersionError, SettingsError, StoreUnavailableError
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database, played, quoted
from pagefile.stores.postgres.driver import LOCKED, Connection, RawConnection
from pagefile.stores.sql.auditor import fill_digests
from pagefile.stores.sql.texts import migration_texts

logger = logging.getLogger("pagefile")

#: "PGFL": other users of advisory locks in this database have other numbers.
_LOCK = 0x5047464C
#: A migration may take long: `command_timeout` does not apply to it.
_LONGEST_S = 24 * 3600.0
#: How long an attempt waits for the lock of a table, and how long others then have before the next one.
LOCK_WAIT_S, _BETWEEN_S = 2.0, 1.0


async def migrate(database: Database) -> None:
    """Create the schema if there is none, and apply missing migrations; other processes may be doing the same."""
    place = database.place
    encoding = await database.run(lambda connection: connection.raw.fetchval("SHOW server_encoding"))
    if encoding != "UTF8":
        raise SettingsError(
            f"{place.shown} has the encoding {encoding}, which cannot hold every text: make a database with ENCODING 'UTF8'."
        )
    if await database.run(revision) != head():
        await _brought_up(database)


async def _brought_up(database: Database) -> None:
    """Try again and again to get the locks of the tables, for as long as a statement may take."""
    place, end = database.place, monotonic() + database.place.command_timeout_s
    while True:
        try:
            # A migration that deadlocks with transactions of an older version is retried.
            await database.run(lambda connection: _bring_up(connection, place), in_transaction=True)
        except StoreUnavailableError as error:
            if not isinstance(error.__cause__, LOCKED) or monotonic() > end:
                raise
            logger.warning("%s: a table is in use by a long transaction, waiting for its end", place.shown)
            await anyio.sleep(_BETWEEN_S)
        else:
            return


async def _bring_up(connection: Connection, place: Place) -> None:
    raw = connection.raw
    await raw.execute("SET LOCAL synchronous_commit = on")
    # A migration changes the rows of all tenants; before row-level security the setting has no effect.
    await raw.execute("SET LOCAL pagefile.tenants = 'all'")
    await _wait_for_others(raw, place)
    if place.schema is not None:
        await raw.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(place.schema)}")
    # Another process may have been faster while this one waited for the lock.
    found = await revision(connection)
    if found is None and await raw.fetchval("SELECT to_regclass('ai_message') IS NOT NULL"):
        raise SettingsError(
            f"{place.shown} has a table ai_message that Pagefile did not make: open another schema (add schema=pagefile to the URL's query), "
            "then bring its rows along: write them to a file as a JSON list (json_agg), and import that with "
            "`pagefile import FILE --from ai-message`. Nothing was changed."
        )
    script = _script(found, place.shown)
    if script:
        # While we wait for a table lock, everyone else waits behind us.
        await raw.execute(f"SET LOCAL lock_timeout = {int(LOCK_WAIT_S * 1000)}")
        await raw.execute(script, timeout=_LONGEST_S)
        await raw.execute("UPDATE alembic_version SET version_num = $1", head())
        await played(connection, fill_digests())


async def _wait_for_others(raw: RawConnection, place: Place) -> None:
    """Keep other migrations out until this transaction ends; wait, however long, for one that is already running."""
    key = _LOCK, place.schema or ""
    if not await raw.fetchval("SELECT pg_try_advisory_xact_lock($1, hashtext($2))", *key):
        logger.warning("%s is being migrated by another process: waiting for it", place.shown)
        await raw.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", *key, timeout=_LONGEST_S)


async def revision(connection: Connection) -> str | None:
    there = await connection.raw.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL")
    return await connection.raw.fetchval("SELECT version_num FROM alembic_version") if there else None


@cache
def migrations() -> dict[str, str]:
    """The statements that lead to each revision from the one before it."""
    return {
        name.partition("_")[0]: text for name, text in migration_texts("pagefile.stores.postgres").items()
    }


def head() -> str:
    return [*migrations()][-1]


def _script(found: str | None, place: str) -> str:
    """The statements that lead from a revision to the newest; none if it is the newest."""
    if found not in (None, *migrations()):
        raise SchemaVersionError(
            f"{place} has revision {found!r}, this version of Pagefile knows {head()!r}: upgrade with "
            "`pip install --upgrade 'pagefile[postgres]'`. The database was left untouched."
        )
    return "\n".join(text for name, text in migrations().items() if found is None or name > found)


async def revision_of(url: str) -> str | None:
    """The revision of the tables, None where there are none; `SchemaVersionError` when this Pagefile does not know it."""
    place = Place.of(url)
    database = await Database.open(place)
    try:
        found = await database.run(revision)
        _script(found, place.shown)
        return found
    finally:
        await database.close()


def dump_command(url: str, copy: Path) -> str:
    """The shell command that copies the database, with the rows of all tenants, whatever the role of the URL.

    It contains no password: pg_dump asks for it, or finds it.
    """
    place = Place.of(url)
    parts = urlsplit(place.dsn)
    user, at, host = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    address = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=urlencode(query))
    only = [] if place.schema is None else [f"--schema={quoted(place.schema)}"]
    options = ["--enable-row-security", "--format=custom", f"--file={copy}", *only]
    return f"PGOPTIONS='-c pagefile.tenants=all' {shlex.join(['pg_dump', *options, urlunsplit(address)])}"
