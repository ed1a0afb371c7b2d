"""Erasing reaches document 002's collection in Milvus, whose rows hold texts: no word of them stays in its files."""

import anyio
import anyio.lowlevel
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from pagefile import Memory, StoreError
from pagefile.errors import StoreUnavailableError
from pagefile.integrations.langgraph.nodes import persist_node
from pagefile.standalone import ConversationEpisodicMemory, ConversationHistory, ConversationStore
from pagefile.standalone.episodic_memory import COLLECTION
from pagefile.standalone.milvus_collection import MilvusCollection
from tests.findings.security.looking import files_with

pytestmark = pytest.mark.slow

WORDS = ("导演", "天气")


def vector(text):
    return [float(text.count(word)) for word in WORDS] + [0.1]


@pytest.fixture
def pymilvus():
    pytest.importorskip("milvus_lite")
    return pytest.importorskip("pymilvus")


@pytest.fixture
def client(pymilvus, tmp_path):
    client = pymilvus.MilvusClient(f"{tmp_path}/milvus.db")
    yield client
    client.close()


@pytest.fixture
def opened(tmp_path):
    """As many processes as are wanted."""
    return lambda: Memory.open(f"sqlite:///{tmp_path}/a.db", embedder="none")


@pytest.fixture
async def memory(opened):
    async with opened() as memory:
        yield memory


def following(memory, client, **options):
    episodes = ConversationEpisodicMemory(client, vector, **options)
    ConversationHistory(ConversationStore(memory), None, episodes)
    return episodes


async def indexed(memory, episodes, conversation, user="ada", words="导演 SECRET"):
    await memory.conversation(conversation, user_id=user).record(words, "ok", id=f"{conversation}-t")
    await episodes.index_episode(conversation, words, "ok", turn_id=f"{conversation}-t")


async def found(episodes, conversation):
    return [message["content"] for message in await episodes.recall_relevant(conversation, "导演")]


async def test_one_conversation_without_a_memory(client, tmp_path):
    """`forget`: its episodes go from the files too, those of others stay and are found; rows written out are no exception."""
    episodes = ConversationEpisodicMemory(client, vector)
    assert 0 == await episodes.forget("a")
    for number in range(3):
        await episodes.index_episode("a", f"导演 SECRET {number}", "ok")
        await episodes.index_episode("b", f"导演 KEPT {number}", "ok", turn_id=f"t {number}")
        client.flush(COLLECTION)
    assert files_with(tmp_path, "SECRET")
    assert 3 == await episodes.forget("a")
    assert 0 == await episodes.forget("a")
    assert [] == files_with(tmp_path, "SECRET")
    assert [] == await found(episodes, "a")
    assert {"导演 KEPT 0", "导演 KEPT 1", "导演 KEPT 2", "ok"} == set(await found(episodes, "b"))
    await episodes.index_episode("a", "导演 again", "ok")
    assert ["导演 again", "ok"] == await found(episodes, "a")


async def test_the_collection_stays_what_it_was(client, pymilvus):
    """Also one that somebody else made: fields, index and every value of a row."""
    kinds, schema = pymilvus.DataType, client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=80)
    for name in ("conversation_id", "user_message", "assistant_message", "note"):
        schema.add_field(name, kinds.VARCHAR, max_length=300)
    schema.add_field("embedding", kinds.FLOAT_VECTOR, dim=3)
    schema.add_field("created_at", kinds.INT64)
    index = client.prepare_index_params()
    index.add_index(
        "embedding", index_type="HNSW", metric_type="COSINE", params={"M": 12, "efConstruction": 99}
    )
    client.create_collection("theirs", schema=schema, index_params=index)
    row = {
        "user_message": "导演",
        "assistant_message": "ok",
        "note": "own",
        "embedding": [1, 0, 0.1],
        "created_at": 7,
    }
    client.insert("theirs", [{"id": name, "conversation_id": name, **row} for name in ('a"\\', "b\n换行")])
    before = client.describe_collection("theirs"), client.describe_index("theirs", "embedding")
    episodes = ConversationEpisodicMemory(client, vector, collection_name="theirs")
    assert 1 == await episodes.forget('a"\\')
    after = client.describe_collection("theirs"), client.describe_index("theirs", "embedding")
    assert before[0] == after[0]
    assert {**before[1], "total_rows": 1, "indexed_rows": 1} == {
        **after[1],
        "total_rows": 1,
        "indexed_rows": 1,
    }
    (left,) = client.query("theirs", filter="created_at > 0", output_fields=["*"])
    assert {"id": "b\n换行", "conversation_id": "b\n换行"} == {
        key: left[key] for key in ("id", "conversation_id")
    }
    assert {key: row[key] for key in ("note", "created_at")} == {
        key: left[key] for key in ("note", "created_at")
    }


