"""The conversation graph with the checkpointers that people use: threads, interrupts, and no memory in what they save."""

import asyncio
from contextlib import asynccontextmanager, contextmanager
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pagefile import BlockingMemory, Memory, Settings
from pagefile.integrations.langgraph import ConversationNodes, ConversationState, build_conversation_graph
from pagefile.integrations.langgraph.speaking import retries, with_tools
from tests.integration.langchain.models import Recorder, calls_tool
from tests.integration.postgres.serving import fresh_url

THREAD = {"configurable": {"thread_id": "a"}}
SETTINGS = Settings(language="en", indexing="manual")
FACT = "The user is allergic to penicillin."


def asked(text, **more):
    return {"messages": [HumanMessage(text)], "conversation_id": "c", "user_id": "ada", **more}


def echo():
    return Recorder(play=lambda messages: AIMessage("re " + messages[-1].text))


def exchanged(turns):
    return [(turn.status, turn.user, turn.assistant) for turn in turns]


@contextmanager
def database():
    """A PostgreSQL database that nobody else uses: checkpointers know no schemas."""
    server, name = fresh_url().split("?")[0], f"threads_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"{server.rsplit('/', 1)[0]}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def saver_of(kind, tmp_path):
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(f"{tmp_path}/threads.db") as saver:
            yield saver
    else:
        with database() as url:
            async with AsyncPostgresSaver.from_conn_string(url) as saver:
                await saver.setup()
                yield saver


@contextmanager
def blocking_saver_of(kind, tmp_path):
    if kind == "sqlite":
        with SqliteSaver.from_conn_string(f"{tmp_path}/threads.db") as saver:
            yield saver
    else:
        with database() as url, PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield saver


async def everything_saved(saver):
    return repr([(one.checkpoint, one.metadata, one.pending_writes) async for one in saver.alist(THREAD)])


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_thread_goes_on_and_saves_no_memory(tmp_path, kind):
    """Equal messages are turns of their own, the model knows the user, and nothing that is saved does."""
    model = echo()
    async with (
        Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory,
        saver_of(kind, tmp_path) as saver,
    ):
        await memory.remember(FACT, user_id="ada")
        await memory.conversation("old", user_id="ada").record("My allergic dog is called ZORRO.", "Noted.")
        graph = build_conversation_graph(memory, model=model, checkpointer=saver)
        for _ in range(2):
            await graph.ainvoke(asked("What am I allergic to?", debug=True), THREAD)
        turns = await memory.conversation("c", user_id="ada").turns()
        saved = await everything_saved(saver)
    assert [("done", "What am I allergic to?", "re What am I allergic to?")] * 2 == exchanged(turns)
    assert FACT in repr(model.calls[1])
    assert "allergic to?" in saved
    assert "penicillin" not in saved
    assert "ZORRO" not in saved


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_thread_without_an_event_loop(tmp_path, kind):
    """The same with `graph.invoke`, over a `BlockingMemory`."""
    model = echo()
    with (
        BlockingMemory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory,
        blocking_saver_of(kind, tmp_path) as saver,
    ):
        memory.remember(FACT, user_id="ada")
        graph = build_conversation_graph(memory, model=model, checkpointer=saver)
        for text in ("one", "What am I allergic to?"):
            graph.invoke(asked(text), THREAD)
        tokens = [
            event["text"]
            for event in graph.stream(asked("x y"), THREAD, stream_mode="custom")
            if event["type"] == "token"
        ]
        turns = memory.conversation("c", user_id="ada").turns()
        saved = repr(list(saver.list(THREAD)))
    assert ["one", "What am I allergic to?", "x y"] == [turn.user for turn in turns]
    assert {"done"} == {turn.status for turn in turns}
    assert ["re ", "x ", "y"] == tokens
    assert FACT in repr(model.calls[1])
    assert "penicillin" not in saved


