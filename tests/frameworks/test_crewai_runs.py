"""Runs of CrewAI beyond the contract: crews, coworkers, faults, structures, agents without function calling."""

import pytest
from crewai import Agent, Crew, Task
from crewai.tools import tool
from pydantic import BaseModel

from pagefile.integrations.crewai import PagefileMemory
from pagefile.testing.contracts.adapters import Break, Give, Player, Say

from .attacked import bill, broken, call, done, known
from .crewai_model import Scripted


class Trip(BaseModel):
    city: str
    days: int


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))


@pytest.fixture
def remembered(blocking):
    return PagefileMemory(blocking, "c1", user_id="ada")


@pytest.fixture
def logged(blocking):
    return lambda conversation="c1": [*blocking.conversation(conversation, user_id="ada").turns()]


@pytest.fixture
def made(remembered):
    """Makes agents with a memory."""

    def make(player, *tools, role="waiter", **more):
        return Agent(
            role=role,
            goal="help",
            backstory="You help.",
            llm=remembered.llm(Scripted.of(player)),
            tools=[*(tool(one.__name__)(one) for one in tools), *remembered.tools()],
            max_retry_limit=0,
            **more,
        )

    return make


def crew(agents, *tasks):
    return Crew(agents=agents, tasks=[*tasks], verbose=False).kickoff()


def test_a_task_is_what_was_asked(made, logged):
    player = Player([call("bill", month="May"), Say("40 euros.")])
    waiter = made(player, bill)
    crew([waiter], Task(description="What do I owe for hazelnuts?", expected_output="A sum.", agent=waiter))
    assert [1, 1] == known(player)
    assert [("What do I owe for hazelnuts?", "40 euros.")] == done(logged())


def test_each_task_of_a_crew_is_a_turn(made, logged):
    first, second = Player([Say("Hazelnut soup.")]), Player([Say("9 euros.")])
    cook, waiter = made(first, role="cook"), made(second)
    crew(
        [cook, waiter],
        Task(description="Name a dish with hazelnuts.", expected_output="A dish.", agent=cook),
        Task(description="What does it cost, hazelnuts and all?", expected_output="A sum.", agent=waiter),
    )
    assert [[1], [1]] == [known(first), known(second)]
    assert [
        ("Name a dish with hazelnuts.", "Hazelnut soup."),
        ("What does it cost, hazelnuts and all?", "9 euros."),
    ] == done(logged())


def test_a_coworker_is_asked_by_a_model(made, logged):
    inner = Player([call("bill", month="May"), Say("40 euros.")])
    cashier = made(inner, bill, role="cashier")
    outer = Player(
        [
            call(
                "ask_question_to_coworker",
                question="What is the bill?",
                context="Hazelnuts.",
                coworker="cashier",
            ),
            Say("You owe 40 euros."),
        ]
    )
    waiter = made(outer, allow_delegation=True)
    crew(
        [waiter, cashier],
        Task(description="What do I owe for hazelnuts?", expected_output="A sum.", agent=waiter),
    )
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    assert [("What do I owe for hazelnuts?", "You owe 40 euros.")] == done(logged())


def test_a_tool_that_breaks_is_a_step(made, logged):
    made(Player([call("broken", month="May"), Say("I could not find it.")]), broken).kickoff("What do I owe?")
    (turn,) = logged()
    assert "I could not find it." == turn.assistant
    assert ["broken"] == [step.tool for step in turn.steps]


def test_a_run_that_broke_off_does_not_spoil_the_next(made, logged):
    with pytest.raises(Exception, match=r""):
        made(Player([call("bill", month="May"), Break()]), bill).kickoff("What do I owe?")
    player = Player([Say("Hello.")])
    made(player).kickoff("Good morning, hazelnut.")
    assert [1] == known(player)
    assert ["Hello."] == [answer for _, answer in done(logged())]


def test_a_structure_is_the_answer(made, logged):
    made(Player([Give({"city": "Kyoto", "days": 3})])).kickoff("Where to?", response_format=Trip)
    ((_, answer),) = done(logged())
    assert "Kyoto" in answer
