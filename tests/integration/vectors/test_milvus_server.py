"""A genuine Milvus server keeps every promise of an index of vectors, and those that only a server can break.

In one file, so that one server is unpacked and started for all of it.
"""

from contextlib import suppress
from inspect import isawaitable

import pytest

from pagefile import Memory
from pagefile.errors import StoreUnavailableError
from pagefile.ports import Collection
from pagefile.records import Scope
from pagefile.standalone import ConversationEpisodicMemory, ConversationHistory
from pagefile.standalone.episodic_memory import COLLECTION
from pagefile.standalone.milvus_collection import LEFT
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.erasure import scope_key
from pagefile.stores.milvus import MilvusVectors, Place
from pagefile.stores.milvus.index import MilvusOptions
from pagefile.stores.milvus.schema import collection_of
from pagefile.testing import contracts
from pagefile.testing.contracts.vectors import MODEL, said, seqs, vector
from pagefile.testing.drafts import CHAT
from tests.heavy import heavy
from tests.waiting import until

from .old_milvus import old_collection
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


class TestServer(contracts.VectorIndexContract):
    @pytest.fixture
    async def store(self, clock):
        store = InMemoryStore(clock)
        yield store
        await store.close()

    @pytest.fixture
    async def index(self, store):
        index = open_vectors(milvus().url, store)
        await emptied(index)
        yield index
        await index.close()


#: Whatever a filter could trip over.
IDS = ["o'brien", '" or 1 == 1 or "', "back\\slash\n换行", "对话😀 {c} %"]


@pytest.mark.slow
async def test_episodes_of_document_002():
    """Its collection on a server; each conversation finds its own turns, whatever its id is made of."""
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
@pytest.mark.parametrize("kind", ["MilvusClient", "AsyncMilvusClient"])
async def test_episodes_that_are_erased(kind):
    """Those of others stay; what the files of the server still hold, and until when, is in the receipt."""
    import pymilvus

    client = getattr(pymilvus, kind)(Place.of(milvus().url).uri)
    episodes = ConversationEpisodicMemory(client, lambda text: [float(text.count("导演")), 0.1])
    try:
        async with Memory.open("memory://", embedder="none") as memory:
            ConversationHistory(memory, None, episodes)
            for conversation in (*IDS, "kept"):
                await memory.conversation(conversation, user_id="ada").record("导演是谁？", "诺兰。")
                await episodes.index_episode(conversation, "导演是谁？", "诺兰。")
            await memory.conversation("new", user_id="bob").record("导演是谁？", "诺兰。")
            for conversation in IDS:
                receipt = await memory.forget(conversation_id=conversation)
                assert (1, (LEFT,)) == (receipt.counts["conversation_episodes"], receipt.pending)
                assert [] == await episodes.recall_relevant(conversation, "导演")
            assert 2 == len(await episodes.recall_relevant("kept", "导演"))
            assert 1 == await episodes.forget("kept")
    finally:
        dropped, closed = client.drop_collection(COLLECTION), client.close()
        for answer in (dropped, closed):
            if isawaitable(answer):
                await answer


@pytest.mark.slow
async def test_collections_with_texts_are_written_again(store):
    """As in a file; rows that the server took in a moment ago are among them, and none is left out."""
    from pymilvus import MilvusClient

    client = MilvusClient(Place.of(milvus().url).uri)
    old_collection(client)
    index = open_vectors(milvus().url, store)
    assert [Collection(MODEL, 3)] == await index.collections()
    assert [1, 2] == seqs(await index.search(MODEL, USER, QUERY, 10))
    assert collection_of(MODEL, "conversation_episodes") not in client.list_collections()
    assert 2 == await index.erase_before({scope_key("tenant", "ada"): 1})
    await emptied(index)
    await index.close()
    client.drop_collection("conversation_episodes")
    client.close()


@pytest.mark.slow
@pytest.mark.waits
async def test_a_server_that_comes_back_is_used_again(store):
    """Killed and started again: nothing that was put is lost, and nobody has to open anything again."""
    server, now = milvus(), [0.0]
    options = MilvusOptions(read_timeout_s=2, write_timeout_s=5)
    index = MilvusVectors(Place.of(server.url), options=options, monotonic=lambda: now[0])
    await emptied(index)
    await index.put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    server.stop("KILL")
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        await index.search(MODEL, USER, QUERY, 10)
    with pytest.raises(StoreUnavailableError, match="left alone"):
        await index.search(MODEL, USER, QUERY, 10)
    server.start()
    found = []

    async def is_found():
        now[0] += 60
        with suppress(StoreUnavailableError):
            found[:] = await index.search(MODEL, USER, QUERY, 10)
        return found

    await until(is_found)
    assert [1] == seqs(found)
    await index.close()
