"""Each node alone: a state goes in, what changes comes out, and nothing else."""

import inspect
from dataclasses import dataclass
from typing import get_type_hints

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from pagefile import ConflictError, InvalidArgumentError, ModelOutputError, SettingsError
from pagefile.integrations.langgraph import (
    ConversationState,
    FactContext,
    RecallSources,
    build_prompt_from_state,
    generate_node,
    persist_node,
    recall_node,
    retrieve_node,
    route_node,
)
from pagefile.integrations.langgraph.nodes import Wording
from pagefile.ports import ChatModel, Spoken, ToolCall
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
)

WORDING = Wording("你是电影助手。")


def asking(text="诺兰导演过什么？", **more):
    return {"messages": [HumanMessage(text)], "conversation_id": "c", "user_id": "u", "session_id": "s", **more}  # fmt: skip


def test_the_state_has_the_keys_of_the_document():
    """Those of the design, and three of ours."""
    of_document = {
        "messages", "user_id", "session_id", "conversation_id", "memory_context", "conversation_summary",
        "episodic_memory", "kb_prefix", "agent_type", "use_retrieval", "retrieval_results", "debug",
    }  # fmt: skip
    assert of_document | {"turn_id", "trace", "user_snapshot"} == set(get_type_hints(ConversationState))


@pytest.mark.parametrize("node", [route_node, recall_node, retrieve_node, generate_node, persist_node])
def test_what_is_in_the_state_is_handed_on_by_nobody(node):
    """A node takes the state and what it works with; nothing that the state holds is a parameter to forget."""
    first, *others = inspect.signature(node).parameters
    assert "state" == first
    assert set() == set(others) & set(get_type_hints(ConversationState))


# -- route -------------------------------------------------------------------------------------------------------------


@dataclass
class Decision:
    kb_prefix: str | None
    agent_type: str | None = "hybrid_agent"


@pytest.mark.parametrize(
    ("prefix", "retrieves"), [("movie", True), ("edu", True), ("general", False), ("", False), (None, False)]
)
@pytest.mark.parametrize("kind", ["object", "async", "mapping"])
async def test_the_route_says_whether_to_retrieve(prefix, retrieves, kind):
    """Whatever kind of router it is; it is given the words and the session."""
    given = []

    class Router:
        def route(self, message, session_id):
            given.append((message, session_id))
            return Decision(prefix)

    async def decide(*, message, session_id):
        return Router().route(message, session_id)

    def as_mapping(*, message, session_id):
        return vars(Router().route(message, session_id))

    router = {"object": Router(), "async": decide, "mapping": as_mapping}[kind]
    update = await route_node(asking(), router=router)
    assert {"kb_prefix": prefix or "", "agent_type": "hybrid_agent", "use_retrieval": retrieves} == update
    assert [("诺兰导演过什么？", "s")] == given


async def test_without_a_router_the_agent_asked_for_answers():
    """And no knowledge base is asked."""
    assert {"kb_prefix": "", "agent_type": "graph_agent", "use_retrieval": False} == await route_node(
        asking(agent_type="graph_agent")
    )
    assert "default" == (await route_node(asking()))["agent_type"]


# -- recall ------------------------------------------------------------------------------------------------------------


def sources(memory, **replaced):
    store = ConversationStore(memory)
    parts = {
        "summarizer": ConversationSummarizer(store=store),
        "episodic_memory": ConversationEpisodicMemory(store),
        "memory_service": FactContext(memory),
        **replaced,
    }
    service = parts.pop("memory_service")
    return RecallSources(service, ConversationHistory(store, **parts))


async def talked(memory):
    """Twelve turns, one of them about a director, and a summary of the oldest."""
    chat = memory.conversation("c", user_id="u")
    await chat.record("我最喜欢的导演是克里斯托弗·诺兰", "好的，诺兰。")
    for number in range(11):
        await chat.record(f"第{number}个问题：今天天气如何？", f"第{number}个回答：晴。")
    await ConversationSummarizer(store=ConversationStore(memory)).generate_summary("c")
    await memory.remember("喜欢科幻电影", user_id="u")


