"""Runs of Microsoft's Agent Framework beyond the contract: agents as tools, pictures, faults, runs at once, histories."""

import asyncio
from types import FunctionType

import pytest
from agent_framework import Agent, Content, Message, tool

from pagefile.integrations.agent_framework import PagefileHistory, PagefileProvider
from pagefile.testing.contracts.adapters import Break, ModelBrokeError, Player, Say

from .agent_framework_model import Scripted
from .attacked import DOT, bill, broken, call, done, known, logged


@pytest.fixture
def made(memory):
    """Makes agents with a history and a memory."""
    providers = [PagefileHistory(memory, user_id="ada"), PagefileProvider(memory, user_id="ada")]

    def make(player, *tools, name="waiter", **more):
        return Agent(
            Scripted(player),
            f"You are {name}.",
            name=name,
            tools=[
                tool(one, approval_mode="never_require") if isinstance(one, FunctionType) else one
                for one in tools
            ],
            context_providers=providers,
            **more,
        )

    return make


async def ask(agent, given, session="c1"):
    return (await agent.run(given, session=agent.create_session(session_id=session))).text


@pytest.mark.parametrize("prompt", ["List the nuts.", "Which nuts?"])
@pytest.mark.parametrize("shared", [False, True])
async def test_an_agent_that_is_a_tool_is_asked_by_a_model(memory, made, prompt, shared):
    """Whether it has a session of its own or that of the agent that calls it."""
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = made(inner, bill, name="helper").as_tool(propagate_session=shared)
    outer = Player([call("helper", task=prompt), Say("Hazelnuts and walnuts.")])
    await ask(made(outer, helper), "Which nuts?")
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    (turn,) = await logged(memory)
    assert ("Which nuts?", "Hazelnuts and walnuts.") == (turn.user, turn.assistant)
    assert ["helper"] == [step.tool for step in turn.steps]


async def test_a_picture_is_named_in_the_log_and_comes_back(memory, made):
    given = Message("user", [Content.from_text("What is this?"), Content.from_data(DOT, "image/png")])
    player = Player([Say("A dot.")])
    await ask(made(player), given)
    assert "image/png" in player.requests[0]
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    second = Player([Say("Black.")])
    await ask(made(second), "Which colour?")
    assert "image/png" in second.requests[0]
    assert ["A dot.", "Black."] == [answer for _, answer in done(await logged(memory))]


async def test_a_tool_that_breaks_is_a_step(memory, made):
    player = Player([call("broken", month="May"), Say("I could not find it.")])
    await ask(made(player, broken), "What do I owe?")
    (turn,) = await logged(memory)
    assert "I could not find it." == turn.assistant
    assert ["broken"] == [step.tool for step in turn.steps]
    assert "rror" in turn.steps[0].result


async def test_a_run_that_broke_off_does_not_spoil_the_next(memory, made):
    with pytest.raises(Exception) as raised:
        await ask(made(Player([call("bill", month="May"), Break()]), bill), "What do I owe?")
    assert "ModelBrokeError" in repr(raised.value) or isinstance(raised.value.__cause__, ModelBrokeError)
    player = Player([Say("Hello.")])
    await ask(made(player), "Good morning, hazelnut.")
    assert [1] == known(player)
    assert ["Hello."] == [answer for _, answer in done(await logged(memory))]


async def test_runs_at_once_do_not_mix(memory, made):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(5)]
    asked = (ask(made(one, bill), f"Hazelnuts {number}?", f"s{number}") for number, one in enumerate(players))
    await asyncio.gather(*asked)
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


async def test_the_user_is_found_in_the_session(memory):
    provider = PagefileProvider(memory, user_id=lambda session: session.state["user"])
    player = Player([Say("Hazelnuts.")])
    agent = Agent(Scripted(player), "You are a waiter.", context_providers=[provider])
    session = agent.create_session(session_id="c1")
    session.state["user"] = "ada"
    await agent.run("Which nuts? Hazelnuts?", session=session)
    assert [1] == known(player)
    assert ["Hazelnuts."] == [answer for _, answer in done(await logged(memory))]


async def test_a_session_whose_user_is_not_known_runs_without_memory(memory):
    provider = PagefileProvider(memory, user_id=lambda session: session.state["user"])
    player = Player([Say("I do not know.")])
    agent = Agent(Scripted(player), "You are a waiter.", context_providers=[provider])
    response = await agent.run("Which nuts? Hazelnuts?", session=agent.create_session(session_id="c1"))
    assert "I do not know." == response.text
    assert [0] == known(player)


async def test_a_stream_that_is_left_is_no_answer(memory, made):
    agent = made(Player([Say("One two three four.")]))
    stream = agent.run("Count.", session=agent.create_session(session_id="c1"), stream=True)
    async for _ in stream:
        break
    await ask(made(Player([Say("Hello.")])), "Good morning.")
    assert ["Hello."] == [answer for _, answer in done(await logged(memory))]