@pytest.mark.parametrize("what", ["conversation_id", "user_id", "tenant"])
async def test_every_erasure_reaches_it(memory, client, tmp_path, what):
    """Of a conversation, a user, a tenant; the receipt counts them."""
    episodes = following(memory, client)
    await indexed(memory, episodes, "a")
    await indexed(memory, episodes, "b", user="bob", words="导演 KEPT")
    named = {"conversation_id": "a", "user_id": "ada", "tenant": "default"}
    receipt = await memory.forget(**{what: named[what]})
    gone = 2 if what == "tenant" else 1
    assert (gone, ()) == (receipt.counts["conversation_episodes"], receipt.pending)
    assert [] == files_with(tmp_path, "SECRET")
    assert ([] if what == "tenant" else ["导演 KEPT", "ok"]) == await found(episodes, "b")


class Away:
    """A client whose server can be away."""

    def __init__(self, client, error):
        self.client, self.error, self.away = client, error, False

    def __getattr__(self, verb):
        def refused(**_):
            raise self.error

        return refused if self.away and verb in {"query", "has_collection"} else getattr(self.client, verb)


async def test_a_milvus_that_is_away_follows_later(memory, client, pymilvus, tmp_path):
    """What it owes is said, is not recalled, and is erased when it is back; who began again keeps what is new."""
    shaky = Away(client, pymilvus.MilvusException(message="away"))
    episodes = following(memory, shaky)
    await indexed(memory, episodes, "a")
    shaky.away = True
    with pytest.raises(StoreError):
        await episodes.forget("a")
    receipt = await memory.forget(conversation_id="a")
    assert ["milvus:conversation_episodes" in one for one in receipt.pending] == [True]
    assert {"milvus:conversation_episodes": 1} == (await memory.describe())["erasures_owed"]
    assert [] == await found(episodes, "a")
    shaky.away = False
    await memory.conversation("a", user_id="ada").record("导演 again", "ok", id="new")
    await episodes.index_episode("a", "导演 again", "ok", turn_id="new")
    assert ["导演 again", "ok"] == await found(episodes, "a")
    memory.engine.worker.scan()
    await memory.settle()
    assert {} == (await memory.describe())["erasures_owed"]
    assert ["导演 again", "ok"] == await found(episodes, "a")
    assert [] == files_with(tmp_path, "SECRET")


async def test_what_is_indexed_behind_an_erasure_goes_too(memory, client, tmp_path):
    """The model takes its time, and the conversation is erased meanwhile."""
    begun, erased = anyio.Event(), anyio.Event()

    async def slow(text):
        begun.set()
        await erased.wait()
        return vector(text)

    episodes = following(memory, client)
    await indexed(memory, episodes, "b", words="导演 KEPT")
    late = following(memory, client)
    late._episodes.embed = slow
    async with anyio.create_task_group() as group:
        group.start_soon(indexed, memory, late, "a")
        await begun.wait()
        await memory.forget(conversation_id="a")
        erased.set()
    assert [] == await found(episodes, "a")
    assert [] == files_with(tmp_path / "milvus.db", "SECRET")
    assert ["导演 KEPT", "ok"] == await found(episodes, "b")


