"""A schema of any earlier revision opens, and everything in it is still there."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from pagefile.errors import SchemaVersionError, StoreUnavailableError
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.migrating import MIGRATIONS, head, migrate
from pagefile.stores.postgres.place import Place
from pagefile.stores.postgres.store import PostgresStore
from pagefile.testing.drafts import CHAT, done, step, view

from .serving import opened

REVISIONS = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
#: What a version of Pagefile of that revision left behind, in plain SQL: one file for each.
DATA = Path(__file__).with_name("revisions")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_data_of_every_revision_opens(url, clock, revision):
    """Written by the version of its time, read by this one; and the log goes on."""
    database = await Database.open(Place.of(url))
    await migrate(database, target=revision)
    async with database.raw() as connection:
        await connection.execute((DATA / f"{revision}.sql").read_text(encoding="utf-8"))
    await database.close()
    store = await opened(url, clock)
    assert (await store.describe())["schema"] == head()
    seen = await store.reader.view(view())
    assert [turn.id for turn in seen.turns] == ["b"]
    assert seen.turns[0].steps == (step(),)
    assert (seen.checkpoint.id, seen.checkpoint.covered_through_seq, seen.head.live_tokens) == ("k", 1, 10)
    assert (await store.sessions.get(CHAT))["flow_context"]["turn_count"] == 2
    assert (await store.pages.load(CHAT, "p"))[1] == "the whole result"
    assert [found.id for found in await store.facts.list(CHAT)] == ["f"]
    assert [found.id for found in await store.calls.list(CHAT)] == ["w"]
    assert (await store.log.append(done("c"))).seq == 4
    assert [turn.id for turn in (await store.reader.view(view(budget=10))).turns] == ["c"]
    await store.close()


async def test_opening_twice_changes_nothing(url, store, clock):
    """The second one finds everything as it should be."""
    await store.log.append(done("a"))
    again = await opened(url, clock)
    assert (await again.log.append(done("b"))).seq == 2
    await again.close()


async def test_a_newer_schema_is_left_alone(url, store, plain, clock):
    """`SchemaVersionError` says how to upgrade."""
    await plain.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaVersionError, match="pip install --upgrade"):
        await opened(url, clock)
    assert await plain.fetchval("SELECT version_num FROM alembic_version") == "9999"


async def test_tables_that_vanish_are_named(store, plain):
    """Somebody dropped them under a live store."""
    await plain.execute("DROP TABLE sessions")
    with pytest.raises(SchemaVersionError, match="sessions"):
        await store.sessions.get(CHAT)


async def test_who_may_not_make_tables_is_told(url, store, plain, clock):
    """With the name of the right that is missing."""
    await plain.execute("DROP ROLE IF EXISTS guest")
    await plain.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    place = Place.of(url.replace("schema=", "schema=other "))
    guest = place.dsn.replace(place.dsn.split("//")[1].split("@")[0], "guest:guest")
    with pytest.raises(StoreUnavailableError, match="grant the user"):
        await PostgresStore.open(Place(guest, place.shown, place.schema), clock=clock)
    await plain.execute("DROP ROLE guest")
