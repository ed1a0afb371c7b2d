"""Runs of LlamaIndex beyond the contract: workflows of several agents, pictures, faults, resets, runs at once."""

import asyncio
import json

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.workflow import Context

from pagefile.errors import SettingsError
from pagefile.integrations.llama_index import PagefileChatMemory
from pagefile.testing.contracts.adapters import Player, Say

from .attacked import DOT, bill, broken, call, done, known, logged
from .llama_index_model import Scripted


@pytest.fixture
def chat(memory):
    return PagefileChatMemory.of(memory, "c1", user_id="ada")


def agent(player, *tools, name="waiter", **more):
    return FunctionAgent(
        name=name, description=name, llm=Scripted(player=player), tools=[*tools],
        system_prompt=f"You are {name}.", **more,
    )  # fmt: skip


async def test_a_handoff_stays_in_its_turn_and_both_agents_have_memory(memory, chat):
    first = Player([call("handoff", to_agent="cashier", reason="bills")])
    second = Player([call("bill", month="May"), Say("40 euros.")])
    waiter = agent(first, *chat.tools(), can_handoff_to=["cashier"])
    cashier = agent(second, bill, *chat.tools(), name="cashier")
    flow = AgentWorkflow(agents=[waiter, cashier], root_agent="waiter")
    await flow.run("What do I owe for hazelnuts?", memory=chat)
    assert [[1], [1, 1]] == [known(first), known(second)]
    assert [("What do I owe for hazelnuts?", "40 euros.")] == done(await logged(memory))
    (turn,) = await logged(memory)
    assert ["handoff", "bill"] == [step.tool for step in turn.steps]


async def test_an_agent_that_is_a_tool_is_asked_by_a_model(memory, chat):
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])

    async def helper(task: str) -> str:
        """Helps with a task."""
        return str(await agent(inner, bill, name="helper").run(task))

    outer = Player([call("helper", task="Which nuts?"), Say("Hazelnuts and walnuts.")])
    await agent(outer, helper, *chat.tools()).run("Which nuts?", memory=chat)
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    assert [("Which nuts?", "Hazelnuts and walnuts.")] == done(await logged(memory))


async def test_a_picture_is_named_in_the_log_and_comes_back(memory, chat):
    blocks = [TextBlock(text="What is this?"), ImageBlock(image=DOT, image_mimetype="image/png")]
    await agent(Player([Say("A dot.")])).run(user_msg=ChatMessage(role="user", blocks=blocks), memory=chat)
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    (first, _) = await chat.aget_all()
    assert DOT == first.blocks[1].resolve_image().read()


async def test_a_tool_that_breaks_is_a_step(memory, chat):
    player = Player([call("broken", month="May"), Say("I could not find it.")])
    await agent(player, broken).run("What do I owe?", memory=chat)
    (turn,) = await logged(memory)
    assert "I could not find it." == turn.assistant
    assert [("broken", True)] == [(step.tool, "no bill of May" in step.result) for step in turn.steps]


async def test_a_history_that_was_emptied_stays_empty(memory, chat):
    await agent(Player([Say("Tea.")])).run("What shall I drink?", memory=chat)
    await chat.areset()
    player = Player([Say("Coffee.")])
    await agent(player).run("What shall I drink?", memory=chat)
    assert "Tea." not in player.requests[0]
    assert ["Tea.", "Coffee."] == [answer for _, answer in done(await logged(memory))]


async def test_conversations_at_once_do_not_mix(memory):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(5)]
    chats = [PagefileChatMemory.of(memory, f"s{number}", user_id="ada") for number in range(5)]
    await asyncio.gather(
        *(
            agent(player, bill, *chat.tools()).run(f"Hazelnuts {number}?", memory=chat)
            for number, (player, chat) in enumerate(zip(players, chats, strict=True))
        )
    )
    for number, player in enumerate(players):
        assert [1, 1] == known(player)
        assert [(f"Hazelnuts {number}?", f"Answer {number}.")] == done(await logged(memory, f"s{number}"))


async def test_a_context_that_was_saved_is_given_its_memory_again(memory, chat):
    """A context holds the memory of its run; what comes back from JSON has no database, and says so."""
    player = Player([Say("Hello."), Say("Good night.")])
    waiter = agent(player)
    context = Context(waiter)
    await waiter.run("Good morning.", memory=chat, ctx=context)
    saved = context.to_dict()
    assert "allergic" not in json.dumps(saved)
    other = FunctionAgent(
        name="waiter", description="waiter", llm=Scripted(player=player), system_prompt="Hi."
    )
    await other.run("Good evening.", memory=chat, ctx=Context.from_dict(other, saved))
    assert "Good morning." in player.requests[-1]
    assert ["Hello.", "Good night."] == [answer for _, answer in done(await logged(memory))]
    saved = json.loads(json.dumps(saved).replace('"c1', '"c9').replace("c1", "c9"))
    with pytest.raises(SettingsError, match="before the run goes on"):
        await other.run("And now?", ctx=Context.from_dict(other, saved))
