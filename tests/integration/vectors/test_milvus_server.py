"""A genuine Milvus server keeps every promise of a home of vectors, and those that only a server can break.

In one file, so that one server is unpacked and started for all of it.
"""

from contextlib import suppress

import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.records import Scope
from pagefile.standalone import ConversationEpisodicMemory
from pagefile.standalone.episodic_memory import COLLECTION
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.milvus import MilvusVectors, Place
from pagefile.stores.milvus.home import MilvusOptions
from pagefile.testing import contracts
from pagefile.testing.contracts.vectors import MAKER, said, seqs, vector
from pagefile.testing.drafts import CHAT
from tests.heavy import heavy
from tests.waiting import until

from .serving import emptied, milvus

#: The first test waits until half a gigabyte is unpacked and the server is up, the last until it is up again.
pytestmark = [heavy("milvus"), pytest.mark.timeout(400)]

USER = Scope("tenant", "ada")
QUERY = vector(1, 0, 0, 0)


@pytest.fixture
async def store(clock):
    store = InMemoryStore(clock)
    yield store
    await store.close()


class TestServer(contracts.VectorHomeContract):
    @pytest.fixture
    async def store(self, clock):
        store = InMemoryStore(clock)
        yield store
        await store.close()

    @pytest.fixture
    async def home(self, store):
        home = open_vectors(milvus().url, store)
        await emptied(home)
        yield home
        await home.close()


#: Whatever a filter could trip over.
IDS = ["o'brien", '" or 1 == 1 or "', "back\\slash\n换行", "对话😀 {c} %"]


@pytest.mark.slow
async def test_episodes_of_document_002():
    """S2-32 to S2-36: its collection on a server; each conversation finds its own turns, whatever its id is made of."""
    import pymilvus

    client = pymilvus.MilvusClient(Place.of(milvus().url).uri)
    episodes = ConversationEpisodicMemory(client, lambda text: [float(text.count("导演")), 0.1])
    try:
        for number, conversation in enumerate(IDS):
            await episodes.index_episode(conversation, "导演是谁？", f"第{number}位。", turn_id=f"t{number}")
        fields = client.describe_collection(COLLECTION)["fields"]
        assert ["id", "conversation_id", "user_message", "assistant_message", "embedding", "created_at"] == [
            field["name"] for field in fields
        ]
        for number, conversation in enumerate(IDS):
            found = await episodes.recall_relevant(conversation, "那个导演")
            assert ["导演是谁？", f"第{number}位。"] == [message["content"] for message in found]
        assert [] == await episodes.recall_relevant(IDS[0], "天气如何？")
    finally:
        client.drop_collection(COLLECTION)
        client.close()


@pytest.mark.slow
@pytest.mark.waits
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
    found = []

    async def is_found():
        now[0] += 60
        with suppress(StoreUnavailableError):
            found[:] = await home.search(MAKER, USER, QUERY, 10)
        return found

    await until(is_found)
    assert [1] == seqs(found)
    await home.close()
