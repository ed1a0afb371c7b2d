"""The nodes as LangGraph runs them, and the same without it."""

import json
from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from pagefile import ConflictError, Memory, ModelUnavailableError, Settings
from pagefile.errors import StoreUnavailableError
from pagefile.integrations.langgraph import (
    ChatRequest,
    ConversationChat,
    ConversationNodes,
    ConversationState,
    build_conversation_graph,
    build_prompt_from_state,
)
from pagefile.integrations.langgraph.state import prompt_tokens
from pagefile.ports import ChatModel, Spoken

from .conftest import SESSION, USER, Model

ORDER = ["route", "recall", "retrieve", "generate", "persist"]
FILMS = [{"content": "盗梦空间"}]


def request(message="诺兰导演过什么？", **more):
    return ChatRequest(message, USER, SESSION, **more)


def films(*, message, session_id):
    return {"kb_prefix": "movie", "agent_type": "hybrid_agent"}


async def events_of(chat, asked):
    async with aclosing(chat.stream_chat(asked)) as events:
        return [event async for event in events]


async def the_log(memory, conversation, user=USER):
    return [
        (turn.status, turn.user, turn.assistant)
        for turn in await memory.conversation(conversation, user_id=user).turns()
    ]


async def slow_films(**asked):
    await anyio.sleep(0.025)
    return films(**asked)


@pytest.mark.parametrize("graph", [True, False])
async def test_a_request_becomes_a_stream_of_events(memory, graph):
    """The turn, the nodes in order with their durations, the words as they come, the end."""
    model = GenericFakeChatModel(messages=iter([AIMessage("盗梦空间 和 星际穿越")]))
    chat = ConversationChat(memory, model=model, router=slow_films, retriever=lambda **_: FILMS, graph=graph)
    first, *events, last = await events_of(chat, request())
    nodes = [event for event in events if event["type"] == "node"]
    assert ORDER == [event["node"] for event in nodes]
    assert nodes[0]["duration_ms"] >= 20
    assert all(event["duration_ms"] >= 0 for event in nodes)
    words = [event["text"] for event in events if event["type"] == "token"]
    assert len(words) > 1
    assert "盗梦空间 和 星际穿越" == "".join(words) == last["answer"]
    assert FILMS == nodes[2]["update"]["retrieval_results"]
    assert ("turn", "done") == (first["type"], last["type"])
    assert (first["turn_id"], 1) == (last["turn_id"], last["seq"])
    assert [("done", "诺兰导演过什么？", "盗梦空间 和 星际穿越")] == await the_log(
        memory, first["conversation_id"]
    )


@pytest.mark.parametrize("graph", [True, False])
async def test_safety_data_is_in_every_prompt(memory, graph):
    """S1-83: however small the window; in the language of the question."""
    model = Model()
    chat = ConversationChat(memory, model=model, graph=graph, window_tokens=1)
    conversation = await chat.nodes.store.get_or_create_conversation_id(USER, SESSION)
    told = memory.conversation(conversation, user_id=USER)
    await told.put_session({"user_snapshot": {"allergies": ["青霉素"], "preferences": ["科幻片"]}})
    for text in ("头疼吃什么药？", "Which pills may I take?"):
        await chat.answer(request(text))
    chinese, english = (prompt[0] for prompt in model.prompts)
    assert ("system", "system") == (chinese.type, english.type)
    assert "\n\n过敏史: 青霉素" in chinese.text
    assert "科幻片" not in str(model.prompts)
    assert "青霉素" in english.text


async def test_the_feature_flag_changes_no_answer(memory):
    """Three turns with the graph and three without have the same prompts, answers and events."""
    told = {}
    for graph in (True, False):
        model = Model()
        chat = ConversationChat(memory, model=model, router=films, retriever=lambda **_: FILMS, graph=graph)
        answers, kinds = [], []
        for text in ("我叫李雷", "诺兰导演过什么？", "我叫什么？"):
            asked = ChatRequest(text, f"{USER}-{graph}", SESSION)
            events = await events_of(chat, asked)
            answers.append(events[-1]["answer"])
            kinds.append([(event["type"], event.get("node")) for event in events])
        prompts = [[(one.type, one.text) for one in prompt] for prompt in model.prompts]
        told[graph] = (answers, kinds, prompts)
    assert told[True] == told[False]
    assert ("human", "我叫李雷") in told[True][2][2]


def _raises(**_):
    raise ConnectionError("the knowledge base is away")