async def test_a_turn_that_waits_to_be_indexed_while_it_is_erased_is_not(memory, opened, client, tmp_path):
    """The graph indexes in the background, and another process erases before the job begins."""
    episodes, store = following(memory, client), ConversationStore(memory)
    gate, chat = anyio.Event(), memory.conversation("a", user_id="ada")

    async def busy(_):
        await gate.wait()

    memory.engine.worker.do(chat.scope, busy)
    history = ConversationHistory(store, None, episodes)
    for number, words in enumerate(("导演 KEPT", "导演 SECRET")):
        said = [HumanMessage(words, id=f"t{number}"), AIMessage("ok")]
        state = {"messages": said, "conversation_id": "a", "user_id": "ada"}
        await persist_node(state, store=store, history=history)
    async with opened() as other:
        await other.forget(conversation_id="a", turn_id="t1")
    gate.set()
    await memory.settle()
    assert ["导演 KEPT", "ok"] == await found(episodes, "a")
    assert [] == files_with(tmp_path / "milvus.db", "SECRET")
    assert {} == (await memory.describe())["erasures_owed"]


@pytest.mark.parametrize("named", [True, False])
async def test_one_turn_alone(memory, client, tmp_path, named):
    """Episodes of the other turns stay, and outlive the next erasure too; those that name no turn may be of it, and go."""
    episodes, chat = following(memory, client), memory.conversation("a", user_id="ada")
    for number in range(4):
        turn = await chat.record(f"导演 SECRET{number}", "ok", id=f"t{number}")
        await episodes.index_episode("a", turn.user, "ok", turn_id=turn.id if named else None)
    for number in (1, 2):
        receipt = await memory.forget(conversation_id="a", turn_id=f"t{number}")
        assert () == receipt.pending
        assert [] == files_with(tmp_path / "milvus.db", f"SECRET{number}")
    left = {"导演 SECRET0", "导演 SECRET3", "ok"} if named else set()
    assert left == set(await found(episodes, "a"))
    await memory.forget(user_id="ada")
    assert [] == files_with(tmp_path, "SECRET")


async def test_a_turn_that_took_the_place_of_an_erased_one_does_not_speak_for_it(
    memory, opened, client, tmp_path
):
    """Begun again with the same ids, while Milvus was away: the words are others."""
    episodes = following(memory, client)
    await indexed(memory, episodes, "a")
    async with opened() as other:
        await other.forget(conversation_id="a")
        await other.conversation("a", user_id="ada").record("导演 again", "ok", id="a-t")
    assert [] == await found(episodes, "a")
    memory.engine.worker.scan()
    await memory.settle()
    assert [] == files_with(tmp_path / "milvus.db", "SECRET")


async def carried_out(opened, conversation, turn_id=None):
    """Another process erases a conversation, and has Milvus follow."""
    async with opened() as other:
        await other.forget(conversation_id=conversation, turn_id=turn_id)
        erasures, name = other.engine.store.erasures, f"milvus:{COLLECTION}"
        await erasures.done(name, await erasures.owed(name))


class Putting:
    """A client through which something happens before, and after, a row is put."""

    def __init__(self, client, before, after):
        self.client, self.before, self.after = client, before, after

    def __getattr__(self, verb):
        if verb not in {"insert", "upsert"}:
            return getattr(self.client, verb)

        async def put(**arguments):
            await self.before()
            getattr(self.client, verb)(**arguments)
            await self.after()

        return put


@pytest.mark.parametrize("turn_id", ["a-t", None])
async def test_who_gives_up_while_a_row_is_put_leaves_it_owed(memory, opened, client, tmp_path, turn_id):
    """Another process erases, and has carried that out, before the row is there; then the call is cancelled."""
    stopped = anyio.CancelScope()

    async def erased():
        await carried_out(opened, "a")

    async def cancelled():
        stopped.cancel()
        await anyio.lowlevel.checkpoint()

    await memory.conversation("a", user_id="ada").record("导演 SECRET", "ok", id="a-t")
    late = following(memory, Putting(client, erased, cancelled))
    with stopped:
        await late.index_episode("a", "导演 SECRET", "ok", turn_id=turn_id)
    assert stopped.cancelled_caught
    assert files_with(tmp_path / "milvus.db", "SECRET")
    assert {f"milvus:{COLLECTION}": 1} == (await memory.describe())["erasures_owed"]
    memory.engine.worker.scan()
    await memory.settle()
    assert [] == files_with(tmp_path / "milvus.db", "SECRET")