@pytest.mark.parametrize("user", ["bob", "", None])
async def test_a_run_reads_no_conversation_of_somebody_else(memory, user):
    """Another user, or nobody: refused before anything is read."""
    await talked(memory)
    with pytest.raises(ConflictError):
        await recall_node({**asking("谁？"), "user_id": user}, sources=sources(memory))


async def test_recall_brings_facts_summary_episodes_and_recent_messages(memory):
    """Each in its own key; what was recalled is marked and comes first, nothing twice."""
    await talked(memory)
    update = await recall_node(asking("我最喜欢的导演是谁？"), sources=sources(memory))
    assert "喜欢科幻电影" in update["memory_context"]
    assert "诺兰" in update["conversation_summary"]
    *recalled, last = update["episodic_memory"]
    assert ("我最喜欢的导演是克里斯托弗·诺兰", True) == (recalled[0]["content"], recalled[0]["recalled"])
    assert "第10个回答：晴。" == last["content"]
    ids = [message["id"] for message in update["episodic_memory"]]
    assert len(ids) == len(set(ids))
    assert [{"node": "recall", "notes": []}] == update["trace"]


class Broken:
    """A source that fails, whatever it is asked."""

    top_k = 3

    def __getattr__(self, name):
        async def fail(*_, **__):
            raise OSError("the network is down")

        if name == "min_messages":
            return 10
        # That erasures are to be followed is only noted.
        return (lambda _: None) if name == "follow" else fail


@pytest.mark.parametrize(
    ("broken", "note", "empty"),
    [
        ("memory_service", "memory failed: OSError", "memory_context"),
        ("summarizer", "summary failed: OSError", "conversation_summary"),
        ("episodic_memory", "episodes failed: OSError", None),
    ],
)
async def test_each_source_may_fail_alone(memory, broken, note, empty):
    """The others are there all the same, and the trace says what is missing."""
    await talked(memory)
    update = await recall_node(asking("我最喜欢的导演是谁？"), sources=sources(memory, **{broken: Broken()}))
    (trace,) = update["trace"]
    assert [True] == [told.startswith(note) for told in trace["notes"]]
    present = {key for key in ("memory_context", "conversation_summary") if update[key]}
    assert {"memory_context", "conversation_summary"} - {empty} == present
    marked = [message for message in update["episodic_memory"] if message.get("recalled")]
    assert bool(marked) == (broken != "episodic_memory")
    assert "第10个回答：晴。" == update["episodic_memory"][-1]["content"]


async def test_a_store_that_fails_costs_no_answer(memory, monkeypatch):
    """Everything is missing, everything is noted, and the node returns."""

    async def fail(*_, **__):
        raise OSError("disk")

    for verb in ("view", "entries"):
        monkeypatch.setattr(memory.engine.store.reader, verb, fail)
    monkeypatch.setattr(memory.engine.store.facts, "list", fail)
    update = await recall_node(asking(), sources=sources(memory))
    assert (None, None, []) == (
        update["memory_context"],
        update["conversation_summary"],
        update["episodic_memory"],
    )
    assert update["user_snapshot"] is None
    assert {"session", "recent", "memory", "summary"} <= {
        note.split()[0] for note in update["trace"][0]["notes"]
    }


# -- retrieve ----------------------------------------------------------------------------------------------------------


async def test_the_retriever_is_asked_only_when_the_route_says_so():
    """What was found is beside the question; what an earlier question found does not stay."""

    def never(**_):
        raise AssertionError

    state = asking(use_retrieval=False, retrieval_results=[{"content": "old"}])
    assert {"retrieval_results": None} == await retrieve_node(state, retriever=never)


@pytest.mark.parametrize("kind", ["object", "function", "runnable"])
async def test_results_come_as_dicts(kind):
    """From whatever kind of retriever, in whatever shape."""
    found = [{"content": "盗梦空间", "id": 1}, "星际穿越", Document("信条", metadata={"source": "wiki"})]

    class Executor:
        async def retrieve(self, query, kb_prefix):
            assert ("诺兰导演过什么？", "movie") == (query, kb_prefix)
            return found

    kinds = {
        "object": Executor(),
        "function": lambda *, query, kb_prefix: found,
        "runnable": RunnableLambda(lambda _: found),
    }
    update = await retrieve_node(asking(use_retrieval=True, kb_prefix="movie"), retriever=kinds[kind])
    expected = [
        {"content": "盗梦空间", "id": 1},
        {"content": "星际穿越"},
        {"source": "wiki", "content": "信条"},
    ]
    assert {"retrieval_results": expected} == update