def approving(memory, model, saver):
    """A graph whose tools wait for somebody to agree."""
    nodes = ConversationNodes(memory, model)
    builder = StateGraph(ConversationState)

    def tools(state):
        said = interrupt("may I?")
        return {"messages": [ToolMessage(said, tool_call_id="c1", name="mail")]}

    for name in ("recall", "generate", "persist"):
        builder.add_node(name, nodes.node(name))
    builder.add_node("tools", tools)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "generate")
    builder.add_conditional_edges(
        "generate",
        lambda state: "tools" if state["messages"][-1].tool_calls else "persist",
        ["tools", "persist"],
    )
    builder.add_edge("tools", "generate")
    builder.add_edge("persist", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_interrupted_run_is_resumed_with_its_memory(tmp_path, kind):
    """After an interrupt, even in another process, the model is told again what is known, and there is one turn."""
    model = Recorder(script=[calls_tool("mail", {"to": "bob"}), AIMessage("sent")])
    async with (
        Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory,
        saver_of(kind, tmp_path) as saver,
    ):
        await memory.remember(FACT, user_id="ada")
        await approving(memory, model, saver).ainvoke(asked("Mail bob my allergies", turn_id="t1"), THREAD)
        # Another graph over the same checkpoints, as a process that was started since.
        await approving(memory, model, saver).ainvoke(Command(resume="ok"), THREAD)
        (turn,) = await memory.conversation("c", user_id="ada").turns()
        saved = await everything_saved(saver)
    assert ("t1", "done", "sent", ["mail"]) == (
        turn.id,
        turn.status,
        turn.assistant,
        [s.tool for s in turn.steps],
    )
    assert FACT in repr(model.calls[1])
    assert "penicillin" not in saved


async def test_a_run_that_failed_leaves_the_thread_usable(tmp_path):
    """The id of a message whose run failed is not that of the next one."""
    model = Recorder(script=[ConnectionError("down"), AIMessage("fine")])
    async with Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory:
        graph = build_conversation_graph(memory, model=model, checkpointer=InMemorySaver())
        with pytest.raises(ConnectionError):
            await graph.ainvoke(asked("one", turn_id="t1"), THREAD)
        await memory.conversation("c", user_id="ada").record("one", "by hand", id="t1")
        await graph.ainvoke(asked("two"), THREAD)
        turns = await memory.conversation("c", user_id="ada").turns()
    assert [("done", "one", "by hand"), ("done", "two", "fine")] == exchanged(turns)


async def test_the_graph_loads_what_was_paged_out(tmp_path):
    """The model reads the placeholder, calls the tool, is answered inside of `generate`, and answers; the turn has the step."""
    long = "\n".join(["A line of the report."] * 3000 + ["The vault code word is HELIOTROPE."])

    def play(messages):
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("HELIOTROPE" if "HELIOTROPE" in messages[-1].text else "not there")
        text = "\n".join(message.text for message in messages)
        return calls_tool("load_tool_history", {"uuid": page_in(text), "query": "vault code word"})

    model = Recorder(play=play)
    async with Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.begin("Read the report.")
        turn = await chat.step(turn, tool="report", input={}, result=long, call_id="r")
        await chat.complete(turn, "I read it.")
        page = turn.steps[0].page

        def page_in(text):
            assert page in text
            return page

        state = await build_conversation_graph(memory, model=model).ainvoke(asked("What was the code word?"))
        *_, last = await chat.turns()
    assert {"load_tool_history", "search_tool_history", "recall", "remember", "correct", "retract"} == set(
        model.offered
    )
    assert "HELIOTROPE" == state["messages"][-1].text == last.assistant
    assert ["load_tool_history"] == [step.tool for step in last.steps]


async def test_invoke_on_the_memorys_own_loop_answers_without_it(tmp_path, caplog):
    """A synchronous call there could only wait for itself: it is answered, and the log says what to do."""
    async with Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory:
        state = build_conversation_graph(memory, model=echo()).invoke(asked("hello"))
        assert [] == await memory.conversation("c", user_id="ada").turns()
    assert "re hello" == state["messages"][-1].text
    assert "ainvoke" in caplog.text
    assert ["the memory is not available"] == state["trace"][-1]["notes"]


async def test_two_loops_share_one_graph(tmp_path):
    """A graph made where the memory was opened may be awaited in another thread's loop."""
    async with Memory.open(f"sqlite:///{tmp_path}/m.db", settings=SETTINGS, embedder="none") as memory:
        graph = build_conversation_graph(memory, model=echo())
        await asyncio.to_thread(lambda: asyncio.run(graph.ainvoke(asked("hello"))))
        assert [("done", "hello", "re hello")] == exchanged(
            await memory.conversation("c", user_id="ada").turns()
        )


class Binding(Recorder):
    """A model that binds tools as those of providers do."""

    def bind_tools(self, tools, **more):
        return self.bind(tools=list(tools), **more)


@pytest.mark.parametrize("wrapped", [False, True])
def test_tools_are_offered_beside_the_users_own(wrapped):
    """What was bound before stays bound, inside of a model that retries too, and so do its other arguments."""
    tool = {"type": "function", "function": {"name": "search"}}
    bound = Binding().bind_tools([tool], tool_choice="auto")
    model = with_tools(bound.with_retry() if wrapped else bound, {"recall": {"name": "recall"}})
    assert ["search", "recall"] == [one["function"]["name"] for one in model.kwargs["tools"]]
    assert "'tool_choice': 'auto'" in repr(model)
    assert wrapped == retries(model)
