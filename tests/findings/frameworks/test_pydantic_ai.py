"""PydanticAI: agents with the capability."""

import json

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from pagefile.integrations.pydantic_ai import PagefileMemory
from tests.findings.marks import finding
from tests.integration.pydantic_ai.agents import Script

from .promises import exchanged, promised


def small(q: str) -> str:
    """A small answer."""
    return f"small:{q}"


async def turns(memory, conversation="c"):
    return await memory.conversation(conversation, user_id="ada").turns()


# -- F5: approval ------------------------------------------------------------------------------------------------------


def approving(memory):
    """An agent whose one tool waits for approval."""

    def respond(messages, info):
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            return ModelResponse([TextPart("sent")])
        return ModelResponse([TextPart("I want to send it."), ToolCallPart("send", {"q": "mail"}, "c1")])

    agent = Agent(
        FunctionModel(respond),
        output_type=[str, DeferredToolRequests],
        capabilities=[PagefileMemory(memory, user_id="ada")],
    )

    @agent.tool_plain(requires_approval=True)
    def send(q: str) -> str:
        return "mail sent"

    return agent


@finding("frameworks-F5")
async def test_a_turn_that_waits_for_approval_stays_open(memory):
    """Until the user decides, the turn is neither done nor answered."""
    await approving(memory).run("Send the mail.", conversation_id="c")
    assert [("open", "Send the mail.")] == [(turn.status, turn.user) for turn in await turns(memory)]


@finding("frameworks-F5")
async def test_an_approved_call_goes_on_with_its_turn(memory):
    """After the approval there is one turn, with its step and its answer."""
    agent = approving(memory)
    first = await agent.run("Send the mail.", conversation_id="c")
    approved = DeferredToolResults(approvals={"c1": True})
    second = await agent.run(
        message_history=first.all_messages(), deferred_tool_results=approved, conversation_id="c"
    )
    assert "sent" == second.output
    (turn, *others) = await turns(memory)
    assert [] == others
    assert ("done", "Send the mail.", "sent") == (turn.status, turn.user, turn.assistant)
    assert [("send", "mail sent")] == [(step.tool, step.result) for step in turn.steps]


# -- F7, F8: what is neither a result nor the last answer ---------------------------------------------------------------


async def looked(memory):
    """The request after a turn with words and two calls side by side, its history made from the log."""
    sent = []
    calls = [ToolCallPart("small", {"q": q}, f"c{q}") for q in "ab"]
    script = [[TextPart("I will look at both."), *calls], [TextPart("final")], [TextPart("second")]]

    def respond(messages, info):
        sent.append(list(messages))
        return ModelResponse(script[len(sent) - 1])

    agent = Agent(FunctionModel(respond), tools=[small], capabilities=[PagefileMemory(memory, user_id="ada")])
    await agent.run("first", conversation_id="c")
    await agent.run("second", conversation_id="c")
    parts = [part for message in sent[-1] for part in message.parts]
    returned = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    assert ["small:a", "small:b"] == returned
    return sent[-1]


@finding("frameworks-F7")
async def test_what_is_said_beside_tool_calls_is_in_the_next_request(memory):
    """Without `message_history` too, the model reads what it said before it called its tools."""
    parts = [part for message in await looked(memory) for part in message.parts]
    assert "I will look at both." in [part.content for part in parts if isinstance(part, TextPart)]


@finding("frameworks-F7")
async def test_parallel_calls_stay_together(memory):
    """Without `message_history` too, calls made side by side come back as one response."""
    calls = [
        len([part for part in message.parts if isinstance(part, ToolCallPart)])
        for message in await looked(memory)
    ]
    assert [2] == [count for count in calls if count]


class Weather(BaseModel):
    """A structured answer."""

    city: str


@finding("frameworks-F8")
async def test_a_structured_answer_is_recorded_as_json(memory):
    """A structured answer is the turn's answer, as JSON."""

    def respond(messages, info):
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"city": "Kyoto"}, "c1")])

    agent = Agent(
        FunctionModel(respond),
        output_type=Weather,
        capabilities=[PagefileMemory(memory, user_id="ada")],
    )
    await agent.run("The weather?", conversation_id="c")
    (turn,) = await turns(memory)
    assert {"city": "Kyoto"} == json.loads(turn.assistant)


# -- F26: names --------------------------------------------------------------------------------------------------------


@finding("frameworks-F26")
async def test_a_tool_of_the_users_own_wins(memory):
    """An agent with a tool of its own named `recall` runs, and keeps it."""

    def recall(query: str) -> str:
        return "MINE"

    script = Script(("recall", {"query": "x"}), lambda sent: sent.returned[-1])
    agent = script.agent(PagefileMemory(memory, user_id="ada"), tools=[recall])
    with promised("the run is answered"):
        result = await agent.run("hello", conversation_id="c")
    assert "MINE" == result.output


@finding("frameworks-F26")
async def test_a_capability_given_twice_records_once(memory):
    """An agent that has the capability may be run with it again: there is one turn."""
    agent = Script("ok").agent(PagefileMemory(memory, user_id="ada"))
    with promised("the run is answered"):
        await agent.run("hello", conversation_id="c", capabilities=[PagefileMemory(memory, user_id="ada")])
    assert [("hello", "ok")] == exchanged(await turns(memory))
