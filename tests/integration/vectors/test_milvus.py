"""Milvus: files that are opened again, servers that are not there."""

import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.ports import EmbeddingModel
from pagefile.records import Scope
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.milvus import MilvusVectors, Place
from pagefile.stores.milvus.index import MilvusOptions
from pagefile.testing.contracts.vectors import MODEL, said, seqs, vector
from pagefile.testing.drafts import CHAT

USER = Scope("tenant", "ada")
QUERY = vector(1, 0, 0, 0)


@pytest.fixture
async def store(clock):
    store = InMemoryStore(clock)
    yield store
    await store.close()


@pytest.fixture
def url(tmp_path):
    return f"milvus:///{tmp_path}/vectors.db"


async def test_a_file_is_there_when_it_is_opened_again(store, url):
    """Vectors, models and counts; nobody has to prepare anything."""
    index = open_vectors(url, store)
    await index.prepare(EmbeddingModel("empty", 3))
    await index.put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    await index.close()
    again = open_vectors(url, store)
    assert [1] == seqs(await again.search(MODEL, USER, QUERY, 10))
    assert [("empty", 3, 0), (MODEL.name, 4, 1)] == [
        (collection.model.name, collection.model.dimension, collection.vectors)
        for collection in await again.collections()
    ]
    assert 1 == await again.erase(USER)
    await again.close()


async def test_what_left_the_memory_of_the_server_is_brought_back(store, url):
    """Somebody released the collection, or dropped it."""
    index = open_vectors(url, store)
    row = await said(store, CHAT, 1, (1, 0, 0, 0))
    await index.put(MODEL, [row])
    await index._driver.run(lambda client: client.release_collection(client.list_collections()[0]))
    assert [1] == seqs(await index.search(MODEL, USER, QUERY, 10))
    await index._driver.run(lambda client: client.drop_collection(client.list_collections()[0]))
    await index.put(MODEL, [row])
    assert [1] == seqs(await index.search(MODEL, USER, QUERY, 10))
    await index._driver.run(lambda client: client.drop_collection(client.list_collections()[0]))
    assert [] == await index.search(EmbeddingModel(MODEL.name, 4), Scope("tenant", "bob"), QUERY, 10)
    await index.close()


async def test_a_folder_that_is_missing_is_named(store, tmp_path):
    """With the command that makes it."""
    index = open_vectors(f"milvus:///{tmp_path}/no/vectors.db", store)
    with pytest.raises(StoreUnavailableError, match=r"mkdir -p /.*four slashes"):
        await index.prepare(MODEL)
    await index.close()


async def test_a_call_that_takes_too_long_is_an_outage(store, tmp_path):
    """However the driver says it."""
    place = Place.of(f"milvus:///{tmp_path}/vectors.db")
    index = MilvusVectors(place, options=MilvusOptions(read_timeout_s=0.001))
    await index.put(MODEL, [await said(store, CHAT, seq, (1, seq, 0, 0)) for seq in range(1, 900)])
    with pytest.raises(StoreUnavailableError, match="did not answer"):
        await index.search(MODEL, USER, QUERY, 10)
    await index.close()


async def test_a_file_is_written_out_now_and_then(store, url):
    """Everything is found before and after."""
    index = open_vectors(url, store)
    rows = [await said(store, CHAT, seq, (1, seq, 0, 0)) for seq in range(1, 1101)]
    await index.put(MODEL, rows[:900])
    await index.put(MODEL, rows[900:])
    assert list(range(1, 1101)) == sorted(seqs(await index.search(MODEL, USER, QUERY, 2000)))
    await index.close()


async def test_nobody_listens(store):
    """The first call fails soon, those after it at once."""
    index = open_vectors("milvus://127.0.0.1:1", store)
    with pytest.raises(StoreUnavailableError, match="check that the server runs"):
        await index.search(MODEL, USER, QUERY, 10)
    with pytest.raises(StoreUnavailableError, match="left alone"):
        await index.put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    await index.close()
