"""Runs of Google's ADK beyond the contract: transfers, agents as tools, workflows, rewinds, states, pictures, faults."""

import asyncio

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.runners import Runner
from google.adk.tools import AgentTool, FunctionTool
from google.genai import types

from pagefile.integrations.adk import PagefilePlugin, PagefileSessionService
from pagefile.testing.contracts.adapters import Player, Say

from .adk_model import APP, Scripted
from .attacked import DOT, bill, broken, call, done, known, logged, without_recalled


class Desk:
    """A runner over our session service and our plug-in."""

    def __init__(self, memory):
        self.memory, self.sessions = memory, PagefileSessionService(memory)
        self.plugin = PagefilePlugin(memory)

    def runner(self, agent):
        return Runner(app_name=APP, agent=agent, session_service=self.sessions, plugins=[self.plugin])

    async def ask(self, agent, *parts, session="c1"):
        if await self.session(session) is None:
            await self.sessions.create_session(app_name=APP, user_id="ada", session_id=session)
        given = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
        content = types.Content(role="user", parts=given)
        run = self.runner(agent).run_async(user_id="ada", session_id=session, new_message=content)
        return [event.invocation_id async for event in run][-1]

    async def session(self, name="c1"):
        return await self.sessions.get_session(app_name=APP, user_id="ada", session_id=name)


@pytest.fixture
def desk(memory):
    return Desk(memory)


def agent(name, player, **more):
    model = Scripted(model="scripted", player=player)
    return LlmAgent(name=name, model=model, instruction=f"You are {name}.", description=name, **more)


async def test_a_transfer_stays_in_its_turn_and_both_agents_have_memory(desk):
    waiter = Player([call("transfer_to_agent", agent_name="cashier")])
    cashier = Player([call("bill", month="May"), Say("40 euros.")])
    team = agent("waiter", waiter, sub_agents=[agent("cashier", cashier, tools=[FunctionTool(bill)])])
    await desk.ask(team, "What do I owe for hazelnuts?")
    assert [[1], [1, 1]] == [known(waiter), known(cashier)]
    (turn,) = await logged(desk.memory)
    assert ("What do I owe for hazelnuts?", "40 euros.", "done") == (turn.user, turn.assistant, turn.status)
    assert "bill" in [step.tool for step in turn.steps]


async def test_the_next_question_goes_to_the_agent_that_was_transferred_to(desk):
    waiter = Player([call("transfer_to_agent", agent_name="cashier")])
    cashier = Player([Say("40 euros."), Say("In cash.")])
    team = agent("waiter", waiter, sub_agents=[agent("cashier", cashier)])
    await desk.ask(team, "What do I owe?")
    await desk.ask(team, "How do I pay?")
    assert [("What do I owe?", "40 euros."), ("How do I pay?", "In cash.")] == done(await logged(desk.memory))
    assert 1 == cashier.requests[1].count("How do I pay?")


@pytest.mark.parametrize("prompt", ["List the nuts.", "Which nuts?"])
async def test_an_agent_that_is_a_tool_is_asked_by_a_model(desk, prompt):
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = AgentTool(agent("helper", inner, tools=[FunctionTool(bill)]))
    outer = Player([call("helper", request=prompt), Say("Hazelnuts and walnuts.")])
    await desk.ask(agent("waiter", outer, tools=[helper]), "Which nuts?")
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    (turn,) = await logged(desk.memory)
    assert ("Which nuts?", "Hazelnuts and walnuts.") == (turn.user, turn.assistant)
    assert ["helper"] == [step.tool for step in turn.steps]
    heads = await desk.memory.conversations(user_id="ada", tenant=APP)
    assert ["c1"] == [head.scope.conversation for head in heads]


async def test_agents_one_after_the_other_are_one_turn(desk):
    first, second = Player([Say("A draft about hazelnuts.")]), Player([Say("The text about hazelnuts.")])
    team = SequentialAgent(name="team", sub_agents=[agent("writer", first), agent("editor", second)])
    await desk.ask(team, "Write about hazelnuts.")
    turns = await logged(desk.memory)
    assert [("Write about hazelnuts.", "The text about hazelnuts.")] == done(turns)
    assert 1 == len(turns)
    assert [[1], [1]] == [known(first), known(second)]


