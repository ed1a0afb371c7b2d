"""Runs of Agno beyond the contract: teams, pictures, faults, runs at once, runs that are given up."""

import asyncio

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.media import Image
from agno.team import Team
from agno.tools import tool

from pagefile.integrations.agno import PagefileMemory
from pagefile.testing.contracts.adapters import Break, Player, Say

from .agno_model import Scripted
from .attacked import DOT, bill, broken, call, done, known, logged


@pytest.fixture
def remembered(memory):
    return PagefileMemory(memory)


@pytest.fixture
def made(remembered):
    """Makes agents with a memory and one database."""
    db = InMemoryDb()

    def make(player, *tools, name="waiter", kind=Agent, **more):
        return kind(
            id=name,
            name=name,
            model=remembered.model(Scripted(player=player)),
            tools=[*tools, *remembered.tools()],
            instructions=f"You are {name}.",
            db=db,
            add_history_to_context=True,
            telemetry=False,
            **more,
        )

    return make


async def ask(agent, given, session="c1", **more):
    return await agent.arun(given, user_id="ada", session_id=session, **more)


@pytest.mark.parametrize("prompt", ["List the nuts.", "Which nuts?"])
async def test_a_member_of_a_team_is_asked_by_a_model(memory, made, prompt):
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = made(inner, bill, name="helper")
    outer = Player(
        [call("delegate_task_to_member", member_id="helper", task=prompt), Say("Hazelnuts and walnuts.")]
    )
    await ask(made(outer, kind=Team, members=[helper]), "Which nuts?")
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    assert [("Which nuts?", "Hazelnuts and walnuts.")] == done(await logged(memory))
    (turn,) = await logged(memory)
    assert ["delegate_task_to_member"] == [step.tool for step in turn.steps]


async def test_a_run_that_is_given_up_while_it_waits_takes_no_memory_from_the_next(memory, made):
    waiting = made(Player([call("bill", month="May")]), tool(requires_confirmation=True)(bill))
    assert (await ask(waiting, "What do I owe?")).is_paused
    player = Player([call("broken", month="May"), Say("Nothing.")])
    await ask(made(player, broken), "Do I owe hazelnuts?")
    assert [1, 1] == known(player)
    assert [("Do I owe hazelnuts?", "Nothing.")] == done(await logged(memory))


async def test_a_run_that_broke_off_does_not_spoil_the_next(memory, made):
    await ask(made(Player([call("bill", month="May"), Break()]), bill), "What do I owe?")
    player = Player([Say("Hello.")])
    await ask(made(player), "Good morning, hazelnut.")
    assert [1] == known(player)
    assert ["Hello."] == [answer for _, answer in done(await logged(memory))]


async def test_a_picture_is_named_in_the_log(memory, made):
    await ask(
        made(Player([Say("A dot.")])), "What is this?", images=[Image(content=DOT, mime_type="image/png")]
    )
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    assert "A dot." == turn.assistant


async def test_a_tool_that_breaks_is_a_step(memory, made):
    await ask(
        made(Player([call("broken", month="May"), Say("I could not find it.")]), broken), "What do I owe?"
    )
    (turn,) = await logged(memory)
    assert "I could not find it." == turn.assistant
    assert ["broken"] == [step.tool for step in turn.steps]


async def test_runs_at_once_do_not_mix(memory, made):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(5)]
    await asyncio.gather(
        *(ask(made(one, bill), f"Hazelnuts {number}?", f"s{number}") for number, one in enumerate(players))
    )
    for number, player in enumerate(players):
        assert [1, 1] == known(player)
        assert [(f"Hazelnuts {number}?", f"Answer {number}.")] == done(await logged(memory, f"s{number}"))


async def test_runs_of_one_session_at_once_lose_no_answer(memory, made):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(3)]
    await asyncio.gather(
        *(ask(made(one, bill), f"Hazelnuts {number}?") for number, one in enumerate(players))
    )
    assert [[1, 1]] * 3 == [known(player) for player in players]
    answers = {answer for _, answer in done(await logged(memory))}
    assert {f"Answer {number}." for number in range(3)} == answers


def test_an_agent_without_an_event_loop_has_memory_too(blocking):
    remembered = PagefileMemory(blocking)
    player = Player([call("bill", month="May"), Say("40 euros.")])
    agent = Agent(
        model=remembered.model(Scripted(player=player)), tools=[bill, *remembered.tools()], telemetry=False
    )
    agent.run("Hazelnuts?", user_id="ada", session_id="c1")
    assert [1, 1] == known(player)
    assert [("Hazelnuts?", "40 euros.")] == done(blocking.conversation("c1", user_id="ada").turns())
