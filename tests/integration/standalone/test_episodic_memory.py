"""Document 002's episodic memory in Milvus, which runs in this process (S2-32 to S2-36)."""

from time import time
from uuid import UUID

import numpy as np
import pytest

from pagefile import ModelOutputError, SettingsError, StoreError
from pagefile.ports import Embedder
from pagefile.standalone import ConversationEpisodicMemory
from pagefile.standalone.episodic_memory import COLLECTION, MAX_FIELD_BYTES, quoted

pytestmark = pytest.mark.slow

KNOWN = ("导演", "科幻", "天气", "餐厅")


def vector(text):
    """One direction for each word that is known, and one for all others."""
    return [float(text.count(word)) for word in KNOWN] + [0.1]


class Model:
    """As LangChain's: blocking, and remembers what it was asked."""

    def __init__(self):
        self.seen = []

    def embed_query(self, text):
        self.seen.append(text)
        return vector(text)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    pymilvus = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    client = pymilvus.MilvusClient(str(tmp_path_factory.mktemp("milvus") / "episodes.db"))
    yield client
    client.close()


@pytest.fixture
def episodes(client):
    if client.has_collection(COLLECTION):
        client.drop_collection(COLLECTION)
    return ConversationEpisodicMemory(client, Model())


def rows(client):
    return client.query(COLLECTION, filter="created_at > 0", output_fields=["*"], limit=100)


async def test_an_episode_is_a_row(client, episodes):
    """S2-32, S2-34: the document's fields, its text for the model, a uuid and the time."""
    model = Model()
    await ConversationEpisodicMemory(client, model).index_episode("c", "导演是谁？", "诺兰。")
    assert ["User: 导演是谁？\nAssistant: 诺兰。"] == model.seen
    (row,) = rows(client)
    assert 4 == UUID(row["id"]).version
    assert ("c", "导演是谁？", "诺兰。") == (
        row["conversation_id"],
        row["user_message"],
        row["assistant_message"],
    )
    assert abs(time() - row["created_at"]) < 5
    fields = {field["name"]: field["params"] for field in client.describe_collection(COLLECTION)["fields"]}
    assert ["id", "conversation_id", "user_message", "assistant_message", "embedding", "created_at"] == list(
        fields
    )
    assert 5 == fields["embedding"]["dim"]


async def test_the_collection_is_the_documents(client, episodes):
    """S2-32: its types, and vectors as long as the document's when they are asked for."""
    from pymilvus import DataType

    long = ConversationEpisodicMemory(client, lambda text: [0.1] * 1536, dim=1536)
    await long.index_episode("c", "导演是谁？", "诺兰。")
    fields = {field["name"]: field for field in client.describe_collection(COLLECTION)["fields"]}
    text = DataType.VARCHAR
    assert {
        "id": text,
        "conversation_id": text,
        "user_message": text,
        "assistant_message": text,
        "embedding": DataType.FLOAT_VECTOR,
        "created_at": DataType.INT64,
    } == {name: field["type"] for name, field in fields.items()}
    assert ["id"] == [name for name, field in fields.items() if field.get("is_primary")]
    assert 1536 == fields["embedding"]["params"]["dim"]


async def test_recall(episodes):
    """S2-35: user then assistant for each hit, best first, at most this many."""
    await episodes.index_episode("c", "科幻导演", "诺兰")
    await episodes.index_episode("c", "导演", "维伦纽瓦")
    await episodes.index_episode("c", "天气", "晴")
    found = await episodes.recall_relevant("c", "导演是谁？")
    assert [("user", "导演"), ("assistant", "维伦纽瓦"), ("user", "科幻导演"), ("assistant", "诺兰")] == [
        (m["role"], m["content"]) for m in found
    ]
    assert all(abs(time() - message["timestamp"]) < 5 for message in found)
    assert {int} == {type(message["timestamp"]) for message in found}
    assert ["导演", "维伦纽瓦"] == [
        m["content"] for m in await episodes.recall_relevant("c", "导演", top_k=1)
    ]


async def test_nothing_relevant(episodes):
    """S2-40: an empty collection, an unrelated question, and one that says nothing."""
    assert [] == await episodes.recall_relevant("c", "导演")
    await episodes.index_episode("c", "导演", "诺兰")
    assert [] == await episodes.recall_relevant("c", "天气")
    assert [] == await episodes.recall_relevant("c", "  ")


async def test_the_bar_can_be_moved(client, episodes):
    await episodes.index_episode("c", "科幻 导演 天气", "好")
    assert [] != await episodes.recall_relevant("c", "导演")
    strict = ConversationEpisodicMemory(client, Model(), min_score=0.9)
    assert [] == await strict.recall_relevant("c", "导演")


@pytest.mark.parametrize(
    "conversation_id",
    [
        "o'brien",
        'say "hi"',
        "back\\slash",
        "' or 1 == 1 or '",
        '" or 1 == 1 or "',
        "换\n行\t",
        "{c}",
        "%",
        "对话😀",
        '\\" or 1 == 1',
    ],
)
async def test_whatever_the_id(client, episodes, conversation_id):
    """S2-36, C2-9: each conversation has its own, whatever its id is made of."""
    await episodes.index_episode(conversation_id, "导演", "自己的")
    await episodes.index_episode("other", "导演", "别人的")
    assert ["导演", "自己的"] == [
        m["content"] for m in await episodes.recall_relevant(conversation_id, "导演")
    ]
    assert ["导演", "别人的"] == [m["content"] for m in await episodes.recall_relevant("other", "导演")]
    assert [] == await episodes.recall_relevant(conversation_id + "x", "导演")


