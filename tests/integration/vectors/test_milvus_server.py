"""A genuine Milvus server keeps every promise of a home of vectors, and those that only a server can break.

In one file, so that one server is unpacked and started for all of it.
"""

import asyncio

import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.records import Scope
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.milvus import MilvusVectors, Place
from pagefile.stores.milvus.home import MilvusOptions
from pagefile.testing import contracts
from pagefile.testing.contracts.vectors import MAKER, said, seqs, vector
from pagefile.testing.drafts import CHAT

from .serving import emptied, milvus

#: The first test waits until half a gigabyte is unpacked and the server is up, the last until it is up again.
pytestmark = pytest.mark.timeout(400)

USER = Scope("tenant", "ada")
QUERY = vector(1, 0, 0, 0)


@pytest.fixture
async def store(clock):
    store = InMemoryStore(clock)
    yield store
    await store.close()


class TestServer(contracts.VectorHomeContract):
    @pytest.fixture
    async def home(self, store):
        home = open_vectors(milvus().url, store)
        await emptied(home)
        yield home
        await home.close()


@pytest.mark.slow
async def test_a_server_that_comes_back_is_used_again(store):
    """Killed and started again: nothing that was put is lost, and nobody has to open anything anew."""
    server, now = milvus(), [0.0]
    options = MilvusOptions(read_timeout_s=2, write_timeout_s=5)
    home = MilvusVectors(Place.of(server.url), options=options, monotonic=lambda: now[0])
    await emptied(home)
    await home.put(MAKER, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    server.stop("KILL")
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        await home.search(MAKER, USER, QUERY, 10)
    with pytest.raises(StoreUnavailableError, match="left alone"):
        await home.search(MAKER, USER, QUERY, 10)
    server.start()
    for _ in range(60):
        now[0] += 60
        try:
            found = await home.search(MAKER, USER, QUERY, 10)
        except StoreUnavailableError:
            await asyncio.sleep(0.5)
            continue
        if found:
            break
        await asyncio.sleep(0.5)
    assert [1] == seqs(found)
    await home.close()
