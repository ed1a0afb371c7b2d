"""Runs of Strands beyond the contract: agents as tools, swarms, pictures, faults, histories."""

import asyncio

import pytest
from strands import Agent, tool
from strands.multiagent import Swarm

from pagefile.integrations.strands import PagefilePlugin
from pagefile.testing.contracts.adapters import Break, Player, Say

from .attacked import DOT, bill, broken, call, done, known, logged
from .strands_model import Scripted


@pytest.fixture
def made(memory):
    """Makes agents with a memory."""

    def make(player, *tools, name="waiter", conversation="c1", **more):
        return Agent(
            Scripted(player),
            name=name,
            tools=[one if hasattr(one, "tool_name") else tool(one) for one in tools],
            system_prompt=f"You are {name}.",
            callback_handler=None,
            retry_strategy=None,
            plugins=[PagefilePlugin(memory, conversation, user_id="ada")],
            **more,
        )

    return make


@pytest.mark.parametrize("prompt", ["List the nuts.", "Which nuts?"])
async def test_an_agent_that_is_a_tool_is_asked_by_a_model(memory, made, prompt):
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = made(inner, bill, name="helper", conversation="helper").as_tool(description="Helps.")
    outer = Player([call("helper", input=prompt), Say("Hazelnuts and walnuts.")])
    await made(outer, helper).invoke_async("Which nuts?")
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    (turn,) = await logged(memory)
    assert ("Which nuts?", "Hazelnuts and walnuts.") == (turn.user, turn.assistant)
    assert ["helper"] == [step.tool for step in turn.steps]
    assert ["c1"] == [head.scope.conversation for head in await memory.conversations(user_id="ada")]


async def test_a_picture_is_named_in_the_log(memory, made):
    player = Player([Say("A dot.")])
    agent = made(player)
    agent.model.player = player
    agent.model.stream = told(agent.model, player)
    await agent.invoke_async(
        [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": DOT}}}]
    )
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    assert "A dot." == turn.assistant


def told(model, player):
    """The scripted model for messages that are no JSON: it says what it was sent as Python does."""

    async def stream(messages, tool_specs=None, system_prompt=None, **more):
        step = player.next(f"{system_prompt}\n{messages}")
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": step.text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    return stream


async def test_a_tool_that_breaks_is_a_step(memory, made):
    player = Player([call("broken", month="May"), Say("I could not find it.")])
    await made(player, broken).invoke_async("What do I owe?")
    (turn,) = await logged(memory)
    assert "I could not find it." == turn.assistant
    assert [("broken", True)] == [(step.tool, "no bill of May" in step.result) for step in turn.steps]


async def test_a_run_that_broke_off_does_not_spoil_the_next(memory, made):
    agent = made(Player([call("bill", month="May"), Break()]), bill)
    with pytest.raises(Exception, match=r""):
        await agent.invoke_async("What do I owe?")
    player = Player([Say("Hello.")])
    again = made(player, messages=list(agent.messages))
    await again.invoke_async("Good morning, hazelnut.")
    assert [1] == known(player)
    assert "Hello." in [answer for _, answer in done(await logged(memory))]


async def test_an_agent_that_begins_anew_sees_the_log(memory, made):
    await made(Player([Say("A fine name.")])).invoke_async("My cat is called Momo.")
    player = Player([Say("Momo.")])
    await made(player).invoke_async("What is my cat called?")
    assert "My cat is called Momo." in player.requests[0]
    assert 2 == len(done(await logged(memory)))


async def test_agents_at_once_do_not_mix(memory, made):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(5)]
    agents = [made(one, bill, conversation=f"s{number}") for number, one in enumerate(players)]
    await asyncio.gather(*(one.invoke_async(f"Hazelnuts {number}?") for number, one in enumerate(agents)))
    for number, player in enumerate(players):
        assert [1, 1] == known(player)
        assert [(f"Hazelnuts {number}?", f"Answer {number}.")] == done(await logged(memory, f"s{number}"))


async def test_an_agent_of_a_swarm_is_asked_what_the_user_said(memory, made):
    """An agent to which another one hands the task is told of it in words that are not the user's."""
    first = Player(
        [call("handoff_to_agent", agent_name="cashier", message="Please bill."), Say("Handed over.")]
    )
    second = Player([Say("40 euros.")])
    waiter, cashier = made(first), made(second, name="cashier", conversation="c2")
    await Swarm([waiter, cashier]).invoke_async("What do I owe for hazelnuts?")
    assert all(known(first))
    assert [1] == known(second)
    assert [("What do I owe for hazelnuts?", "40 euros.")] == done(await logged(memory, "c2"))
    assert ["What do I owe for hazelnuts?"] == [asked for asked, _ in done(await logged(memory))]
