"""Checkpoints in a Pagefile database, as people use them."""

from typing import TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pagefile import BlockingMemory, Memory, Scope
from pagefile.integrations.langgraph_checkpoints import PagefileSaver


class State(TypedDict):
    said: list[str]


def ask(state):
    return {"said": [*state["said"], interrupt("sure?")]}


def end(state):
    return {"said": [*state["said"], "end"]}


def run_of(thread, user="ada"):
    return {"configurable": {"thread_id": thread, "user_id": user}}


def graph(memory, **options):
    built = StateGraph(State)
    built.add_node("ask", ask)
    built.add_node("end", end)
    built.add_edge(START, "ask")
    built.add_edge("ask", "end")
    built.add_edge("end", END)
    return built.compile(checkpointer=PagefileSaver(memory, **options))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/m.db"


def test_an_interrupted_run_goes_on_in_another_process(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        assert "__interrupt__" in graph(memory).invoke({"said": ["hi"]}, run_of("t"))
    with BlockingMemory.open(url, embedder="none") as memory:
        again = graph(memory)
        assert ("ask",) == again.get_state(run_of("t")).next
        assert {"said": ["hi", "yes", "end"]} == again.invoke(Command(resume="yes"), run_of("t"))


async def test_the_past_of_a_thread_can_be_forked(url):
    async with Memory.open(url, embedder="none") as memory:
        made = graph(memory)
        await made.ainvoke({"said": ["hi"]}, run_of("t"))
        await made.ainvoke(Command(resume="yes"), run_of("t"))
        history = [state async for state in made.aget_state_history(run_of("t"))]
        assert [(), ("end",), ("ask",), ("__start__",)] == [state.next for state in history]
        forked = await made.aupdate_state(history[1].config, {"said": ["hi", "no"]})
        assert {"said": ["hi", "no", "end"]} == await made.ainvoke(None, forked)


def test_users_never_share_a_thread(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        made = graph(memory)
        made.invoke({"said": ["hers"]}, run_of("t", "ada"))
        assert () == made.get_state(run_of("t", "bob")).next
        made.invoke({"said": ["his"]}, run_of("t", "bob"))
        assert {"said": ["hers"]} == made.get_state(run_of("t", "ada")).values


def test_an_erasure_takes_a_users_threads(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        made = graph(memory)
        for user in ("ada", "bob"):
            made.invoke({"said": [user]}, run_of("t", user))
        memory.forget(user_id="ada")
        assert {} == made.get_state(run_of("t", "ada")).values
        assert {"said": ["bob"]} == made.get_state(run_of("t", "bob")).values


def test_checkpoints_survive_an_export(url, tmp_path):
    with BlockingMemory.open(url, embedder="none") as memory:
        graph(memory).invoke({"said": ["hi"]}, run_of("t"))
        memory.export(tmp_path / "all.jsonl")
    with BlockingMemory.open(f"sqlite:///{tmp_path}/new.db", embedder="none") as memory:
        memory.import_(tmp_path / "all.jsonl")
        assert {"said": ["hi", "yes", "end"]} == graph(memory).invoke(Command(resume="yes"), run_of("t"))


def test_a_deleted_thread_is_gone(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        made = graph(memory)
        for thread in ("t", "u"):
            made.invoke({"said": [thread]}, run_of(thread))
        made.checkpointer.delete_thread("t")
        assert {} == made.get_state(run_of("t")).values
        assert {"said": ["u"]} == made.get_state(run_of("u")).values
        items = memory.loop.wait(lambda: _namespaces(memory.inner, "ada"))
        assert [] == [name for name in items if "=t" in name]


async def _namespaces(memory, user):
    engine = memory.engine
    return await engine.store.items.namespaces(Scope("default", user), (), now=engine.clock.now())
