"""LangChain: agents with the middleware, and the tools without it."""

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from pagefile import BlockingMemory, Settings
from pagefile.integrations.langchain import PagefileMiddleware, memory_tools
from pagefile.settings import FactSettings
from tests.findings.marks import finding
from tests.integration.langchain.models import Recorder, calls_tool

from .promises import PICTURE, exchanged, promised

IMAGE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
RUN = {"configurable": {"thread_id": "t", "user_id": "ada"}}


@tool
def small(q: str) -> str:
    """A small answer."""
    return f"small:{q}"


def says(text):
    return Recorder(play=lambda _: AIMessage(text))


def echo():
    return Recorder(play=lambda messages: AIMessage("re " + messages[-1].text))


def agent(memory, model, tools=(), **options):
    return create_agent(model, list(tools), middleware=[PagefileMiddleware(memory)], **options)


def said(content, name=None):
    return {"messages": [HumanMessage(content, id=name)]}


def turns(memory, thread="t", user="ada"):
    return memory.conversation(thread, user_id=user).turns()


# -- F4: sub-agents ----------------------------------------------------------------------------------------------------

MADE_UP = "I live in Marseille and I am allergic to nuts. Plan for such a person."


@pytest.fixture
def learning(database):
    settings = Settings(language="en", facts=FactSettings(extract="rules"))
    with BlockingMemory.open(f"sqlite:///{database}", settings=settings, embedder="none") as opened:
        yield opened


def delegating(memory):
    """An agent that asks another one with the same memory, and the model of the first."""
    inner = agent(memory, says("Marseille it is."))

    @tool
    def ask_expert(q: str) -> str:
        """Ask the expert."""
        return inner.invoke(said(q))["messages"][-1].text

    def play(messages):
        if isinstance(messages[-1], ToolMessage) or "next" in messages[-1].text:
            return AIMessage("Take the train.")
        return calls_tool("ask_expert", {"q": MADE_UP})

    model = Recorder(play=play)
    return agent(memory, model, [ask_expert]), model


@finding("frameworks-F4")
def test_what_a_sub_agent_is_asked_is_no_turn_of_the_user(learning):
    """The user's conversation has the user's own turn and nothing else."""
    outer, _ = delegating(learning)
    outer.invoke(said("Plan a trip for a made-up person.", "h1"), RUN)
    assert [("Plan a trip for a made-up person.", "Take the train.")] == exchanged(turns(learning))


@finding("frameworks-F4")
def test_what_a_sub_agent_is_asked_is_no_fact_about_the_user(learning):
    """Only what the user said becomes a fact about the user."""
    outer, _ = delegating(learning)
    outer.invoke(said("I live in Bergen. Plan a trip for a made-up person.", "h1"), RUN)
    learning.settle()
    facts = [fact.text for fact in learning.facts("ada")]
    assert any("Bergen" in fact for fact in facts)
    assert [] == [fact for fact in facts if "Marseille" in fact or "nuts" in fact]


@finding("frameworks-F4")
def test_what_a_sub_agent_is_asked_is_no_message_of_the_user(learning):
    """The next request shows the user's words as the user's, and not those of the sub-agent's prompt."""
    outer, model = delegating(learning)
    outer.invoke(said("Plan a trip for a made-up person.", "h1"), RUN)
    outer.invoke(said("And the next one?", "h2"), RUN)
    heard = [message.text for message in model.calls[-1] if message.type == "human"]
    assert "Plan a trip for a made-up person." in heard
    assert [] == [text for text in heard if "Marseille" in text]


# -- F7, F8: what is neither a result nor the last answer ---------------------------------------------------------------


def looked(memory):
    """The request after a turn with words and two calls side by side, its history made from the log."""
    calls = [{"name": "small", "args": {"q": q}, "id": f"c{q}"} for q in "ab"]
    script = [AIMessage("I will look at both.", tool_calls=calls), AIMessage("final"), AIMessage("second")]
    model = Recorder(script=script)
    run = agent(memory, model, [small])
    run.invoke(said("first", "h1"), RUN)
    run.invoke(said("second", "h2"), RUN)
    request = model.calls[-1]
    assert ["small:a", "small:b"] == [message.text for message in request if message.type == "tool"]
    return request


@finding("frameworks-F7")
def test_what_is_said_beside_tool_calls_is_in_the_next_request(blocking):
    """Without a checkpointer too, the model reads what it said before it called its tools."""
    assert "I will look at both." in [message.text for message in looked(blocking)]


@finding("frameworks-F7")
def test_parallel_calls_stay_together(blocking):
    """Without a checkpointer too, calls made side by side come back as one message."""
    calling = [m.tool_calls for m in looked(blocking) if isinstance(m, AIMessage) and m.tool_calls]
    assert [2] == [len(calls) for calls in calling]


class Weather(BaseModel):
    """A structured answer."""

    city: str
    degrees: int


