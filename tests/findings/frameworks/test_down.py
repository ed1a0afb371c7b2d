"""Databases that are locked or gone, and memories that are closed elsewhere than they were opened."""

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage

from pagefile import Memory
from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.integrations.langgraph import build_conversation_graph
from pagefile.integrations.pydantic_ai import PagefileMemory
from tests.findings.marks import finding
from tests.heavy import heavy
from tests.integration.langchain.models import Recorder, calls_tool
from tests.integration.pydantic_ai.agents import Script

from .promises import deleted, locked, promised

RUN = {"configurable": {"thread_id": "t", "user_id": "ada"}}


@tool
def small(q: str) -> str:
    """A small answer."""
    return "small"


# -- F10: what a locked database costs ---------------------------------------------------------------------------------


@finding("frameworks-F10")
def test_a_locked_database_costs_langchain_one_time_out(blocking, database):
    """A run waits `timeout_s` at most, however many tools it calls."""
    script = [calls_tool("small", {"q": str(number)}, f"c{number}") for number in range(2)]
    model = Recorder(script=[*script, AIMessage("ok")])
    agent = create_agent(model, [small], middleware=[PagefileMiddleware(blocking, timeout_s=0.5)])
    agent.invoke({"messages": [HumanMessage("before")]}, RUN)
    with locked(database):
        begun = monotonic()
        out = agent.invoke({"messages": [HumanMessage("hello")]}, RUN)
        took = monotonic() - begun
    assert "ok" == out["messages"][-1].text
    assert took < 3 * 0.5


@finding("frameworks-F10")
async def test_a_locked_database_costs_pydantic_ai_one_time_out(memory, database):
    """A run waits `timeout_s` at most, also when that is longer than the memory is left alone after a failure."""
    agent = Script("ok", "ok").agent(PagefileMemory(memory, user_id="ada", timeout_s=1.2))
    await agent.run("before", conversation_id="c")
    with locked(database):
        begun = monotonic()
        result = await agent.run("hello", conversation_id="c")
        took = monotonic() - begun
    assert "ok" == result.output
    assert took < 1.6 * 1.2


# -- F11: closing ------------------------------------------------------------------------------------------------------


@finding("frameworks-F11")
def test_a_memory_is_closed_in_another_task(database):
    """The functions that start and stop a program may open and close a memory, each in a task of its own."""

    async def program():
        stack = AsyncExitStack()
        opening = stack.enter_async_context(Memory.open(f"sqlite:///{database}"))
        memory = await asyncio.ensure_future(opening)
        await memory.conversation("c", user_id="ada").record(user="hello", assistant="hi")
        with promised("the memory is closed"):
            await asyncio.ensure_future(stack.aclose())

    asyncio.run(program())


@finding("frameworks-F11")
def test_a_memory_is_closed_in_another_cell(database):
    """A notebook may open a memory in one cell and close it in another."""
    opening = Memory.open(f"sqlite:///{database}")
    with asyncio.Runner() as cells:
        memory = cells.run(opening.__aenter__())
        cells.run(memory.conversation("c", user_id="ada").record(user="hello", assistant="hi"))
        with promised("the memory is closed"):
            cells.run(opening.__aexit__(None, None, None))


@finding("frameworks-F11")
async def test_what_was_recorded_before_such_a_close_is_there(database):
    """However a memory is closed, the next one finds what was recorded."""
    stack = AsyncExitStack()
    opening = stack.enter_async_context(Memory.open(f"sqlite:///{database}"))
    memory = await asyncio.ensure_future(opening)
    await memory.conversation("c", user_id="ada").record(user="kept?", assistant="hi")
    await asyncio.gather(asyncio.ensure_future(stack.aclose()), return_exceptions=True)
    async with Memory.open(f"sqlite:///{database}") as again:
        turns = await again.conversation("c", user_id="ada").turns()
    assert ["kept?"] == [turn.user for turn in turns]


@finding("frameworks-F11")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_memory_lives_in_the_lifespan_of_a_service(database):
    """A memory opened in FastAPI's lifespan serves its requests and is closed with it."""

    @asynccontextmanager
    async def lifespan(app):
        async with AsyncExitStack() as stack:
            app.state.memory = await stack.enter_async_context(Memory.open(f"sqlite:///{database}"))
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def root():
        chat = app.state.memory.conversation("c", user_id="ada")
        await chat.record(user="hello", assistant="hi")
        return len(await chat.turns())

    with TestClient(app) as client:
        assert 1 == client.get("/").json()


# -- F18: a database that is gone --------------------------------------------------------------------------------------


async def ask_langchain(memory, text):
    agent = create_agent(
        Recorder(play=lambda _: AIMessage("ok")), [], middleware=[PagefileMiddleware(memory)]
    )
    return (await agent.ainvoke({"messages": [HumanMessage(text)]}, RUN))["messages"][-1].text


async def ask_graph(memory, text):
    graph = build_conversation_graph(memory, model=Recorder(play=lambda _: AIMessage("ok")))
    state = {"messages": [HumanMessage(text)], "conversation_id": "c", "user_id": "ada"}
    return (await graph.ainvoke(state))["messages"][-1].text


async def ask_pydantic_ai(memory, text):
    agent = Script("ok").agent(PagefileMemory(memory, user_id="ada"))
    return (await agent.run(text, conversation_id="c")).output


async def ask_claude(memory, text):
    from pagefile.integrations.claude_agent import ClaudeMemory

    hooks = ClaudeMemory(memory, user_id="ada").hooks()
    given = {"session_id": "s", "prompt": text, "last_assistant_message": "ok"}
    for event in ("UserPromptSubmit", "Stop"):
        (hook,) = hooks[event][0].hooks
        await hook({**given, "hook_event_name": event}, None, {})
    return "ok"


@finding("frameworks-F18")
@pytest.mark.parametrize(
    "ask", [ask_langchain, ask_graph, ask_pydantic_ai, pytest.param(ask_claude, marks=heavy("claude"))]
)
async def test_a_deleted_database_is_noticed(memory, meter, database, caplog, ask):
    """When the database's files are gone, the run is answered, a warning is logged and the loss is counted."""
    assert "ok" == await ask(memory, "before")
    assert "pagefile_degraded_total" not in meter.counted
    deleted(database)
    with caplog.at_level(logging.WARNING, logger="pagefile"):
        assert "ok" == await ask(memory, "after")
    assert "pagefile_degraded_total" in meter.counted
    assert [record for record in caplog.records if record.name.startswith("pagefile")]