async def test_an_episode_that_is_renewed_while_it_is_erased_goes_too(memory, opened, client, tmp_path):
    """One turn was erased, and the others stay; while they are written with a new epoch, another process erases one of them."""
    episodes, chat = following(memory, client), memory.conversation("a", user_id="ada")
    for number in range(3):
        await chat.record(f"导演 SECRET{number}", "ok", id=f"t{number}")
        await episodes.index_episode("a", f"导演 SECRET{number}", "ok", turn_id=f"t{number}")
    left = [0]

    async def erased():
        if left:
            left.clear()
            await carried_out(opened, "a", "t2")
            client.delete(COLLECTION, ids=["t2"])

    episodes._episodes.collection.client = Putting(client, erased, anyio.lowlevel.checkpoint)
    await memory.forget(conversation_id="a", turn_id="t1")
    memory.engine.worker.scan()
    await memory.settle()
    assert ["导演 SECRET0", "ok"] == await found(episodes, "a")
    assert [] == [word for word in ("SECRET1", "SECRET2") if files_with(tmp_path / "milvus.db", word)]


async def test_what_nobody_came_to_owe_is_not_recalled(memory, client):
    """The process that had put it lost its database before it could say so."""
    episodes = following(memory, client)
    await indexed(memory, episodes, "a")
    await memory.forget(conversation_id="b")
    row = client.query(COLLECTION, filter="id == 'a-t'", output_fields=["*"])[0]
    await memory.forget(conversation_id="a")
    client.insert(COLLECTION, [dict(row)])
    assert {} == (await memory.describe())["erasures_owed"]
    assert [] == await found(episodes, "a")


async def test_what_was_erased_while_the_model_took_its_time_is_owed_before_the_row_is_put(
    memory, opened, client, tmp_path, monkeypatch
):
    """The database goes away when the row is there: nothing can be said of it any more, and nothing has to be."""
    reader = memory.engine.store.reader

    async def slow(text):
        await carried_out(opened, "a")
        return vector(text)

    async def lost():
        monkeypatch.setattr(type(reader), "epoch", away)

    async def away(*_):
        raise StoreUnavailableError("away")

    late = following(memory, Putting(client, anyio.lowlevel.checkpoint, lost))
    late._episodes.embed = slow
    await memory.conversation("a", user_id="ada").record("导演 SECRET", "ok")
    with pytest.raises(StoreUnavailableError):
        await late.index_episode("a", "导演 SECRET", "ok")
    monkeypatch.undo()
    memory.engine.worker.scan()
    await memory.settle()
    assert [] == files_with(tmp_path / "milvus.db", "SECRET")


@pytest.mark.parametrize("dropped", [False, True], ids=["while copying", "behind the drop"])
async def test_a_rewriting_that_was_cut_short_is_seen_to(client, dropped):
    """By a process that died: the old collection counts while it is there, else the new one."""
    await ConversationEpisodicMemory(client, vector).index_episode("b", "导演 KEPT", "ok")
    if dropped:
        client.rename_collection(COLLECTION, f"{COLLECTION}_rewritten")
    else:
        schema = client.create_schema(auto_id=False)
        schema.add_field("id", 21, is_primary=True, max_length=9)
        schema.add_field("embedding", 101, dim=3)
        client.create_collection(f"{COLLECTION}_rewritten", schema=schema)
    episodes = ConversationEpisodicMemory(client, vector)
    assert ["导演 KEPT", "ok"] == await found(episodes, "b")
    assert [COLLECTION] == client.list_collections()


async def test_all_rows_are_read_however_few_come_at_a_time(client, monkeypatch):
    """A server gives a limited number, and in no order."""
    monkeypatch.setattr("pagefile.standalone.milvus_collection._MOST_ROWS", 3)
    episodes = ConversationEpisodicMemory(client, vector)
    await episodes.index_episode("a", "导演", "ok")
    client.insert(
        COLLECTION,
        [
            {
                "id": f"r{n}",
                "conversation_id": "b",
                "user_message": "",
                "assistant_message": "",
                "embedding": [0, 0, 1],
            }
            | {"created_at": 1_000_000 + n // 2}
            for n in range(20)
        ],
    )
    rows = [row["id"] async for row in MilvusCollection(client, COLLECTION).rows(["id"])]
    assert 21 == len(rows) == len(set(rows))
