"""Milvus: files that are opened again, servers that are not there."""

import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.ports import Maker
from pagefile.records import Scope
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.milvus import MilvusVectors, Place
from pagefile.stores.milvus.home import MilvusOptions
from pagefile.testing.contracts.vectors import MAKER, said, seqs, vector
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
    """Vectors, makers and counts; nobody has to prepare anything."""
    home = open_vectors(url, store)
    await home.prepare(Maker("empty", 3))
    await home.put(MAKER, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    await home.close()
    again = open_vectors(url, store)
    assert [1] == seqs(await again.search(MAKER, USER, QUERY, 10))
    assert [("empty", 3, 0), (MAKER.name, 4, 1)] == [
        (shelf.maker.name, shelf.maker.dimension, shelf.vectors) for shelf in await again.shelves()
    ]
    assert 1 == await again.erase(USER)
    await again.close()


async def test_what_left_the_memory_of_the_server_is_brought_back(store, url):
    """Somebody released the collection, or dropped it."""
    home = open_vectors(url, store)
    row = await said(store, CHAT, 1, (1, 0, 0, 0))
    await home.put(MAKER, [row])
    await home._driver.run(lambda client: client.release_collection(client.list_collections()[0]))
    assert [1] == seqs(await home.search(MAKER, USER, QUERY, 10))
    await home._driver.run(lambda client: client.drop_collection(client.list_collections()[0]))
    await home.put(MAKER, [row])
    assert [1] == seqs(await home.search(MAKER, USER, QUERY, 10))
    await home._driver.run(lambda client: client.drop_collection(client.list_collections()[0]))
    assert [] == await home.search(Maker(MAKER.name, 4), Scope("tenant", "bob"), QUERY, 10)
    await home.close()


async def test_a_folder_that_is_missing_is_named(store, tmp_path):
    """With the command that makes it."""
    home = open_vectors(f"milvus:///{tmp_path}/no/vectors.db", store)
    with pytest.raises(StoreUnavailableError, match=r"mkdir -p /.*four slashes"):
        await home.prepare(MAKER)
    await home.close()


async def test_a_call_that_takes_too_long_is_an_outage(store, tmp_path):
    """However the driver says it."""
    place = Place.of(f"milvus:///{tmp_path}/vectors.db")
    home = MilvusVectors(place, options=MilvusOptions(read_timeout_s=0.001))
    await home.put(MAKER, [await said(store, CHAT, seq, (1, seq, 0, 0)) for seq in range(1, 900)])
    with pytest.raises(StoreUnavailableError, match="did not answer"):
        await home.search(MAKER, USER, QUERY, 10)
    await home.close()


async def test_a_file_is_written_out_now_and_then(store, url):
    """Everything is found before and after."""
    home = open_vectors(url, store)
    rows = [await said(store, CHAT, seq, (1, seq, 0, 0)) for seq in range(1, 1101)]
    await home.put(MAKER, rows[:900])
    await home.put(MAKER, rows[900:])
    assert list(range(1, 1101)) == sorted(seqs(await home.search(MAKER, USER, QUERY, 2000)))
    await home.close()


async def test_nobody_listens(store):
    """The first call fails soon, those after it at once."""
    home = open_vectors("milvus://127.0.0.1:1", store)
    with pytest.raises(StoreUnavailableError, match="check that the server runs"):
        await home.search(MAKER, USER, QUERY, 10)
    with pytest.raises(StoreUnavailableError, match="left alone"):
        await home.put(MAKER, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    await home.close()
