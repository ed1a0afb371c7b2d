"""What stays behind or falls away: episodes in Milvus, turns of dead workers, and a knowledge base that is down."""

from datetime import timedelta

import pytest
from pymilvus import MilvusClient

from pagefile import Memory
from pagefile.integrations.langgraph import ChatRequest, ConversationChat
from pagefile.integrations.langgraph.graph import conversation_builder
from pagefile.settings.sources import load_settings
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
)
from pagefile.testing import FakeClock, HashingEmbedder
from tests.findings.marks import finding

COLLECTION = "conversation_episodes"
EXCHANGE = ("推荐一部科幻电影", "推荐《星际穿越》，导演是克里斯托弗·诺兰")


# -- F17: the standalone collection in Milvus ------------------------------------------------------------------------------


@pytest.fixture
def milvus(tmp_path):
    client = MilvusClient(f"{tmp_path}/milvus.db")
    yield client
    client.close()


@pytest.fixture
async def memory(sqlite_url):
    async with Memory.open(sqlite_url, embedder="none") as memory:
        yield memory


def rows(milvus):
    found = milvus.query(COLLECTION, filter='conversation_id == "c"', output_fields=["user_message"])
    return [row["user_message"] for row in found]


@finding("history-F17")
async def test_erasing_a_conversation_erases_its_episodes(memory, milvus):
    """After a conversation was erased, Milvus has no episode of it, and none is recalled."""
    store = ConversationStore(memory)
    episodes = ConversationEpisodicMemory(milvus, HashingEmbedder())
    ConversationHistory(store, None, episodes)
    await store.append_message("c", "user", EXCHANGE[0], turn_id="t1")
    await store.append_message("c", "assistant", EXCHANGE[1], turn_id="t1")
    await episodes.index_episode("c", *EXCHANGE, turn_id="t1")
    assert [EXCHANGE[0]] == rows(milvus), "the episode was never there"
    await memory.forget(conversation_id="c")
    assert [] == rows(milvus)
    assert [] == await episodes.recall_relevant("c", "科幻电影")


class FailingOnce(HashingEmbedder):
    """An embedder whose endpoint is down when the first whole exchange is to be embedded."""

    down = True

    async def embed(self, texts):
        if self.down and any(EXCHANGE[1] in text for text in texts):
            self.down = False
            raise ConnectionError("the endpoint is down")
        return await super().embed(texts)


@finding("history-F17")
async def test_an_episode_that_failed_to_index_is_tried_again(memory, milvus):
    """A turn that could not be indexed is indexed later, and recalled."""
    embedder = FailingOnce()
    chat = ConversationChat(
        memory,
        model=lambda _: EXCHANGE[1],
        episodic_memory=ConversationEpisodicMemory(milvus, embedder),
    )
    for question in (EXCHANGE[0], "附近有什么好吃的火锅"):
        await chat.answer(ChatRequest(question, "u", "s", conversation_id="c"))
        await memory.settle()
    assert not embedder.down
    assert {EXCHANGE[0], "附近有什么好吃的火锅"} == set(rows(milvus))


# -- F21: a worker that died, and a knowledge base that is down ------------------------------------------------------------


@finding("history-F21")
async def test_a_turn_of_a_dead_worker_is_not_open_for_ever(sqlite_url):
    """A turn that nobody finished is closed by the next day, and what the user said is in the window."""
    clock = FakeClock()
    async with Memory.open(sqlite_url, clock=clock, embedder="none") as memory:
        await memory.conversation("c", user_id="u").begin("我对青霉素过敏")
    clock.advance(timedelta(days=2).total_seconds())
    async with Memory.open(sqlite_url, clock=clock, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("你好", "你好！")
        await memory.settle()
        window = await chat.context("我可以吃阿莫西林吗？")
        statuses = [turn.status for turn in await chat.turns()]
    assert 2 == len(statuses)
    assert "open" not in statuses
    assert "我对青霉素过敏" in str(window.messages)


def to_the_films(message, session_id):
    """A router that asks for the knowledge base about films."""
    return {"kb_prefix": "movie", "agent_type": ""}


async def answered(memory, retriever):
    chat = ConversationChat(memory, model=lambda _: "诺兰。", router=to_the_films, retriever=retriever)
    try:
        return await chat.answer(ChatRequest("导演是谁？", "u", "s", conversation_id="c"))
    except ConnectionError:
        return None


@finding("history-F21")
async def test_a_knowledge_base_that_is_down_costs_its_block(memory):
    """When the retriever fails, the question is answered without what it would have brought."""

    async def down(query, kb_prefix):
        raise ConnectionError("the knowledge base is down")

    assert "诺兰。" == await answered(memory, down)


@finding("history-F21")
async def test_a_knowledge_base_is_asked(memory):
    """When the retriever works, it is asked, and the question is answered."""
    asked = []

    async def up(query, kb_prefix):
        asked.append((query, kb_prefix))
        return ["《星际穿越》的导演是诺兰。"]

    assert "诺兰。" == await answered(memory, up)
    assert [("导演是谁？", "movie")] == asked


# -- F34: the feature flag ---------------------------------------------------------------------------------------------------


@finding("history-F34")
@pytest.mark.parametrize(
    ("setting", "argument", "runs"),
    [("true", None, True), ("false", None, False), ("false", True, True), ("true", False, False)],
)
async def test_the_feature_flag_is_a_setting(monkeypatch, setting, argument, runs):
    """A deployment is switched over by its environment; the argument overrides it. The answer is the same."""
    built = []

    def builder(nodes):
        built.append(nodes)
        return conversation_builder(nodes)

    monkeypatch.setattr("pagefile.integrations.langgraph.graph.conversation_builder", builder)
    monkeypatch.setenv("PAGEFILE_CHAT__GRAPH", setting)
    async with Memory.open("memory://", settings=load_settings(), embedder="none") as memory:
        chat = ConversationChat(memory, model=lambda messages: "好的", graph=argument)
        assert "好的" == await chat.answer(ChatRequest("你好", "u", "s"))
    assert runs == bool(built)
