"""The vector indexes that live in the store's own database keep every promise."""

import pytest

from pagefile.stores import InMemoryStore, StoreOptions, open_store, open_vectors
from pagefile.testing import FlakyStore, contracts
from tests.integration.postgres.serving import fresh_url, opened


class Home:
    @pytest.fixture
    async def index(self, store):
        index = open_vectors(None, store)
        yield index
        await index.close()


class TestInMemory(Home, contracts.VectorIndexContract):
    @pytest.fixture
    async def store(self, clock):
        store = InMemoryStore(clock)
        yield store
        await store.close()


class TestSqlite(Home, contracts.VectorIndexContract):
    @pytest.fixture
    async def store(self, clock, tmp_path):
        url = f"sqlite:///{tmp_path}/memory.db"
        store = await open_store(url, clock=clock, options=StoreOptions(synchronous="normal"))
        yield store
        await store.close()


class TestSqliteWithoutCache(TestSqlite):
    @pytest.fixture
    async def index(self, store):
        index = open_vectors(None, store, cache_bytes=0)
        yield index
        await index.close()


class TestFlaky(TestInMemory):
    @pytest.fixture
    async def store(self, clock):
        store = FlakyStore(InMemoryStore(clock))
        yield store
        await store.close()


class TestPgvector(Home, contracts.VectorIndexContract):
    @pytest.fixture
    async def store(self, clock):
        store = await opened(fresh_url(), clock)
        yield store
        await store.close()
