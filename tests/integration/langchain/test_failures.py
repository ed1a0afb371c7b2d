"""Whatever happens to the memory, the agent answers; what can be written later is written later."""

import asyncio
import logging
import time

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from pagefile import BlockingMemory, Memory, Settings
from pagefile.errors import SettingsError
from pagefile.integrations.langchain import PagefileMiddleware, tools
from pagefile.integrations.langchain.view import request_tokens
from pagefile.ports import Meter
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing import FlakyStore
from pagefile.text.tokens import open_counter
from tests.engines import engine_over

from .models import Recorder, calls_tool, check_order, memories

THREAD = {"configurable": {"thread_id": "t", "user_id": "ada"}}
EVERYTHING = [
    f"{port}.{verb}"
    for port, verbs in {
        "log": ("append", "advance"),
        "reader": ("view", "entries", "heads"),
        "pages": ("put", "load"),
        "facts": ("list",),
        "source": ("since", "around"),
    }.items()
    for verb in verbs
]


class Counts(Meter):
    def __init__(self):
        self.degraded = []

    def count(self, name, amount=1.0, **labels):
        if name == "pagefile_degraded_total":
            self.degraded.append(labels["tier"])

    def observe(self, name, value, **labels):
        pass


class SlowStore(FlakyStore):
    """Takes longer than anybody waits, when told to; otherwise a store that fails when told to."""

    slow_s = 0.0

    def __init__(self, store):
        super().__init__(store)
        for port in ("log", "reader", "pages"):
            setattr(self, port, _SlowPort(self, getattr(self, port)))


class _SlowPort:
    def __init__(self, store, port):
        self._store, self._port = store, port

    def __getattr__(self, verb):
        method = getattr(self._port, verb)

        async def slowly(*args, **kwargs):
            await asyncio.sleep(self._store.slow_s)
            return await method(*args, **kwargs)

        return slowly


@tool
def manual(topic: str) -> str:
    """A manual, far too long."""
    return f"{topic}\n" + "set an option\n" * 2000


@pytest.fixture
def store():
    return SlowStore(InMemoryStore(SystemClock()))


@pytest.fixture
def meter():
    return Counts()


@pytest.fixture
def memory(store, meter):
    return Memory(engine_over(store, Settings(language="en"), SystemClock(), open_counter(), meter=meter))


def ask(text: str) -> dict:
    return {"messages": [HumanMessage(text)]}


async def test_a_store_that_is_down_costs_memory_and_nothing_else(memory, store, meter, caplog):
    """The run answers, every failure is counted, each kind is told once; what the thread knows is recorded later."""
    model = Recorder(script=[calls_tool("manual", {"topic": "a"}), AIMessage("Done.")])
    agent = create_agent(
        model,
        [manual],
        system_prompt="BASE",
        middleware=[PagefileMiddleware(memory, window_tokens=60_000)],
        checkpointer=InMemorySaver(),
    )
    store.fail(EVERYTHING)
    for text in ("one", "two"):
        out = await agent.ainvoke(ask(text), THREAD)
        assert "Done." == out["messages"][-1].text
    assert ["one", "", manual.invoke({"topic": "a"})] == [m.text for m in model.calls[1][1:]]
    assert "BASE" == model.calls[1][0].text
    assert 8 == meter.degraded.count("langchain")
    told = [r for r in caplog.records if r.levelno == logging.ERROR and r.args[0] == "langchain"]
    assert ["the window", "archiving a result", "recording"] == [r.args[1] for r in told]
    store.mend()
    await agent.ainvoke(ask("three"), THREAD)
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [("one", "done", 1), ("two", "done", 1), ("three", "done", 1)] == [
        (turn.user, turn.status, len(turn.steps)) for turn in turns
    ]


@pytest.mark.parametrize("verb", EVERYTHING)
async def test_any_single_verb_may_fail(memory, store, verb):
    """Requests stay in an order that providers take, whatever is missing."""
    model = Recorder(script=[calls_tool("manual", {"topic": "a"}), AIMessage("Done.")])
    agent = create_agent(
        model,
        [manual],
        middleware=[PagefileMiddleware(memory, window_tokens=9000)],
        checkpointer=InMemorySaver(),
    )
    await agent.ainvoke(ask("one"), THREAD)
    store.fail([verb])
    out = await agent.ainvoke(ask("two"), THREAD)
    store.mend()
    await agent.ainvoke(ask("three"), THREAD)
    assert "Done." == out["messages"][-1].text
    for request in model.calls:
        check_order(request)
        assert request_tokens(request, open_counter().count) <= 9000
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert ["one", "two", "three"] == [turn.user for turn in turns if turn.status == "done"]


@pytest.mark.waits
async def test_a_slow_store_is_not_waited_for(memory, store, meter):
    """A hook waits for its limit and no longer; what the thread knows is recorded when the store is quick again."""
    model = Recorder(script=[calls_tool("manual", {"topic": "a"}), AIMessage("Done.")])
    saver = InMemorySaver()
    impatient = PagefileMiddleware(memory, timeout_s=0.5)
    agent = create_agent(model, [manual], middleware=[impatient], checkpointer=saver)
    store.slow_s = 60.0
    began = time.monotonic()
    out = await agent.ainvoke(ask("one"), THREAD)
    assert "Done." == out["messages"][-1].text
    assert time.monotonic() - began < 30
    # Two model calls, looking for an equal call, the result, the answer.
    assert 5 == meter.degraded.count("langchain")
    store.slow_s = 0.0
    patient = PagefileMiddleware(memory, timeout_s=60)
    await create_agent(model, [manual], middleware=[patient], checkpointer=saver).ainvoke(ask("two"), THREAD)
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [("one", "done"), ("two", "done")] == [(turn.user, turn.status) for turn in turns]