async def test_agents_side_by_side_are_one_turn(desk):
    players = [Player([call("bill", month="May"), Say(f"Part {number}.")]) for number in range(3)]
    team = ParallelAgent(
        name="team",
        sub_agents=[
            agent(f"part{number}", one, tools=[FunctionTool(bill)]) for number, one in enumerate(players)
        ],
    )
    await desk.ask(team, "Write about hazelnuts.")
    assert [[1, 1]] * 3 == [known(player) for player in players]
    ((asked, answer),) = done(await logged(desk.memory))
    assert "Write about hazelnuts." == asked
    assert answer in {"Part 0.", "Part 1.", "Part 2."}


async def test_a_rewound_session_goes_on_from_there(desk):
    await desk.ask(agent("waiter", Player([Say("A fine name.")])), "My cat is called Momo.")
    second = await desk.ask(agent("waiter", Player([Say("Tea, then.")])), "I like tea.")
    runner = desk.runner(agent("waiter", Player([])))
    await runner.rewind_async(user_id="ada", session_id="c1", rewind_before_invocation_id=second)
    player = Player([Say("Coffee, then.")])
    await desk.ask(agent("waiter", player), "I like coffee.")
    # What was taken back is no part of the history. It is in the log, and may be recalled as something that was said.
    assert "My cat is called Momo." in without_recalled(player.requests[0])
    assert "Tea, then." not in without_recalled(player.requests[0])
    last = Player([Say("Gladly.")])
    await desk.ask(agent("waiter", last), "Some more, please.")
    assert "Coffee, then." in last.requests[0]
    assert "Tea, then." not in without_recalled(last.requests[0])


async def test_a_users_own_context_is_the_users(desk):
    await desk.ask(agent("waiter", Player([Say("Noted.")])), "For context: I live in Bern.", "Remember it.")
    (turn,) = await logged(desk.memory)
    assert "For context: I live in Bern.\nRemember it." == turn.user


async def test_states_are_kept_and_filled_in(desk):
    player = Player([Say("Kyoto")])
    await desk.ask(agent("waiter", player, output_key="city"), "Where to?")
    assert "Kyoto" == (await desk.session()).state["city"]
    second = Player([Say("By train.")])
    guide = LlmAgent(
        name="guide", model=Scripted(model="scripted", player=second), instruction="The city is {city}."
    )
    await desk.ask(guide, "How do I get there?")
    assert "The city is Kyoto." in second.requests[0]


async def test_a_picture_is_named_in_the_log(desk):
    player = Player([Say("A dot.")])
    blob = types.Part(inline_data=types.Blob(mime_type="image/png", data=DOT))
    await desk.ask(agent("waiter", player), "What is this?", blob)
    assert "image/png" in player.requests[0]
    (turn,) = await logged(desk.memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    assert "A dot." == turn.assistant


async def test_a_picture_without_words_is_a_turn(desk):
    await desk.ask(
        agent("waiter", Player([Say("A dot.")])),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=DOT)),
    )
    (turn,) = await logged(desk.memory)
    assert "[image" in turn.user


async def test_after_a_tool_that_breaks_the_session_goes_on(desk):
    waiter = agent("waiter", Player([call("broken", month="May")]), tools=[FunctionTool(broken)])
    with pytest.raises(OSError, match="no bill"):
        await desk.ask(waiter, "What do I owe?")
    player = Player([Say("Good morning.")])
    await desk.ask(agent("waiter", player), "Which hazelnuts? Good morning.")
    assert [1] == known(player)
    assert ["Good morning."] == [answer for _, answer in done(await logged(desk.memory))]


async def test_sessions_at_once_do_not_mix(desk):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(5)]
    await asyncio.gather(
        *(
            desk.ask(
                agent("waiter", player, tools=[FunctionTool(bill)]),
                f"Hazelnuts {number}?",
                session=f"s{number}",
            )
            for number, player in enumerate(players)
        )
    )
    for number, player in enumerate(players):
        assert [1, 1] == known(player)
        assert [(f"Hazelnuts {number}?", f"Answer {number}.")] == done(
            await logged(desk.memory, f"s{number}")
        )
