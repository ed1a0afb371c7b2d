"""`pagefile bench agents`, with a reader in place of the model: it calls what is asked for, and answers what its prompt says."""

import json

import pytest

from benchmarks.agents import run as agents
from benchmarks.agents.loops import AGENTS
from benchmarks.agents.world import World, is_right, tasks
from tests.gateway.upstream import Said, Upstream

SOME = ("refunds", "交接")


def reader(body):
    """Calls the tool of a request once, and answers a question only if the prompt has the answer."""
    *_, place = (n for n, one in enumerate(body["messages"]) if one["role"] == "user")
    said, answered = body["messages"][place]["content"], body["messages"][place + 1 :]
    for task in tasks():
        for ask in task.asks:
            if said.endswith(ask["say"]) and not answered:
                tool = next(one for one in task.tools if one.name == ask["tool"])
                return Said(calls=((tool.name, {tool.argument: ask["key"]}),))
        for question in task.questions:
            if said.endswith(question["text"]):
                prompt = json.dumps(body["messages"], ensure_ascii=False)
                known = next((one for one in question["accept"] if one in prompt), None)
                return Said(known or "I do not know.")
    return Said("Done.")


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Runs some tasks with the reader; returns the runs by agent."""
    monkeypatch.setattr(agents, "tasks", lambda: [one for one in tasks() if one.name in SOME])
    path = tmp_path / "runs.jsonl"
    with Upstream(reader) as upstream:
        for _ in range(2):
            agents.measure(f"{upstream.url}/v1", "stub", agents=(), most=4, tell=str, path=path)
    return agents.read(path)


@pytest.mark.slow
def test_each_agent_runs_each_task_once_and_the_next_run_goes_on(measured):
    """Every request calls one tool; what was fetched early is out of a trimmed window, and in Pagefile's."""
    assert 6 == len({(one.task, one.agent) for one in measured}) == len(measured)
    length = {one.name: len(one.asks) for one in tasks()}
    assert [length[one.task] for one in measured] == [one.calls for one in measured]
    assert {0} == {one.repeated for one in measured}
    right = {who: sum(one.right for one in measured if one.agent == who) for who in AGENTS}
    assert 0 == right["trimming"]
    assert 4 == right["Pagefile"]
    [*_, row] = agents.report(measured).rows
    assert ("tasks done, Pagefile", 2) == (row.name, row.value)


@pytest.mark.slow
def test_a_script_makes_the_calls_and_the_model_answers_without_tools(tmp_path, monkeypatch):
    """A model that cannot call is asked nothing but the questions."""
    monkeypatch.setattr(agents, "tasks", lambda: [one for one in tasks() if one.name in SOME])
    path = tmp_path / "runs.jsonl"
    with Upstream(reader) as upstream:
        agents.measure(f"{upstream.url}/v1", "stub", agents=(), most=6, tell=print, scripted=True, path=path)
        bodies = [body for _, _, body in upstream.requests]
    runs = agents.read(path)
    assert {"stub, calls scripted"} == {one.model for one in runs}
    assert [9] * 3 + [8] * 3 == [one.calls for one in runs]
    assert [0, 2] * 2 == [one.right for one in runs if one.agent != "LangChain"]
    assert [2] * 4 == [one.requests for one in runs if one.agent != "LangChain"]
    # LangChain asks the model for its summaries as well.
    assert all(one.requests > 2 for one in runs if one.agent == "LangChain")
    assert not any("tools" in body for body in bodies)


def test_a_result_is_given_once_and_holds_what_is_sought():
    task = tasks()[0]
    world, ask = World(task), task.asks[0]
    assert ask["found"] in world.call(ask["tool"], {"order_id": f"#{ask['key']}"})
    assert ask["found"] not in world.call(ask["tool"], {"order_id": ask["key"]})
    assert "Nothing found" in world.call(ask["tool"], {"order_id": "1"})
    assert (3, 1) == (world.calls, world.repeated)


def test_every_question_is_answered_by_an_early_result_alone():
    for task in tasks():
        assert 8 <= len(task.asks)
        for question in task.questions:
            places = [place for place, ask in enumerate(task.asks) if is_right(question, ask["found"])]
            assert len(places) == 1
            assert places[0] < 2, (task.name, question["text"])
            assert not any(is_right(question, ask["say"]) for ask in task.asks)