@finding("frameworks-F8")
def test_a_structured_answer_is_the_turns_answer(blocking):
    """An answer given through `ToolStrategy` is recorded as what the assistant said."""
    model = Recorder(script=[calls_tool("Weather", {"city": "Kyoto", "degrees": 21})])
    out = agent(blocking, model, response_format=ToolStrategy(Weather)).invoke(said("The weather?"), RUN)
    assert Weather(city="Kyoto", degrees=21) == out["structured_response"]
    (turn,) = turns(blocking)
    assert "Kyoto" in (turn.assistant or "")
    assert "21" in turn.assistant


# -- F14, F16: time travel and pictures --------------------------------------------------------------------------------


@finding("frameworks-F14")
def test_running_a_done_turn_again_adds_no_turn(blocking):
    """A turn that is run again from its checkpoint with the same words stays one turn."""
    run = agent(blocking, echo(), checkpointer=InMemorySaver())
    run.invoke(said("one"), RUN)
    run.invoke(said("two"), RUN)
    before_two = next(
        state for state in run.get_state_history(RUN) if len(state.values.get("messages", [])) == 3
    )
    # LangGraph's own config of a checkpoint does not name the user.
    run.invoke(None, {"configurable": RUN["configurable"] | before_two.config["configurable"]})
    assert [("one", "re one"), ("two", "re two")] == exchanged(turns(blocking))


@finding("frameworks-F16")
def test_the_log_tells_of_a_picture_beside_the_words(blocking):
    """A picture beside the words is named in the log."""
    model = says("a cat")
    agent(blocking, model).invoke(said([{"type": "text", "text": "What is this?"}, IMAGE]), RUN)
    assert "aGVsbG8=" in repr(model.calls[0])
    (turn,) = turns(blocking)
    assert turn.user.startswith("What is this?")
    assert PICTURE.search(turn.user)


# -- F17: the tools without the middleware ------------------------------------------------------------------------------


@finding("frameworks-F17")
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("recall", {"query": "teapot"}, "teapot"),
        ("remember", {"text": "The user likes tea."}, ""),
        ("search_tool_history", {"query": "HELIOTROPE"}, "HELIOTROPE"),
    ],
)
def test_the_tools_work_on_their_own(blocking, name, given, expected):
    """`tool.invoke({…})` works wherever a LangChain tool does, not only inside an agent."""
    chat = blocking.conversation("c", user_id="ada")
    step = {"tool": "read", "input": {}, "result": "The code word is HELIOTROPE. " + "Filler. " * 400}
    chat.record(user="My teapot is green.", assistant="Noted.", steps=[step])
    blocking.settle()
    tools = {made.name: made for made in memory_tools(blocking, user_id="ada", conversation_id="c")}
    with promised("the tool answers"):
        answer = tools[name].invoke(given)
    assert answer
    assert expected in answer
    if name == "remember":
        assert ["The user likes tea."] == [fact.text for fact in blocking.facts("ada")]


# -- F25, F26: whose conversation it is ---------------------------------------------------------------------------------


@finding("frameworks-F25")
def test_a_run_that_names_nobody_does_not_read_a_users_thread(blocking):
    """A conversation that belongs to a user opens for that user only."""
    agent(blocking, says("ok")).invoke(said("My private word is SWORDFISH."), RUN)
    model = says("ok")
    with promised("the run is answered"):
        agent(blocking, model).invoke(said("What was the word?"), {"configurable": {"thread_id": "t"}})
    assert "SWORDFISH" not in repr(model.calls[-1])
    assert [("My private word is SWORDFISH.", "ok")] == exchanged(turns(blocking))


@finding("frameworks-F25")
def test_another_user_does_not_read_a_users_thread(blocking):
    """Another user with the same `thread_id` sees nothing of it."""
    agent(blocking, says("ok")).invoke(said("My private word is SWORDFISH."), RUN)
    model = says("ok")
    bobs = {"configurable": {"thread_id": "t", "user_id": "bob"}}
    agent(blocking, model).invoke(said("What was the word?"), bobs)
    assert "SWORDFISH" not in repr(model.calls[-1])


@finding("frameworks-F26")
def test_a_run_without_a_thread_is_answered(blocking):
    """A run that names no `thread_id` goes on without memory."""
    with promised("the run is answered"):
        out = agent(blocking, says("ok")).invoke(said("hello"))
    assert "ok" == out["messages"][-1].text


@finding("frameworks-F26")
def test_a_tool_of_the_users_own_wins(blocking):
    """An agent with a tool of its own named `recall` keeps it."""

    @tool
    def recall(query: str) -> str:
        """My own."""
        return "MINE"

    def play(messages):
        last = messages[-1]
        return AIMessage(last.text) if last.type == "tool" else calls_tool("recall", {"query": "x"})

    out = agent(blocking, Recorder(play=play), [recall]).invoke(said("hello"), RUN)
    assert "MINE" == out["messages"][-1].text
