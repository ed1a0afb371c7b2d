"""The conversation graph of LangGraph."""

import asyncio
import gc
import warnings

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from pagefile import Memory
from pagefile.integrations.langgraph import (
    ChatRequest,
    ConversationChat,
    ConversationNodes,
    ConversationState,
    build_conversation_graph,
)
from tests.findings.marks import finding
from tests.integration.langchain.models import Recorder, calls_tool

from .promises import PICTURE, REPORT, exchanged, locked, promised, words

THREAD = {"configurable": {"thread_id": "a"}}
IMAGE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}


def echo():
    return Recorder(play=lambda messages: AIMessage("re " + messages[-1].text))


def says(text):
    return Recorder(play=lambda _: AIMessage(text))


def asked(content, conversation="c", user="ada", turn=None):
    state = {"messages": [HumanMessage(content)], "conversation_id": conversation, "user_id": user}
    return {**state, "turn_id": turn} if turn else state


async def turns(memory, conversation="c"):
    return await memory.conversation(conversation, user_id="ada").turns()


def looping(memory, model, tools):
    """A graph of one's own around the nodes, with tools between the answers of the model."""
    nodes = ConversationNodes(memory, model, system_message="BASE")
    builder = StateGraph(ConversationState)
    for name in ("recall", "generate", "persist"):
        builder.add_node(name, nodes.node(name))

    def run_tools(state):
        calls = state["messages"][-1].tool_calls
        results = [(tools[call["name"]](**call["args"]), call) for call in calls]
        return {
            "messages": [
                ToolMessage(text, tool_call_id=call["id"], name=call["name"]) for text, call in results
            ]
        }

    builder.add_node("tools", run_tools)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "generate")
    builder.add_conditional_edges(
        "generate",
        lambda state: "tools" if state["messages"][-1].tool_calls else "persist",
        ["tools", "persist"],
    )
    builder.add_edge("tools", "generate")
    builder.add_edge("persist", END)
    return builder.compile()


# -- F1, F2: a thread with a checkpointer ------------------------------------------------------------------------------


@finding("frameworks-F1")
async def test_a_second_message_in_a_thread_is_a_second_turn(memory):
    """In a checkpointed thread every new message of the user is a turn of its own, whether or not anybody names it."""
    graph = build_conversation_graph(memory, model=echo(), checkpointer=InMemorySaver())
    with promised("both messages are answered"):
        await graph.ainvoke(asked("one"), THREAD)
        await graph.ainvoke(asked("two"), THREAD)
    assert [("one", "re one"), ("two", "re two")] == exchanged(await turns(memory))


@finding("frameworks-F1")
async def test_turns_that_are_named_are_kept_apart(memory):
    """In a checkpointed thread two messages with a `turn_id` each are two turns."""
    graph = build_conversation_graph(memory, model=echo(), checkpointer=InMemorySaver())
    await graph.ainvoke(asked("one", turn="t1"), THREAD)
    await graph.ainvoke(asked("two", turn="t2"), THREAD)
    assert [("one", "re one"), ("two", "re two")] == exchanged(await turns(memory))


@finding("frameworks-F2")
async def test_memory_is_in_the_request_and_in_no_checkpoint(memory):
    """What is known of the user reaches the model and is in nothing that the checkpointer saves."""
    await memory.remember("The user is allergic to penicillin.", user_id="ada")
    model, saver = echo(), InMemorySaver()
    graph = build_conversation_graph(memory, model=model, checkpointer=saver)
    await graph.ainvoke(asked("What am I allergic to?"), THREAD)
    assert "allergic to penicillin" in repr(model.calls[0])
    saved = list(saver.list(THREAD))
    assert saved
    assert "penicillin" not in repr(saved)