async def test_a_route_without_a_retriever_is_told():
    """A knowledge base was asked for, and there is none."""
    with pytest.raises(SettingsError, match="'movie'"):
        await retrieve_node(asking(use_retrieval=True, kb_prefix="movie"))


# -- the prompt --------------------------------------------------------------------------------------------------------


def full_state():
    return asking(
        memory_context="- 喜欢科幻",
        conversation_summary="聊过九十年代电影。",
        episodic_memory=[
            {"role": "user", "content": "导演？", "timestamp": 1, "recalled": True},
            {"role": "assistant", "content": "诺兰", "timestamp": 1, "recalled": True},
            {"role": "user", "content": "嗨 {x}", "timestamp": 2},
            {"role": "assistant", "content": "你好", "timestamp": 2},
        ],
        retrieval_results=[{"title": "wiki", "content": "盗梦空间\n2010"}],
    )


def test_the_prompt_has_everything_in_the_state():
    """In the order of the document; system blocks first, the question last."""
    prompt = build_prompt_from_state(full_state(), system_message="S")
    assert [
        ("system", "S"),
        ("system", "长期记忆：\n- 喜欢科幻"),
        ("system", "对话背景：\n聊过九十年代电影。"),
        ("system", "【相关历史】\n- [1970-01-01] 导演？ → 诺兰"),
        ("system", "【检索结果】\n[1] wiki: 盗梦空间 2010"),
        ("human", "嗨 {x}"),
        ("ai", "你好"),
        ("human", "诺兰导演过什么？"),
    ] == [(message.type, message.text) for message in prompt]


def test_messages_of_earlier_turns_are_not_in_the_prompt_twice():
    """A checkpointer keeps them in the state; the log has them already. What was said since the question stays."""
    state = asking()
    call = AIMessage("", tool_calls=[{"id": "1", "name": "search", "args": {}}])
    state["messages"] = [HumanMessage("早"), AIMessage("早"), HumanMessage("问"), call, ToolMessage("果", tool_call_id="1")]  # fmt: skip
    prompt = build_prompt_from_state(state, system_message="S")
    assert ["system", "human", "ai", "tool"] == [message.type for message in prompt]
    assert "问" == prompt[1].text


def test_a_state_without_a_question_is_refused():
    with pytest.raises(InvalidArgumentError, match="HumanMessage"):
        build_prompt_from_state({"messages": []}, system_message="S")


# -- generate ----------------------------------------------------------------------------------------------------------


class Streaming(ChatModel):
    async def complete(self, messages, *, max_tokens):
        raise AssertionError

    async def stream(self, messages, *, tools=()):
        self.seen = messages
        for text in ("盗梦", "空间"):
            yield Spoken(text)
        yield Spoken(calls=(ToolCall("1", "search", '{"q": "诺兰"}'), ToolCall("2", "bad", "{")), finish="tool_calls")  # fmt: skip


async def test_any_kind_of_model_answers():
    """LangChain's, one of ours, a function; the answer is the only new message."""
    langchain = GenericFakeChatModel(messages=iter([AIMessage("盗梦 空间")]))
    cases = [(langchain, "盗梦 空间"), (lambda _: "盗梦空间", "盗梦空间"), (Streaming(), "盗梦空间")]
    for model, text in cases:
        update = await generate_node(asking(), model=model, wording=WORDING)
        (answer,) = update["messages"]
        assert (AIMessage, text) == (type(answer), answer.text)
        assert update["trace"][0]["told"]["prompt_tokens"] > 0


async def test_tool_calls_of_our_models_become_langchains():
    """Arguments that are not JSON are shown as they were written."""
    model = Streaming()
    (answer,) = (await generate_node(asking(), model=model, wording=WORDING))["messages"]
    assert [("search", {"q": "诺兰"}), ("bad", {"arguments": "{"})] == [
        (call["name"], call["args"]) for call in answer.tool_calls
    ]
    assert [{"role": "system", "content": "你是电影助手。"}, {"role": "user", "content": "诺兰导演过什么？"}] == model.seen  # fmt: skip


