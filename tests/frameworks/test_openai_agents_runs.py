"""Runs of the OpenAI Agents SDK beyond the contract: handoffs, agents as tools, rewinds, pictures, faults, runs at once."""

import asyncio
import base64

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    RunConfig,
    Runner,
    function_tool,
    input_guardrail,
)

from pagefile.integrations.openai_agents import PagefileSession
from pagefile.testing.contracts.adapters import Player, Say

from .attacked import DOT, call, logged
from .openai_agents_model import model_of

_URL = f"data:image/png;base64,{base64.b64encode(DOT).decode()}"


@pytest.fixture
def session(memory):
    return PagefileSession(memory, "c1", user_id="ada")


async def ask(session, agent, given, **more):
    config = session.run_config(RunConfig(tracing_disabled=True, **more))
    return await Runner.run(session.equipped(agent), given, session=session, run_config=config)


def agent(name, player, **more):
    return Agent(name, instructions=f"You are {name}.", model=model_of(player), **more)


@function_tool
def bill(month: str) -> str:
    """The bill of a month.

    Args:
        month: its name.
    """
    return f"The bill of {month} is 40 euros for hazelnuts."


@function_tool
def broken(month: str) -> str:
    """Breaks.

    Args:
        month: its name.
    """
    raise OSError(f"no bill of {month}")


@pytest.mark.parametrize("nested", [False, True])
async def test_a_handoff_stays_in_its_turn_and_both_agents_have_memory(memory, session, nested):
    """Even where the SDK sends the second agent no message of the user's, only its own summary."""
    triage = Player([call("transfer_to_billing")])
    billing = Player([call("bill", month="May"), Say("40 euros, hazelnuts again.")])
    desk = agent("triage", triage, handoffs=[agent("billing", billing, tools=[bill])])
    await ask(session, desk, "What do I owe for hazelnuts?", nest_handoff_history=nested)
    assert [1, 1, 1] == [
        request.count("allergic to hazelnuts.") for request in (*triage.requests, *billing.requests)
    ]
    (turn,) = await logged(memory)
    assert ("What do I owe for hazelnuts?", "40 euros, hazelnuts again.", "done") == (
        turn.user,
        turn.assistant,
        turn.status,
    )
    assert "bill" in [step.tool for step in turn.steps]


@pytest.mark.parametrize("prompt", ["List the nuts.", "Which nuts?"])
async def test_an_agent_that_is_a_tool_is_asked_by_a_model(memory, session, prompt):
    """Whatever it is asked, be it the user's words once more."""
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = agent("helper", inner, tools=[bill]).as_tool("ask_helper", "Asks the helper.")
    outer = Player([call("ask_helper", input=prompt), Say("Hazelnuts and walnuts.")])
    await ask(session, agent("waiter", outer, tools=[helper]), "Which nuts?")
    (turn,) = await logged(memory)
    assert ("Which nuts?", "Hazelnuts and walnuts.") == (turn.user, turn.assistant)
    assert ["ask_helper"] == [step.tool for step in turn.steps]
    assert all("allergic to hazelnuts." not in request for request in inner.requests)
    assert all("allergic to hazelnuts." in request for request in outer.requests)


async def test_runs_of_one_session_at_once_have_memory_each(memory, session):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(4)]
    agents = [agent("waiter", player, tools=[bill]) for player in players]
    await asyncio.gather(
        *(ask(session, one, f"Hazelnuts, question {number}?") for number, one in enumerate(agents))
    )
    for player in players:
        assert ["allergic to hazelnuts." in request for request in player.requests] == [True, True]
    turns = await logged(memory)
    assert {f"Answer {number}." for number in range(4)} == {
        turn.assistant for turn in turns if turn.status == "done"
    }


async def test_a_picture_is_named_in_the_log(memory, session):
    content = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": _URL}]
    player = Player([Say("A dot.")])
    await ask(session, agent("waiter", player), [{"role": "user", "content": content}])
    assert "input_image" in player.requests[0]
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    assert "A dot." == turn.assistant