@finding("frameworks-F2")
async def test_a_forgotten_user_is_forgotten_in_checkpoints(memory):
    """Once a user is forgotten, no checkpoint of their threads tells their facts."""
    await memory.remember("The user is allergic to penicillin.", user_id="ada")
    saver = InMemorySaver()
    graph = build_conversation_graph(memory, model=says("I know."), checkpointer=saver)
    await graph.ainvoke(asked("What am I allergic to?"), THREAD)
    await memory.forget(user_id="ada")
    assert [] == await memory.facts("ada")
    assert "penicillin" not in repr(list(saver.list(THREAD)))


# -- F3: a memory that is down -----------------------------------------------------------------------------------------


@finding("frameworks-F3")
async def test_a_locked_database_costs_memory_and_not_the_run(memory, database):
    """While another process holds the database, graph and chat answer within seconds."""
    graph = build_conversation_graph(memory, model=says("ok"))
    chat = ConversationChat(memory, model=says("ok"))
    with locked(database), promised("both answer while the database is locked"):
        async with asyncio.timeout(8):
            state, answer = await asyncio.gather(
                graph.ainvoke(asked("hello", turn="t1")), chat.answer(ChatRequest("hello", "ada", "s"))
            )
    assert ("ok", "ok") == (state["messages"][-1].text, answer)


@finding("frameworks-F3")
async def test_a_closed_memory_costs_memory_and_not_the_run(database):
    """A graph whose memory is closed still answers."""
    async with Memory.open(f"sqlite:///{database}") as memory:
        graph = build_conversation_graph(memory, model=says("ok"))
    assert "ok" == await outcome(graph.ainvoke(asked("hello", turn="t1")))


async def outcome(run):
    """The answer of a run, or what it raised, with nothing left of it that would warn in a later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return (await run)["messages"][-1].text
        except Exception as error:
            raised = repr(error)
        gc.collect()
    return raised


# -- F7, F8: what is neither a result nor the last answer ---------------------------------------------------------------


@finding("frameworks-F7")
async def test_what_is_said_beside_tool_calls_is_kept(memory):
    """What the model said before it called its tools is in the log, and so in the windows made from it."""
    model = Recorder(
        script=[
            AIMessage(
                "I look at both places.",
                tool_calls=[
                    {"name": "small", "args": {"q": "a"}, "id": "c1"},
                    {"name": "small", "args": {"q": "b"}, "id": "c2"},
                ],
            ),
            AIMessage("final"),
        ]
    )
    graph = looping(memory, model, {"small": lambda q: f"small:{q}"})
    await graph.ainvoke(asked("first", turn="t1"))
    window = await memory.conversation("c", user_id="ada").context("second")
    assert "small:b" in words(window.messages)
    assert "I look at both places." in words(window.messages)


class Weather(BaseModel):
    """A structured answer."""

    city: str


@finding("frameworks-F8")
async def test_a_structured_answer_of_the_graph_is_recorded(memory):
    """A model with structured output can answer in the graph, and its answer is the turn's."""
    model = says("x") | RunnableLambda(lambda _: Weather(city="Kyoto"))
    graph = build_conversation_graph(memory, model=model)
    with promised("the run is answered"):
        await graph.ainvoke(asked("The weather?", turn="t1"))
    (turn,) = await turns(memory)
    assert "Kyoto" in (turn.assistant or "")


# -- F9: what was paged out --------------------------------------------------------------------------------------------


@finding("frameworks-F9")
async def test_a_paged_out_result_can_come_back(memory):
    """The request after a long result names its page, so that the model can ask for it."""
    model = Recorder(script=[calls_tool("report", {"q": "x"}), AIMessage("I read it."), AIMessage("second")])
    graph = looping(memory, model, {"report": lambda q: REPORT})
    await graph.ainvoke(asked("first", turn="t1"))
    (step,) = (await turns(memory))[0].steps
    assert await memory.conversation("c", user_id="ada").load(step.page) == REPORT
    await graph.ainvoke(asked("What was the code word?", turn="t2"))
    assert step.page in repr(model.calls[-1])