@pytest.mark.parametrize("broken", ["nothing", "router", "retriever", "model", "memory"])
async def test_the_feature_flag_changes_nothing_where_something_fails(tmp_path, monkeypatch, broken):
    """S2-60: with the graph and without, the same events, errors, prompts and turns, whatever is down."""
    told = {}
    for graph in (True, False):
        settings = Settings(url=f"sqlite:///{tmp_path}/{graph}.db", indexing="manual")
        async with Memory.open(settings=settings, embedder="none") as memory:
            model = Model()
            parts = {
                "router": _raises if broken == "router" else films,
                "retriever": _raises if broken == "retriever" else lambda **_: FILMS,
            }
            said = Halting(ModelUnavailableError()) if broken == "model" else model
            chat = ConversationChat(memory, model=said, graph=graph, **parts)
            asked = request(debug=True)
            conversation = await chat.nodes.store.get_or_create_conversation_id(USER, SESSION)
            if broken == "memory":
                monkeypatch.setattr(memory.engine.store.reader, "view", _no_store)
            events, error = [], None
            try:
                events = await events_of(chat, asked)
            except Exception as failed:
                error = type(failed).__name__
            monkeypatch.undo()
            prompts = [[(one.type, one.text) for one in prompt] for prompt in model.prompts]
            kinds = [(one["type"], one.get("node"), one.get("answer")) for one in events]
            told[graph] = (kinds, error, prompts, await the_log(memory, conversation))
    assert told[True] == told[False]
    assert {"model": "ModelUnavailableError", "router": "ConnectionError"}.get(broken) == told[True][1]


async def _no_store(*_, **__):
    raise StoreUnavailableError


async def test_after_one_turn_there_are_two_messages(memory, model):
    """The nodes return what they change, so that nothing is added twice."""
    graph = build_conversation_graph(memory, model=model)
    state = await graph.ainvoke({"messages": [HumanMessage("你好", id="t1")], "conversation_id": "c"})
    assert [("human", "你好"), ("ai", "答：你好")] == [
        (message.type, message.text) for message in state["messages"]
    ]
    assert ORDER == [trace["node"] for trace in state["trace"]]
    assert [("done", "你好", "答：你好")] == await the_log(memory, "c", user=None)