async def test_callbacks_see_the_model():
    """As Langfuse's would."""
    from langchain_core.callbacks import AsyncCallbackHandler

    class Watcher(AsyncCallbackHandler):
        seen = 0

        async def on_llm_end(self, *_, **__):
            self.seen += 1

    watcher = Watcher()
    model = GenericFakeChatModel(messages=iter([AIMessage("好")]))
    await generate_node(asking(), model=model, wording=WORDING, callbacks=[watcher])
    assert 1 == watcher.seen


@pytest.mark.parametrize("model", [lambda _: " ", lambda _: HumanMessage("?"), object()])
async def test_no_answer_is_an_error(model):
    """Never an empty turn."""
    with pytest.raises((ModelOutputError, SettingsError)):
        await generate_node(asking(), model=model, wording=WORDING)


# -- persist -----------------------------------------------------------------------------------------------------------


async def test_both_sides_are_on_disk_once(memory):
    """However often the node is run, with a turn that was begun or without."""
    store = ConversationStore(memory)
    state = asking("问", turn_id="t1")
    state["messages"].append(AIMessage("答"))
    await store.append_message("c", "user", "问", turn_id="t1", user_id="u")
    for _ in range(2):
        update = await persist_node(state, store=store)
    assert "t1" == update["turn_id"]
    other = asking("再问")
    other["messages"][0].id = "t2"
    other["messages"].append(AIMessage("再答"))
    await persist_node(other, store=store)
    said = [(message["role"], message["content"]) for message in await store.list_messages("c")]
    assert [("user", "问"), ("assistant", "答"), ("user", "再问"), ("assistant", "再答")] == said


async def test_what_was_persisted_is_an_episode(memory):
    """Once the background is done, the next question finds it."""
    store = ConversationStore(memory)
    history = ConversationHistory(store, episodic_memory=ConversationEpisodicMemory(store))
    state = asking("《盗梦空间》的导演是谁？", turn_id="t1")
    state["messages"].append(AIMessage("克里斯托弗·诺兰。"))
    await persist_node(state, store=store, history=history)
    await memory.settle()
    found = await ConversationEpisodicMemory(memory).recall_relevant("c", "盗梦空间的导演")
    assert ["《盗梦空间》的导演是谁？", "克里斯托弗·诺兰。"] == [message["content"] for message in found]


async def test_tool_results_are_steps_of_the_turn(memory):
    """Each with the call it answers."""
    store = ConversationStore(memory)
    state = asking("问", turn_id="t1")
    call = AIMessage("", tool_calls=[{"id": "k", "name": "search", "args": {"q": "诺兰"}}])
    state["messages"] += [call, ToolMessage("盗梦空间", tool_call_id="k"), AIMessage("答")]
    for _ in range(2):
        await persist_node(state, store=store)
    (turn,) = await memory.conversation("c", user_id="u").turns()
    assert [("search", {"q": "诺兰"}, "盗梦空间", "k")] == [
        (step.tool, step.input, step.result, step.call_id) for step in turn.steps
    ]


async def test_an_open_tool_call_is_no_answer(memory):
    """The turn is not completed with nothing in it."""
    state = asking("问")
    state["messages"].append(AIMessage("", tool_calls=[{"id": "k", "name": "search", "args": {}}]))
    with pytest.raises(InvalidArgumentError, match="tool calls"):
        await persist_node(state, store=ConversationStore(memory))
    assert [] == list(await memory.conversation("c").turns())


async def test_an_index_that_fails_costs_no_turn(memory, caplog):
    """It follows in the background, with both texts and the id of the turn."""
    store = ConversationStore(memory)
    indexed = []

    class Episodes(ConversationEpisodicMemory):
        async def index_episode(self, *args, turn_id=None):
            indexed.append((*args, turn_id))
            raise OSError("milvus is down")

    state = asking("问", turn_id="t1")
    state["messages"].append(AIMessage("答"))
    history = ConversationHistory(store, ConversationSummarizer(store=store), Episodes(store))
    await persist_node(state, store=store, history=history)
    assert ["done"] == [turn.status for turn in await memory.conversation("c", user_id="u").turns()]
    await memory.settle()
    # Once or more: what failed is tried again.
    assert {("c", "问", "答", "t1")} == set(indexed)
    assert "milvus is down" in caplog.text