@finding("frameworks-F9")
async def test_the_graph_offers_the_tools_that_load_pages(memory):
    """The model of the graph is offered the tool that loads what was paged out."""
    model = says("ok")
    await build_conversation_graph(memory, model=model).ainvoke(asked("hello", turn="t1"))
    assert 1 == len(model.calls)
    assert "load_tool_history" in model.offered


@finding("frameworks-F9")
async def test_other_conversations_of_the_user_are_recalled(memory):
    """What the user said in another conversation reaches the model when it is asked for."""
    model = says("ok")
    graph = build_conversation_graph(memory, model=model)
    await graph.ainvoke(asked("My dog is called ZORRO.", conversation="monday", turn="t1"))
    await memory.settle()
    await graph.ainvoke(asked("What is my dog called?", conversation="friday", turn="t2"))
    assert "ZORRO" in repr(model.calls[-1])


@finding("frameworks-F9")
async def test_the_prompt_speaks_the_language_of_the_settings(memory):
    """With English settings there is no Chinese in the prompt."""
    await memory.remember("The user likes tea.", user_id="ada")
    model = says("ok")
    await build_conversation_graph(memory, model=model).ainvoke(asked("Do I like tea?", turn="t1"))
    prompt = "\n".join(message.text for message in model.calls[0])
    assert "The user likes tea." in prompt
    assert [] == [letter for letter in prompt if "\u4e00" <= letter <= "\u9fff"]


# -- F16, F17: pictures, and idioms of LangChain ------------------------------------------------------------------------


@finding("frameworks-F16")
async def test_the_log_of_the_graph_tells_of_a_picture(memory):
    """A picture beside the words is named in the log."""
    model = says("a cat")
    graph = build_conversation_graph(memory, model=model)
    await graph.ainvoke(asked([{"type": "text", "text": "What is this?"}, IMAGE], turn="t1"))
    assert "aGVsbG8=" in repr(model.calls[0])
    (turn,) = await turns(memory)
    assert turn.user.startswith("What is this?")
    assert PICTURE.search(turn.user)


@finding("frameworks-F16")
async def test_a_picture_without_words_is_answered_and_recorded(memory):
    """A message that is only a picture is a turn like any other."""
    graph = build_conversation_graph(memory, model=says("a cat"))
    with promised("the run is answered"):
        state = await graph.ainvoke(asked([IMAGE], turn="t1"))
    assert "a cat" == state["messages"][-1].text
    assert ["a cat"] == [turn.assistant for turn in await turns(memory)]


@finding("frameworks-F17")
async def test_the_graph_runs_without_an_event_loop(memory):
    """`graph.invoke` works in a thread that has no event loop."""
    graph = build_conversation_graph(memory, model=echo())
    with promised("the run is answered"):
        state = await asyncio.to_thread(graph.invoke, asked("hello", turn="t1"))
    assert "re hello" == state["messages"][-1].text
    assert [("hello", "re hello")] == exchanged(await turns(memory))


@finding("frameworks-F17")
async def test_a_model_with_retry_is_retried(memory):
    """`model.with_retry()` tries again in the graph as it does everywhere else."""
    model = Recorder(script=[ConnectionError("flaky"), ConnectionError("flaky"), AIMessage("third")])
    patient = model.with_retry(stop_after_attempt=5, wait_exponential_jitter=False)
    with promised("the third attempt answers"):
        await build_conversation_graph(memory, model=patient).ainvoke(asked("hello", turn="t1"))
    assert [("hello", "third")] == exchanged(await turns(memory))


@finding("frameworks-F17")
async def test_a_model_with_a_fallback_falls_back(memory):
    """`model.with_fallbacks()` works in the graph, and leaves one done turn."""
    model = Recorder(script=[ConnectionError("down")]).with_fallbacks([says("fallback")])
    await build_conversation_graph(memory, model=model).ainvoke(asked("hello", turn="t1"))
    assert [("hello", "fallback")] == exchanged(await turns(memory))