async def test_a_tool_that_breaks_is_a_step(memory, session):
    player = Player([call("broken", month="May"), Say("I could not find it.")])
    await ask(session, agent("waiter", player, tools=[broken]), "What do I owe?")
    (turn,) = await logged(memory)
    assert "I could not find it." == turn.assistant
    assert ["broken"] == [step.tool for step in turn.steps]
    assert "error" in turn.steps[0].result


async def test_an_exchange_that_is_taken_back_is_asked_again(memory, session):
    await ask(session, agent("waiter", Player([Say("Tea.")])), "What shall I drink?")
    while await session.pop_item():
        pass
    second = Player([Say("Coffee.")])
    await ask(session, agent("waiter", second), "What shall I drink?")
    assert "Tea." not in second.requests[0]
    third = Player([Say("You are welcome.")])
    await ask(session, agent("waiter", third), "Thank you.")
    assert "Coffee." in third.requests[0]
    assert "Tea." not in third.requests[0]


async def test_a_question_that_a_guardrail_refuses_has_no_answer(memory, session):
    @input_guardrail(run_in_parallel=False)
    async def never(_context, _agent, _given):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    refused = agent("waiter", Player([Say("Never.")]), input_guardrails=[never])
    with pytest.raises(InputGuardrailTripwireTriggered):
        await ask(session, refused, "Tell me the code.")
    await ask(session, agent("waiter", Player([Say("Hello.")])), "Good morning.")
    done = [turn for turn in await logged(memory) if turn.status == "done"]
    assert ["Hello."] == [turn.assistant for turn in done]


async def test_a_guardrail_beside_the_model_takes_no_memory(memory, session):
    @input_guardrail
    async def allowed(_context, _agent, _given):
        await asyncio.sleep(0)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    player = Player([call("bill", month="May"), Say("40 euros.")])
    guarded = agent("waiter", player, tools=[bill], input_guardrails=[allowed])
    for _ in range(2):
        player.requests.clear()
        await ask(session, guarded, "What do I owe for hazelnuts?")
        assert [True, True] == ["allergic to hazelnuts." in request for request in player.requests]
        guarded = agent("waiter", player, tools=[bill], input_guardrails=[allowed])
    assert ["done", "done"] == [turn.status for turn in await logged(memory)]


async def test_a_run_with_too_many_rounds_is_no_answer(memory, session):
    looping = agent("waiter", Player([call("bill", month="May")] * 3), tools=[bill])
    config = session.run_config(RunConfig(tracing_disabled=True))
    with pytest.raises(MaxTurnsExceeded):
        await Runner.run(looping, "What do I owe?", session=session, run_config=config, max_turns=2)
    assert [] == [turn for turn in await logged(memory) if turn.status == "done"]
    player = Player([Say("40 euros.")])
    await ask(session, agent("waiter", player), "Well?")
    assert "Well?" == (await logged(memory))[-1].user


async def test_a_stream_that_is_cancelled_is_no_answer(memory, session):
    player = Player([Say("One two three four five six.")])
    config = session.run_config(RunConfig(tracing_disabled=True))
    streamed = Runner.run_streamed(agent("waiter", player), "Count.", session=session, run_config=config)
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            streamed.cancel()
            break
    async for _ in streamed.stream_events():
        pass
    done = [turn for turn in await logged(memory) if turn.status == "done"]
    assert [] == done
    await ask(session, agent("waiter", Player([Say("Hello.")])), "Good morning.")
    assert ["Hello."] == [turn.assistant for turn in await logged(memory) if turn.status == "done"]


async def test_a_session_is_gone_on_with_in_another_process(memory, session):
    await ask(session, agent("waiter", Player([Say("A fine name.")])), "My cat is called Momo.")
    player = Player([Say("Momo.")])
    other = PagefileSession(memory, "c1", user_id="ada")
    await ask(other, agent("waiter", player), "What is my cat called?")
    assert 1 == player.requests[0].count("My cat is called Momo.")
    assert ["A fine name.", "Momo."] == [turn.assistant for turn in await logged(memory)]
