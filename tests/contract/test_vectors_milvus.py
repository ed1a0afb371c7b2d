"""Milvus keeps every promise of a vector index, as a file; `tests/integration/vectors/test_milvus_server.py` says the same of a genuine server."""

import pytest

from pagefile.stores import InMemoryStore, open_vectors
from pagefile.testing import contracts


class Backend:
    @pytest.fixture
    async def store(self, clock):
        store = InMemoryStore(clock)
        yield store
        await store.close()


class TestFile(Backend, contracts.VectorIndexContract):
    @pytest.fixture
    async def index(self, store, tmp_path):
        index = open_vectors(f"milvus:///{tmp_path}/vectors.db", store)
        yield index
        await index.close()