async def test_without_memory_a_request_still_fits_its_window(memory, store):
    """A long thread and a long result are cut without a store: older turns first, then the middle of the result."""
    model = Recorder(
        play=lambda messages: (
            calls_tool("manual", {"topic": "a"}) if messages[-1].text == "last" else AIMessage("word " * 200)
        )
    )
    agent = create_agent(
        model,
        [manual],
        middleware=[PagefileMiddleware(memory, window_tokens=3000)],
        checkpointer=InMemorySaver(),
    )
    store.fail(EVERYTHING)
    for number in range(20):
        await agent.ainvoke(ask(f"question {number}"), THREAD)
    await agent.ainvoke(ask("last"), THREAD)
    for request in model.calls:
        check_order(request)
        assert request_tokens(request, open_counter().count) <= 3000
    assert "characters left out" in model.calls[-1][-1].text
    assert 10 < len(model.calls[-2])


def test_a_synchronous_run_with_a_closed_memory(caplog):
    """An agent that outlives its memory answers without it."""
    with BlockingMemory.open("memory://") as memory:
        ours = PagefileMiddleware(memory)
    model = Recorder(script=[AIMessage("Hello.")])
    out = create_agent(model, [], middleware=[ours]).invoke(ask("Hello?"), THREAD)
    assert "Hello." == out["messages"][-1].text
    assert [] == memories(model.calls[0])
    assert "closed" in caplog.text


async def test_a_synchronous_run_that_holds_up_the_memorys_own_loop(caplog):
    """It cannot have memory, and does not hang: the log says what to do."""
    async with Memory.open("memory://") as memory:
        model = Recorder(script=[AIMessage("Hello.")])
        agent = create_agent(model, [], middleware=[PagefileMiddleware(memory, timeout_s=60)])
        began = time.monotonic()
        out = agent.invoke(ask("Hello?"), THREAD)
        assert "Hello." == out["messages"][-1].text
        assert time.monotonic() - began < 15
    assert "ainvoke" in caplog.text


async def test_a_run_that_names_no_conversation_has_no_memory_and_is_told(memory, caplog):
    """It is answered; the log says what to give it."""
    tools._warn_of_no_conversation.cache_clear()
    agent = create_agent(Recorder(script=[AIMessage("x")] * 2), [], middleware=[PagefileMiddleware(memory)])
    for _ in range(2):
        assert "x" == (await agent.ainvoke(ask("Hello?")))["messages"][-1].text
    assert 1 == caplog.text.count("names no conversation")
    assert [] == list(await memory.conversations())


async def test_a_run_that_names_no_user_is_told_where_its_memory_ends(memory, caplog):
    """Once: nothing of it reaches other threads."""
    tools._warn_of_no_user.cache_clear()
    agent = create_agent(Recorder(script=[AIMessage("x")] * 2), [], middleware=[PagefileMiddleware(memory)])
    for thread in ("n1", "n2"):
        await agent.ainvoke(ask("Hello?"), {"configurable": {"thread_id": thread}})
    assert 1 == caplog.text.count("names no user")


async def test_a_thread_of_somebody_else_is_told_in_a_line(memory, caplog):
    """A thread begun without a user takes none later: the run goes on, and the log says what to do, without a traceback."""
    agent = create_agent(Recorder(script=[AIMessage("x")] * 2), [], middleware=[PagefileMiddleware(memory)])
    await agent.ainvoke(ask("Hello?"), {"configurable": {"thread_id": "n1"}})
    caplog.clear()
    named = {"configurable": {"thread_id": "n1", "user_id": "lin"}}
    assert "x" == (await agent.ainvoke(ask("Hello?"), named))["messages"][-1].text
    [told] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "use another conversation id" in told.getMessage()
    assert not told.exc_info


async def test_a_window_of_nothing_is_refused(memory):
    """At once, and not in the middle of a run."""
    with pytest.raises(SettingsError, match="window_tokens"):
        PagefileMiddleware(memory, window_tokens=0)


async def test_a_window_too_small_for_the_question_costs_memory_and_not_the_question(memory, meter):
    """What must never be cut is sent as it is."""
    model = Recorder(script=[AIMessage("Hm.")])
    agent = create_agent(
        model, [], middleware=[PagefileMiddleware(memory, window_tokens=50)], checkpointer=InMemorySaver()
    )
    for number in range(2):
        await agent.ainvoke(ask(f"{number} " + "word " * 400), THREAD)
    assert ["1 " + "word " * 400] == [m.text for m in model.calls[1] if m.type == "human"]
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert ["done", "done"] == [turn.status for turn in turns]


async def test_a_thread_of_another_user_gets_no_memory(memory, meter):
    """A conversation belongs to whoever began it; a stranger's run goes on without it."""
    model = Recorder(script=[AIMessage("Noted, otters."), AIMessage("Hello.")])
    agent = create_agent(model, [], middleware=[PagefileMiddleware(memory)])
    await agent.ainvoke(ask("I raise otters."), THREAD)
    await agent.ainvoke(ask("What do I raise?"), {"configurable": {"thread_id": "t", "user_id": "eve"}})
    assert "otters" not in "".join(m.text for m in model.calls[1])
    assert "langchain" in meter.degraded
    assert [] == await memory.recall("otters", user_id="eve")
