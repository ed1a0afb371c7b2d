"""What happens to the schema when a store is opened. Databases of earlier revisions: `test_old_databases.py`."""

import pytest

from pagefile.errors import SchemaVersionError, StoreUnavailableError
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.store import PostgresStore
from pagefile.testing.drafts import CHAT, done

from .serving import opened


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
