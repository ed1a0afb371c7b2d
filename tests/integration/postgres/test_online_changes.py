"""A change of the schema under load: it never makes others wait behind it for long, and waits itself as long as it must."""

import asyncio
import re

import anyio
import asyncpg
import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.ports import EntryQuery
from pagefile.stores.postgres import migration
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database
from pagefile.testing.drafts import CHAT, done

pytestmark = pytest.mark.anyio

NEW = {"9001": "ALTER TABLE ai_message ADD COLUMN later text"}


@pytest.fixture
def one_more(monkeypatch, store):
    """A migration that the database does not have yet; the store is open, as those of running workers are."""
    known = {**migration.migrations(), **NEW}
    monkeypatch.setattr(migration, "migrations", lambda: known)
    monkeypatch.setattr(migration, "LOCK_WAIT_S", 0.3)


async def reader_of(url):
    """Somebody's long transaction on the table, such as a dump."""
    place = Place.of(url)
    connection = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}"'})
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetchval("SELECT count(*) FROM ai_message")
    return connection, transaction


async def test_turns_are_recorded_while_a_migration_waits(url, store, one_more):
    """A dump of minutes holds the table: no turn waits longer than one attempt for it, and the migration comes after it."""
    await store.log.append(done("before"))
    connection, transaction = await reader_of(url)
    database = await Database.open(Place.of(url))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(migration.migrate, database)
        for number in range(20):
            # Behind a waiting migration, this would end with the timeout of a statement.
            await store.log.append(done(f"t{number}"))
            await asyncio.sleep(0.05)
        assert migration.head() == "9001"
        assert "9001" != await database.run(migration.revision)
        await transaction.rollback()
        await connection.close()
    assert "9001" == await database.run(migration.revision)
    await database.close()
    turns = await store.reader.entries(EntryQuery(CHAT, limit=100))
    assert 21 == len(turns)


async def test_it_gives_up_in_the_end(url, store, one_more):
    """After `command_timeout` it says so, and nothing has changed."""
    connection, transaction = await reader_of(url)
    database = await Database.open(Place.of(f"{url}&command_timeout=1"))
    with pytest.raises(StoreUnavailableError, match="locks"):
        await migration.migrate(database)
    await transaction.rollback()
    await connection.close()
    assert "9001" != await database.run(migration.revision)
    await database.close()


#: Statements that hold a large table for as long as it is large, from schema 0013 on.
HOLDS = re.compile(
    r"\bUPDATE\s|\bALTER\s+COLUMN\s+\S+\s+(?:TYPE|SET\s+NOT\s+NULL)|\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!IF\s+NOT\s+EXISTS)|"
    r"\bADD\s+(?:PRIMARY|UNIQUE|FOREIGN|CHECK)|\bADD\s+COLUMN\s+[^;]*(?:random|now|gen_)",
    re.IGNORECASE,
)


def test_migrations_hold_no_table_for_long():
    """The service goes on while a database of any size is migrated."""
    later = {name: text for name, text in migration.migrations().items() if name > "0012"}
    assert {} == {name: found for name, text in later.items() if (found := HOLDS.findall(text))}
    assert HOLDS.search(migration.migrations()["0010"])
