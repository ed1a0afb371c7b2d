"""Runs that stop half-way: interrupted and resumed, failed, cancelled, replayed, streamed; and runs without an event loop."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRetryMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, interrupt

from pagefile.integrations.langchain import PagefileMiddleware

from .models import Recorder, calls_tool, check_order, memories

THREAD = {"configurable": {"thread_id": "t", "user_id": "ada"}}


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def ask(text: str, message_id: str | None = None) -> dict:
    return {"messages": [HumanMessage(text, id=message_id)]}


async def turns_of(memory, conversation="t", user_id="ada"):
    turns = await memory.conversation(conversation, user_id=user_id).turns()
    return [(turn.user, turn.assistant, turn.status, len(turn.steps)) for turn in turns]


async def test_an_interrupted_run_goes_on_where_it_was(memory):
    """A person is asked before a tool runs; the turn stays open meanwhile and is one turn in the end."""
    await memory.remember("The user likes oolong tea.", user_id="ada")
    model = Recorder(script=[calls_tool("weather", {"city": "Oslo"}), AIMessage("Rain, have tea.")])
    agent = create_agent(
        model,
        [weather],
        middleware=[
            PagefileMiddleware(memory),
            HumanInTheLoopMiddleware(interrupt_on={"weather": {"allowed_decisions": ["approve", "reject"]}}),
        ],
        checkpointer=InMemorySaver(),
    )
    out = await agent.ainvoke(ask("Tea weather?"), THREAD)
    assert "__interrupt__" in out
    assert [("Tea weather?", None, "open", 0)] == await turns_of(memory)
    await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert [("Tea weather?", "Rain, have tea.", "done", 1)] == await turns_of(memory)
    assert [m.content for m in model.calls[0]] == [m.content for m in model.calls[1][: len(model.calls[0])]]


async def test_a_call_that_a_person_refuses_is_a_step_too(memory):
    """Its result comes from no tool; the log has it as the model saw it."""
    model = Recorder(script=[calls_tool("weather", {"city": "Oslo"}), AIMessage("As you wish.")])
    gate = HumanInTheLoopMiddleware(interrupt_on={"weather": {"allowed_decisions": ["approve", "reject"]}})
    agent = create_agent(
        model, [weather], middleware=[PagefileMiddleware(memory), gate], checkpointer=InMemorySaver()
    )
    await agent.ainvoke(ask("Weather?"), THREAD)
    await agent.ainvoke(Command(resume={"decisions": [{"type": "reject", "message": "not now"}]}), THREAD)
    (turn,) = await memory.conversation("t", user_id="ada").turns()
    refused = model.calls[1][-1].text
    assert "not now" in refused
    assert [("weather", {"city": "Oslo"}, refused)] == [(s.tool, s.input, s.result) for s in turn.steps]


async def test_an_interrupt_inside_a_tool_records_its_result_once(memory):
    """The tool runs again from its beginning when it is resumed; the turn has one step."""
    asked = []

    @tool
    def booking(city: str) -> str:
        """Book a trip."""
        asked.append(city)
        return f"{city}: {interrupt('sure?')}"

    model = Recorder(script=[calls_tool("booking", {"city": "Oslo"}), AIMessage("Booked.")])
    agent = create_agent(
        model, [booking], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    await agent.ainvoke(ask("Book it"), THREAD)
    await agent.ainvoke(Command(resume="yes"), THREAD)
    assert ["Oslo", "Oslo"] == asked
    assert [("Book it", "Booked.", "done", 1)] == await turns_of(memory)


async def test_a_run_is_resumed_by_another_process(memory):
    """What is not in the new process is read from the log: still one turn, with the steps from before."""
    saver = InMemorySaver()
    script = [
        calls_tool("weather", {"city": "Oslo"}, "c1"),
        calls_tool("weather", {"city": "Bergen"}, "c2"),
        AIMessage("Rain."),
    ]
    model = Recorder(script=script)
    gate = HumanInTheLoopMiddleware(interrupt_on={"weather": {"allowed_decisions": ["approve"]}})
    for decision in (None, "approve", "approve"):
        agent = create_agent(
            model, [weather], middleware=[PagefileMiddleware(memory), gate], checkpointer=saver
        )
        given = ask("Both?") if decision is None else Command(resume={"decisions": [{"type": decision}]})
        await agent.ainvoke(given, THREAD)
    assert [("Both?", "Rain.", "done", 2)] == await turns_of(memory)


@pytest.mark.parametrize("checkpointer", [True, False], ids=["checkpointer", "no checkpointer"])
async def test_a_run_that_failed_is_aborted_when_the_user_goes_on(memory, checkpointer):
    """The turn stays in the log and enters no window; the next one is recorded as ever."""
    model = Recorder(script=[ConnectionError("model down"), AIMessage("Hello.")])
    agent = create_agent(
        model,
        [],
        middleware=[PagefileMiddleware(memory)],
        checkpointer=InMemorySaver() if checkpointer else None,
    )
    with pytest.raises(ConnectionError):
        await agent.ainvoke(ask("Hello?"), THREAD)
    assert [("Hello?", None, "open", 0)] == await turns_of(memory)
    await agent.ainvoke(ask("Anybody there?"), THREAD)
    first, second = await turns_of(memory)
    assert ("Hello?", None, "aborted", 0) == first
    assert ("Hello.", "done") == second[1:3]
    assert "Anybody there?" in second[0]


async def test_a_failed_run_can_be_taken_up_again(memory):
    """LangGraph goes on from its checkpoint; the turn was not given up."""
    model = Recorder(
        script=[calls_tool("weather", {"city": "Oslo"}), ConnectionError("model down"), AIMessage("Rain.")]
    )
    agent = create_agent(
        model, [weather], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    with pytest.raises(ConnectionError):
        await agent.ainvoke(ask("Weather?"), THREAD)
    await agent.ainvoke(None, THREAD)
    assert [("Weather?", "Rain.", "done", 1)] == await turns_of(memory)


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
async def test_retries_are_no_failures(memory, outside):
    """A model that answers at the second try answers the same turn."""
    model = Recorder(script=[ConnectionError("busy"), AIMessage("Hello.")])
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    ours = PagefileMiddleware(memory)
    agent = create_agent(model, [], middleware=[retry, ours] if outside else [ours, retry])
    await agent.ainvoke(ask("Hello?"), THREAD)
    assert [("Hello?", "Hello.", "done", 0)] == await turns_of(memory)


async def test_a_tool_that_raises_and_a_loop_without_end(memory):
    """Neither reaches the end of the agent: their turns are aborted later, their results are kept."""

    @tool
    def broken() -> str:
        """Fails."""
        raise RuntimeError("no")

    model = Recorder(script=[calls_tool("broken")])
    agent = create_agent(model, [broken], middleware=[PagefileMiddleware(memory)])
    with pytest.raises(RuntimeError):
        await agent.ainvoke(ask("one"), THREAD)
    endless = Recorder(
        script=[calls_tool("weather", {"city": "Oslo"}, "c1"), calls_tool("weather", {"city": "Rome"}, "c2")]
    )
    agent = create_agent(
        endless, [weather], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    with pytest.raises(GraphRecursionError):
        await agent.ainvoke(ask("two"), {**THREAD, "recursion_limit": 6})
    agent = agent.with_config()
    endless.play = lambda _: AIMessage("Enough.")
    await agent.ainvoke(ask("three"), THREAD)
    statuses = {user: (status, steps) for user, _, status, steps in await turns_of(memory)}
    assert "aborted" == statuses["two"][0]
    # The model asked for the same weather of Rome twice, under one call id.
    assert 3 == statuses["two"][1]
    assert "done" == statuses["three"][0]


@pytest.mark.waits
async def test_a_cancelled_run_leaves_an_open_turn(memory):
    """The user closed the window; the next message finds everything in order."""
    waiting = asyncio.Event()

    @tool
    async def slow() -> str:
        """Takes for ever."""
        waiting.set()
        await asyncio.Event().wait()

    model = Recorder(script=[calls_tool("slow"), AIMessage("Here.")])
    agent = create_agent(model, [slow], middleware=[PagefileMiddleware(memory)])
    run = asyncio.ensure_future(agent.ainvoke(ask("one"), THREAD))
    await waiting.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await agent.ainvoke(ask("two"), THREAD)
    assert [("one", None, "aborted", 0), ("two", "Here.", "done", 0)] == await turns_of(memory)


async def test_an_answer_made_again_is_a_turn_of_its_own(memory):
    """Going back to an earlier point of the thread loses nothing that was said, and repeats nothing."""
    model = Recorder(script=[AIMessage("First."), AIMessage("Second."), AIMessage("Bye.")])
    agent = create_agent(model, [], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver())
    await agent.ainvoke(ask("Hello?", "m1"), THREAD)
    (before,) = [s async for s in agent.aget_state_history(THREAD) if s.next == ("model",)]
    # LangGraph's own config of a checkpoint does not name the user.
    await agent.ainvoke(None, {"configurable": THREAD["configurable"] | before.config["configurable"]})
    await agent.ainvoke(ask("Bye", "m2"), THREAD)
    assert [
        ("Hello?", "First.", "done", 0),
        ("Hello?", "Second.", "done", 0),
        ("Bye", "Bye.", "done", 0),
    ] == await turns_of(memory)
    assert ["Hello?", "Second.", "Bye"] == [m.text for m in model.calls[2][1:]]


async def before_the_answer(agent, question):
    """The configuration of the point of the thread at which the model is about to read a question."""
    async for state in agent.aget_state_history(THREAD):
        if state.next == ("model",) and state.values["messages"][-1].text == question:
            # LangGraph's own config of a checkpoint does not name the user.
            return {"configurable": THREAD["configurable"] | state.config["configurable"]}
    raise AssertionError(f"The thread has never been at {question!r}.")


async def test_a_turn_that_runs_again_as_before_stays_one_turn(memory):
    """With its calls and results, in a process that did not see it run; the model is asked the same."""
    script = [calls_tool("weather", {"city": "Oslo"}), AIMessage("Rain.")]
    model = Recorder(script=[AIMessage("Hi."), *script, *script, AIMessage("Bye.")])
    saver = InMemorySaver()

    def restarted():
        return create_agent(model, [weather], middleware=[PagefileMiddleware(memory)], checkpointer=saver)

    await restarted().ainvoke(ask("Hello?", "m1"), THREAD)
    await restarted().ainvoke(ask("Weather?", "m2"), THREAD)
    once = list(await memory.conversation("t", user_id="ada").turns())
    agent = restarted()
    await agent.ainvoke(None, await before_the_answer(agent, "Weather?"))
    assert once == list(await memory.conversation("t", user_id="ada").turns())
    asked = [[message.text for message in request[1:]] for request in model.calls[1:]]
    assert [["Hello?", "Hi.", "Weather?"], ["Hello?", "Hi.", "Weather?", "", "rain in Oslo"]] * 2 == asked
    await agent.ainvoke(ask("Bye", "m3"), THREAD)
    assert [("Hello?", "Hi.", "done", 0), ("Weather?", "Rain.", "done", 1), ("Bye", "Bye.", "done", 0)] == (
        await turns_of(memory)
    )


async def test_a_turn_that_runs_again_differently_is_a_turn_of_its_own(memory):
    """From the first result that differs; an answer that was given before is not added again."""
    skies = iter(["sun", "rain", "sun"])

    @tool
    def sky(city: str) -> str:
        """The sky above a city."""
        return f"{next(skies)} in {city}"

    def play(messages):
        said = messages[-1]
        return AIMessage(said.text) if said.type == "tool" else calls_tool("sky", {"city": "Oslo"})

    agent = create_agent(
        Recorder(play=play), [sky], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    await agent.ainvoke(ask("Sky?", "m1"), THREAD)
    before = await before_the_answer(agent, "Sky?")
    await agent.ainvoke(None, before)
    both = [("Sky?", "sun in Oslo", "done", 1), ("Sky?", "rain in Oslo", "done", 1)]
    assert both == await turns_of(memory)
    await agent.ainvoke(None, before)
    assert both == await turns_of(memory)


async def test_streaming(memory):
    """Tokens arrive one by one, memory is in the request and in no stream."""
    await memory.remember("The user likes oolong tea.", user_id="ada")
    model = Recorder(script=[calls_tool("weather", {"city": "Oslo"}), AIMessage("It rains in Oslo today")])
    agent = create_agent(
        model, [weather], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    pieces = []
    async for message, _ in agent.astream(ask("Tea weather?"), THREAD, stream_mode="messages"):
        pieces.append(message)
    words = [m.text for m in pieces if m.type == "AIMessageChunk" and m.text]
    assert ["It ", "rains ", "in ", "Oslo ", "today"] == words
    assert [] == memories(pieces)
    assert [1, 1] == [len(memories(request)) for request in model.calls]
    assert [("Tea weather?", "It rains in Oslo today", "done", 1)] == await turns_of(memory)


def test_without_an_event_loop(blocking):
    """`invoke` and `stream` with a `BlockingMemory`: the same agent, the same log."""
    blocking.remember("The user likes oolong tea.", user_id="ada")
    model = Recorder(script=[calls_tool("weather", {"city": "Oslo"}), AIMessage("Rain, tea.")])
    agent = create_agent(
        model, [weather], middleware=[PagefileMiddleware(blocking)], checkpointer=InMemorySaver()
    )
    agent.invoke(ask("Tea weather?"), THREAD)
    list(agent.stream(ask("Tea again?"), THREAD))
    assert [1, 1, 1, 1] == [len(memories(request)) for request in model.calls]
    for request in model.calls:
        check_order(request)
    turns = blocking.conversation("t", user_id="ada").turns()
    assert [("Tea weather?", "done", 1), ("Tea again?", "done", 1)] == [
        (turn.user, turn.status, len(turn.steps)) for turn in turns
    ]


def test_an_asynchronous_run_with_a_blocking_memory(blocking):
    """One open memory serves both kinds of runs."""
    model = Recorder(script=[AIMessage("One."), AIMessage("Two.")])
    agent = create_agent(model, [], middleware=[PagefileMiddleware(blocking)])
    agent.invoke(ask("first"), THREAD)
    asyncio.run(agent.ainvoke(ask("second"), THREAD))
    assert ["first", "One.", "second"] == [m.text for m in model.calls[1][1:]]


async def test_a_synchronous_run_in_a_thread_of_a_server(memory):
    """A `Memory` in the server's loop serves an agent that runs in a worker thread."""
    model = Recorder(script=[calls_tool("weather", {"city": "Oslo"}), AIMessage("Rain.")])
    agent = create_agent(model, [weather], middleware=[PagefileMiddleware(memory)])
    await asyncio.to_thread(agent.invoke, ask("Weather?"), THREAD)
    assert [("Weather?", "Rain.", "done", 1)] == await turns_of(memory)