def test_quoted():
    assert r'"a\\\"b\n"' == quoted('a\\"b\n')


async def test_a_turn_is_kept_once(client, episodes):
    """By its id, as often as a job runs again; its messages are known by it."""
    for _ in range(3):
        await episodes.index_episode("c", "导演", "诺兰", turn_id="t1")
    assert 1 == len(rows(client))
    found = await episodes.recall_relevant("c", "导演")
    assert [("t1", "t1:user"), ("t1", "t1:assistant")] == [(m["turn_id"], m["id"]) for m in found]


async def test_a_long_text_says_what_is_missing(client, episodes):
    """Milvus has room for 64 KB; the middle is left out, and the text says how much."""
    await episodes.index_episode("c", "导演" + "长" * 40_000, "诺兰")
    (row,) = rows(client)
    assert len(row["user_message"].encode()) <= MAX_FIELD_BYTES
    assert "此处略去" in row["user_message"]


async def test_a_collection_of_another_length(client, episodes):
    """Another model's vectors cannot be compared: an error that says what to do."""
    await episodes.index_episode("c", "导演", "诺兰")
    for other in (
        ConversationEpisodicMemory(client, lambda text: [1.0, 2.0]),
        ConversationEpisodicMemory(client, Model(), dim=1536),
    ):
        with pytest.raises(SettingsError, match="vectors of"):
            await other.recall_relevant("c", "导演")


async def test_a_collection_with_the_documents_fields_alone(client, episodes):
    """One that was made elsewhere, with no room for a turn's id, is used as it is."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for name in ("conversation_id", "user_message", "assistant_message"):
        schema.add_field(name, DataType.VARCHAR, max_length=1000)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=5)
    schema.add_field("created_at", DataType.INT64)
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="AUTOINDEX", metric_type="COSINE")
    client.create_collection(COLLECTION, schema=schema, index_params=index)
    await episodes.index_episode("c", "导演", "诺兰", turn_id="t1")
    found = await episodes.recall_relevant("c", "导演")
    assert ["导演", "诺兰"] == [m["content"] for m in found]
    assert "turn_id" not in found[0]


async def test_a_row_that_milvus_refuses(episodes):
    """Its errors become ours."""
    with pytest.raises(StoreError, match="could not upsert"):
        await episodes.index_episode("c", "导演", "诺兰", turn_id="t" * 5000)


# -- embedding models ------------------------------------------------------------------------------------------------------


class Asynchronous:
    async def aembed_query(self, text):
        return vector(text)


class AsInTheDocument:
    async def embed_query(self, text):
        return vector(text)


class OwnPort(Embedder):
    name, dimension = "test", 5

    async def embed(self, texts):
        return np.array([vector(text) for text in texts], dtype=np.float32)


async def function(text):
    return vector(text)


@pytest.mark.parametrize("model", [Model(), Asynchronous(), AsInTheDocument(), OwnPort(), vector, function])
async def test_every_kind_of_model(client, episodes, model):
    """S2-33."""
    episodes = ConversationEpisodicMemory(client, model)
    await episodes.index_episode("c", "导演", "诺兰")
    assert ["导演", "诺兰"] == [m["content"] for m in await episodes.recall_relevant("c", "导演")]


def test_no_model(client):
    with pytest.raises(SettingsError, match="embedding_model"):
        ConversationEpisodicMemory(client)


async def test_a_model_that_returns_nothing(client):
    with pytest.raises(ModelOutputError):
        await ConversationEpisodicMemory(client, lambda text: []).recall_relevant("c", "导演")


async def test_an_asynchronous_client(tmp_path):
    """The collection is made by the other one: Milvus in the process cannot make an index for this one."""
    pymilvus = pytest.importorskip("pymilvus")
    blocking = pymilvus.MilvusClient(str(tmp_path / "both.db"))
    await ConversationEpisodicMemory(blocking, Model()).index_episode("c", "天气", "晴")
    client = pymilvus.AsyncMilvusClient(str(tmp_path / "both.db"))
    episodes = ConversationEpisodicMemory(client, Model())
    await episodes.index_episode("c", "导演", "诺兰", turn_id="t1")
    found = await episodes.recall_relevant("c", "导演")
    await client.close()
    blocking.close()
    assert ["导演", "诺兰"] == [m["content"] for m in found]


async def test_it_survives_a_restart(tmp_path):
    """Milvus in the process must load a collection again; so do we."""
    pymilvus = pytest.importorskip("pymilvus")
    for attempt in range(2):
        client = pymilvus.MilvusClient(str(tmp_path / "again.db"))
        episodes = ConversationEpisodicMemory(client, Model())
        if attempt == 0:
            await episodes.index_episode("c", "导演", "诺兰")
        found = await episodes.recall_relevant("c", "导演")
        client.close()
        assert ["导演", "诺兰"] == [m["content"] for m in found]