async def test_a_checkpointer_keeps_the_thread_and_repeats_nothing(memory, model):
    """The state grows by two messages a turn; the prompt has each of them once."""
    graph = build_conversation_graph(memory, model=model, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for number, text in enumerate(("一", "二", "三")):
        asked = {"messages": [HumanMessage(text, id=f"t{number}")], "conversation_id": "c", "turn_id": f"t{number}"}  # fmt: skip
        state = await graph.ainvoke(asked, config)
    assert 6 == len(state["messages"])
    assert ["一", "答：一", "二", "答：二", "三"] == [message.text for message in model.prompts[-1][1:]]
    # The trace is that of the last turn.
    assert ORDER == [trace["node"] for trace in state["trace"]]


async def test_the_prompt_says_the_day_of_the_conversations_time_zone(memory):
    """Set with the conversation, by whoever writes to it."""
    await memory.conversation("c", timezone="Pacific/Kiritimati").record("你好", "你好！")
    model = Model()
    graph = build_conversation_graph(memory, model=model)
    await graph.ainvoke({"messages": [HumanMessage("几号？", id="t1")], "conversation_id": "c"})
    assert "（Pacific/Kiritimati）" in model.prompts[0][0].text


async def test_a_message_that_is_asked_again_has_both_answers(memory):
    """As when an answer is regenerated: under the same id of the message, once each, and no run is lost to a conflict."""
    graph = build_conversation_graph(
        memory, model=Model("红的", "绿的", "绿的"), checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    for _ in range(3):
        asked = {"messages": [HumanMessage("什么颜色？", id="same")], "conversation_id": "c"}
        state = await graph.ainvoke(asked, config)
    assert "绿的" == state["messages"][-1].text
    expected = [("done", "什么颜色？", "红的"), ("done", "什么颜色？", "绿的")]
    assert expected == await the_log(memory, "c", user=None)


async def test_debug_shows_the_prompt(memory, model):
    """And only debug does."""
    chat = ConversationChat(memory, model=model, system_message="SYS")
    for debug in (True, False):
        events = await events_of(chat, request(debug=debug))
        (told,) = [event["told"] for event in events if event.get("node") == "generate"]
        assert debug == ("prompt" in told)
    told, today = (await _prompt(chat))[0]["content"].split("\n\n")
    assert "SYS" == told
    assert today.startswith("今天是 20")


async def _prompt(chat):
    events = await events_of(chat, request(debug=True))
    return next(event["told"]["prompt"] for event in events if event.get("node") == "generate")


# -- what breaks -------------------------------------------------------------------------------------------------------


class Halting(ChatModel):
    """Says half of an answer, and then fails or says nothing more."""

    def __init__(self, error=None):
        self.error = error
        self.closed = False

    async def complete(self, messages, *, max_tokens):
        raise AssertionError

    async def stream(self, messages, *, tools=()):
        try:
            yield Spoken("一半")
            if self.error is not None:
                raise self.error
            await anyio.sleep_forever()
        finally:
            self.closed = True


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("how", ["left", "cancelled", "failed"])
async def test_a_stream_that_is_cut_leaves_the_turn_aborted(memory, graph, how):
    """And nothing else changed; the next turn knows nothing of it."""
    before = await ConversationChat(memory, model=Model("好")).answer(request("先说一句"))
    assert "好" == before
    broken = Halting(ModelUnavailableError() if how == "failed" else None)
    chat = ConversationChat(memory, model=broken, graph=graph)
    conversation = await chat.nodes.store.get_or_create_conversation_id(USER, SESSION)
    if how == "failed":
        with pytest.raises(ModelUnavailableError):
            await events_of(chat, request())
    else:
        with anyio.CancelScope() as scope:
            async with aclosing(chat.stream_chat(request())) as events:
                async for event in events:
                    if event["type"] == "token":
                        if how == "left":
                            break
                        scope.cancel()
    assert broken.closed
    assert [("done", "先说一句", "好"), ("aborted", "诺兰导演过什么？", None)] == await the_log(
        memory, conversation
    )
    model = Model()
    await ConversationChat(memory, model=model, graph=graph).answer(request("还在吗？"))
    said = ["先说一句", "好", "诺兰导演过什么？", "还在吗？"]
    assert said == [message.text for message in model.prompts[0][1:]]


@pytest.mark.parametrize("graph", [True, False])
async def test_who_leaves_after_the_answer_was_written_loses_nothing(memory, graph):
    """The turn is done, and stays so."""
    chat = ConversationChat(memory, model=Model(), graph=graph)
    async with aclosing(chat.stream_chat(request())) as events:
        async for event in events:
            conversation = event.get("conversation_id") or conversation  # noqa: F821 - the first event has it
            if event.get("node") == "persist":
                break
    assert ["done"] == [turn.status for turn in await memory.conversation(conversation, user_id=USER).turns()]


async def test_a_failing_router_aborts_the_turn_and_raises(memory):
    """It is not memory's to mend."""

    def route(**_):
        raise LookupError("no route")

    chat = ConversationChat(memory, model=Model(), router=route)
    with pytest.raises(LookupError, match="no route"):
        await events_of(chat, request())
    conversation = await chat.nodes.store.get_or_create_conversation_id(USER, SESSION)
    assert ["aborted"] == [
        turn.status for turn in await memory.conversation(conversation, user_id=USER).turns()
    ]


async def test_requests_of_one_session_may_overlap(memory):
    """Each completes its own turn."""
    chat = ConversationChat(memory, model=Model())
    async with anyio.create_task_group() as together:
        for number in range(5):
            together.start_soon(chat.answer, request(f"问{number}"))
    conversation = await chat.nodes.store.get_or_create_conversation_id(USER, SESSION)
    assert {("done", f"问{n}", f"答：问{n}") for n in range(5)} == set(await the_log(memory, conversation))


@pytest.mark.parametrize("graph", [True, False])
async def test_who_names_no_user_writes_into_nobodys_conversation(memory, graph):
    """Not even the question of a turn that is given up: it would be the owner's to read and to export."""
    await memory.conversation("hers", user_id=USER).record("问", "答")
    chat = ConversationChat(memory, model=Model(), graph=graph)
    with pytest.raises(ConflictError):
        await events_of(chat, ChatRequest("别人的问题", "", SESSION, conversation_id="hers"))
    assert [("done", "问", "答")] == await the_log(memory, "hers")
    await events_of(chat, ChatRequest("没有用户", "", SESSION, conversation_id="nobody's"))
    assert ["没有用户"] == [turn[1] for turn in await the_log(memory, "nobody's", None)]


async def test_users_never_meet(memory):
    """The same session id of another user is another conversation, and another's conversation is refused."""
    model = Model()
    chat = ConversationChat(memory, model=model)
    await chat.answer(ChatRequest("我的秘密是 42", "ada", "s"))
    await chat.answer(ChatRequest("我的秘密是什么？", "bob", "s"))
    assert not [message for message in model.prompts[1] if "42" in message.text]


# -- loops -------------------------------------------------------------------------------------------------------------


async def test_a_graph_of_ones_own_may_loop(memory):
    """Tool calls lead back to the model until it answers; the turn has them as steps."""
    call = AIMessage("", tool_calls=[{"id": "k", "name": "search", "args": {"q": "诺兰"}}])
    model = Model(call, AIMessage("盗梦空间。"))
    nodes = ConversationNodes(memory, model)

    def tools(state):
        return {"messages": [ToolMessage("盗梦空间", tool_call_id="k", name="search")]}

    def more(state):
        return "tools" if state["messages"][-1].tool_calls else "persist"

    builder = StateGraph(ConversationState)
    for name in ("recall", "generate", "persist"):
        builder.add_node(name, nodes.node(name))
    builder.add_node("tools", tools)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "generate")
    builder.add_conditional_edges("generate", more, ["tools", "persist"])
    builder.add_edge("tools", "generate")
    state = await builder.compile().ainvoke(
        {"messages": [HumanMessage("问", id="t1")], "conversation_id": "c", "user_id": USER}
    )
    assert ["recall", "generate", "generate", "persist"] == [trace["node"] for trace in state["trace"]]
    (turn,) = await memory.conversation("c", user_id=USER).turns()
    assert ("done", "盗梦空间。", ["search"]) == (turn.status, turn.assistant, [s.tool for s in turn.steps])
    assert "tool" == model.prompts[1][-1].type


class WithTone(ConversationState, total=False):
    """The state of an application that needs one thing more."""

    tone: str


async def test_a_field_of_ones_own_is_said_in_one_place(memory):
    """A node behind all others reads what one before them wrote, and no node in between was told of it."""
    nodes = ConversationNodes(memory, Model())
    names = ("set", *ORDER[:-1], "speak", "persist")

    def speak(state: WithTone):
        return {"messages": [AIMessage(f"{state['tone']}：{state['messages'][-1].text}")]}

    own = {"set": lambda state: {"tone": "温和"}, "speak": speak}
    builder = StateGraph(WithTone)
    for name in names:
        builder.add_node(name, own.get(name) or nodes.node(name))
    builder.add_edge(START, "set")
    for one, other in pairwise(names):
        builder.add_edge(one, other)
    state = await builder.compile().ainvoke(
        {"messages": [HumanMessage("你好", id="t1")], "conversation_id": "c"}
    )
    assert (ORDER, "温和") == ([trace["node"] for trace in state["trace"]], state["tone"])
    assert [("done", "你好", "温和：答：你好")] == await the_log(memory, "c", user=None)


# -- the budget --------------------------------------------------------------------------------------------------------

_texts = st.text(max_size=40)
_turns = st.lists(st.tuples(_texts, _texts, st.booleans()), max_size=8)


@given(_turns, st.lists(_texts, max_size=5), st.integers(0, 300))
def test_a_prompt_keeps_to_its_window(turns, results, window):
    """Whatever is in the state: at most this many tokens, unless what is never cut has more by itself."""
    history = [
        {"role": role, "content": text, "timestamp": 0, **({"recalled": True} if recalled else {})}
        for recalled in (True, False)
        for user, answer, marked in turns
        if marked == recalled
        for role, text in (("user", user), ("assistant", answer))
    ]
    state = {
        "messages": [HumanMessage("问")],
        "episodic_memory": history,
        "retrieval_results": [{"content": text} for text in results],
    }
    prompt = build_prompt_from_state(state, system_message="S", window_tokens=window, count=len)
    whole = build_prompt_from_state(state, system_message="S")
    bare = build_prompt_from_state({"messages": [HumanMessage("问")]}, system_message="S")
    assert prompt_tokens(prompt, len) <= max(window, prompt_tokens(bare, len))
    if prompt_tokens(whole, len) <= window:
        assert [m.text for m in whole] == [m.text for m in prompt]
    assert ("S", "问") == (prompt[0].text, prompt[-1].text)


async def test_a_turn_in_progress_says_who_answers_it(memory):
    """So that others give it up if this process is killed; when it is over, nothing is left of that."""
    chat = ConversationChat(memory, model=GenericFakeChatModel(messages=iter([AIMessage("盗梦空间")])))
    leases, far = memory.engine.store.leases, memory.engine.clock.now() + timedelta(days=300)
    async with aclosing(chat.stream_chat(request())) as events:
        first = await anext(events)
        ((_, said),) = await leases.lapsed(far, kept=far, limit=9)
        assert {first["turn_id"], first["conversation_id"]} < {*json.loads(said)}
        async for _ in events:
            pass
    assert [] == await leases.lapsed(far, kept=far, limit=9)
    async with aclosing(chat.stream_chat(request())) as events:
        await anext(events)
    assert [] == await leases.lapsed(far, kept=far, limit=9)