async def test_tools_that_run_at_the_same_time(memory):
    """Their results are all in the turn, each once."""
    both = AIMessage(
        "",
        tool_calls=[
            {"name": "weather", "args": {"city": city}, "id": f"c{n}"}
            for n, city in enumerate(["Oslo", "Rome", "北京"])
        ],
    )
    model = Recorder(script=[both, AIMessage("Rain everywhere.")])
    agent = create_agent(
        model, [weather], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    await agent.ainvoke(ask("Weather?"), THREAD)
    await agent.ainvoke(ask("Again?"), THREAD)
    for request in model.calls:
        check_order(request)
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [{"rain in Oslo", "rain in Rome", "rain in 北京"}] * 2 == [
        {step.result for step in turn.steps} for turn in turns
    ]


async def test_structured_output(memory):
    """An answer that is not text still ends its turn."""
    from pydantic import BaseModel

    class Report(BaseModel):
        """A report."""

        city: str

    model = Recorder(script=[calls_tool("Report", {"city": "Oslo"})])
    agent = create_agent(
        model,
        [weather],
        middleware=[PagefileMiddleware(memory)],
        response_format=Report,
        checkpointer=InMemorySaver(),
    )
    out = await agent.ainvoke(ask("Report"), THREAD)
    assert Report(city="Oslo") == out["structured_response"]
    ((user, _, status, _),) = await turns_of(memory)
    assert ("Report", "done") == (user, status)


@pytest.mark.waits
async def test_two_runs_of_one_conversation_at_the_same_time(memory):
    """Each has its own turn and its own memory; both are recorded."""
    await memory.remember("The user likes oolong tea.", user_id="ada")
    meeting = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Wait for the other."""
        await meeting.wait()
        return f"{name} was there"

    def play(messages):
        if messages[-1].type == "human":
            return calls_tool("meet", {"name": messages[-1].text}, f"c-{messages[-1].text}")
        return AIMessage(f"Seen: {messages[-1].text}")

    model = Recorder(play=play)
    agent = create_agent(model, [meet], middleware=[PagefileMiddleware(memory)])
    await asyncio.gather(*(agent.ainvoke(ask(f"tea {name}"), THREAD) for name in ("one", "two")))
    found = await turns_of(memory)
    assert {(f"tea {name}", f"Seen: tea {name} was there", "done", 1) for name in ("one", "two")} == set(
        found
    )
    for request in model.calls:
        check_order(request)
        assert 1 == len(memories(request))


async def test_a_thread_that_goes_on_after_an_unanswered_call(memory):
    """The tool raised, the thread keeps its call; the next request has no loose end."""

    @tool
    def broken() -> str:
        """Fails."""
        raise RuntimeError("no")

    model = Recorder(script=[calls_tool("broken"), AIMessage("Here.")])
    agent = create_agent(
        model, [broken], middleware=[PagefileMiddleware(memory)], checkpointer=InMemorySaver()
    )
    with pytest.raises(RuntimeError):
        await agent.ainvoke(ask("one"), THREAD)
    await agent.ainvoke(ask("two"), THREAD)
    check_order(model.calls[1])
    assert ["one", "two"] == [m.text for m in model.calls[1][1:]]
    assert [("one", None, "aborted", 0), ("two", "Here.", "done", 0)] == await turns_of(memory)
