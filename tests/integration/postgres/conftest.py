"""A schema of its own for each test."""

import asyncpg
import pytest

from pagefile.stores.postgres.address import Place
from pagefile.testing import FakeClock

from .serving import fresh_url, opened


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def url():
    return fresh_url()


@pytest.fixture
async def store(url, clock):
    store = await opened(url, clock)
    yield store
    await store.close()


@pytest.fixture
async def plain(url, store):
    """A connection of somebody who knows nothing of Pagefile, in the schema of the store."""
    place = Place.of(url)
    connection = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}"'})
    yield connection
    await connection.close()
