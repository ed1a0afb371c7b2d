"""Document 004's middleware: what it reads of a conversation, and the message it puts in front."""

import copy
import inspect
import subprocess
import sys
from types import SimpleNamespace

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from pagefile.errors import SettingsError
from pagefile.settings import FactSettings
from pagefile.standalone import MemoryMiddleware, _extract_conversation_context, extract_text, memory_config
from tests.integration.langchain.models import Recorder

DATA = {
    "facts": [
        {"content": "Prefers pytest for testing", "confidence": 0.9},
        {"content": "Uses Docker", "confidence": 0.8},
    ]
}
CALL = {"name": "search", "args": {}, "id": "1"}


def test_the_documents_context_string():
    """Three turns, joined by spaces."""
    messages = [
        HumanMessage("我在做一个 Python 项目"),
        HumanMessage("使用 FastAPI 和 SQLAlchemy"),
        HumanMessage("怎么写测试？"),
    ]
    assert (
        _extract_conversation_context(messages)
        == "我在做一个 Python 项目 使用 FastAPI 和 SQLAlchemy 怎么写测试？"
    )
    parameters = inspect.signature(_extract_conversation_context).parameters
    assert ["messages", "max_turns"] == list(parameters)
    assert str(parameters["max_turns"]) == "max_turns: int = 3"


def test_only_what_was_said_counts():
    """Tools and answers on the way to them are skipped; the order is that of the conversation."""
    messages = [
        HumanMessage("q1"),
        AIMessage("looking", tool_calls=[CALL]),
        ToolMessage("secret result", tool_call_id="1"),
        AIMessage("a1"),
        SystemMessage("rules"),
        HumanMessage("q2"),
    ]
    assert _extract_conversation_context(messages) == "q1 a1 q2"


def test_five_questions_leave_three():
    """A picture alone is not a turn; answers before the first of them stay out."""
    messages = [message for i in range(5) for message in (HumanMessage(f"q{i}"), AIMessage(f"a{i}"))]
    messages.append(HumanMessage([{"type": "image_url", "image_url": {"url": "x"}}]))
    assert _extract_conversation_context(messages) == "q2 a2 q3 a3 q4 a4"
    assert _extract_conversation_context(messages, 1) == "q4 a4"
    assert _extract_conversation_context(messages, 0) == ""
    assert _extract_conversation_context([]) == ""


def test_text_of_every_shape_of_content():
    """Plain text, parts, dicts of OpenAI's shape, and nothing."""
    assert (
        extract_text(
            HumanMessage(
                [{"type": "text", "text": "看图"}, {"type": "image_url", "image_url": {"url": "x"}}, "说明"]
            )
        )
        == "看图 说明"
    )
    assert extract_text({"role": "user", "content": " hi "}) == "hi"
    assert extract_text(SimpleNamespace(content=None)) == extract_text(object()) == ""
    assert (
        _extract_conversation_context(
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        )
        == "a b"
    )


def test_memory_is_at_the_head():
    """The document's message, exactly; the messages it was given are not touched."""
    messages = [HumanMessage("怎么写测试 pytest？")]
    state = {"messages": messages}
    before = copy.deepcopy(messages)
    given = MemoryMiddleware(DATA).before_model(state, None)
    assert given is not None
    first, *rest = given["messages"]
    assert isinstance(first, SystemMessage)
    assert (first.name, rest) == ("memory_context", messages)
    assert first.content == "<memory>\nFacts:\n- Prefers pytest for testing\n- Uses Docker\n</memory>"
    assert messages == before
    assert state["messages"] is messages


def test_memory_is_refreshed_and_not_repeated():
    """Before every call, also after tools; one memory message, that of now, and equal states give equal bytes."""
    middleware = MemoryMiddleware(DATA)
    messages = [HumanMessage("pytest")]
    seen = []
    for more in (
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("r", tool_call_id="1"),
        HumanMessage("docker 部署 docker"),
    ):
        messages = middleware.before_model({"messages": messages}, None)["messages"]
        assert sum(message.name == "memory_context" for message in messages) == 1
        seen.append(messages[0].content)
        messages = [*messages, more]
    last = middleware.before_model({"messages": [HumanMessage("docker docker")]}, None)["messages"][0].content
    assert seen[0] == seen[1] == seen[2] != last


def test_memory_text_says_nothing_about_the_topic():
    """An earlier memory message is no part of the conversation, whatever its role."""
    middleware = MemoryMiddleware(DATA, role="user")
    (memory, _) = middleware.before_model({"messages": [HumanMessage("hello")]}, None)["messages"]
    assert isinstance(memory, HumanMessage)
    assert _extract_conversation_context([memory, HumanMessage("hello")]) == "hello"


def test_switched_off_or_nothing_to_say():
    """None changes nothing; a memory message of before is taken away."""
    state = {"messages": [HumanMessage("hi")]}
    assert MemoryMiddleware(DATA, config={"memory": {"enabled": False}}).before_model(state) is None
    assert MemoryMiddleware().before_model(state) is None
    stale = {"messages": [SystemMessage("old", name="memory_context"), HumanMessage("hi")]}
    assert MemoryMiddleware(DATA, config=FactSettings(enabled=False)).before_model(stale) == {
        "messages": [HumanMessage("hi")]
    }


def test_memory_that_cannot_be_read_costs_no_answer(tmp_path, caplog):
    """The log says so."""
    file = tmp_path / "memory.json"
    file.write_text("{")
    assert MemoryMiddleware(file).before_model({"messages": [HumanMessage("hi")]}) is None
    assert "memory could not be read" in caplog.text


def test_without_langchain_a_plain_message_is_in(monkeypatch):
    """With the same fields."""
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    memory = MemoryMiddleware(DATA).before_model({"messages": [{"role": "user", "content": "hi"}]})[
        "messages"
    ][0]
    assert (memory.type, memory.name, memory.content[:8]) == ("system", "memory_context", "<memory>")


def test_defaults_are_the_documents():
    """And an old file without the new keys, or with keys of others, keeps working."""
    assert memory_config() == memory_config({}) == FactSettings(True, 2000, 3, 0.6, 0.4)
    old = {
        "memory": {
            "enabled": True,
            "max_injection_tokens": 500,
            "storage_path": "memory.json",
            "debounce_seconds": 30,
        }
    }
    assert memory_config(old) == FactSettings(max_injection_tokens=500)
    assert memory_config({"max_context_turns": 1, "similarity_weight": 1}).max_context_turns == 1
    for bad in ({"memory": [1]}, {"memory": {"max_injection_tokens": "many"}}):
        with pytest.raises(SettingsError):
            memory_config(bad)


def test_turns_are_configurable():
    """One turn sees less than three."""
    messages = [HumanMessage("docker docker docker"), HumanMessage("pytest")]
    one = MemoryMiddleware(DATA, config={"max_context_turns": 1}).before_model({"messages": messages})
    three = MemoryMiddleware(DATA).before_model({"messages": messages})
    assert one["messages"][0].content.index("pytest") < one["messages"][0].content.index("Docker")
    assert three["messages"][0].content.index("Docker") < three["messages"][0].content.index("pytest")


def test_weights_are_configurable():
    """All for similarity, or all for confidence, by the document's keys."""
    data = {
        "facts": [{"content": "Uses Docker", "confidence": 1.0}, {"content": "pytest", "confidence": 0.1}]
    }
    first = {}
    for weights in ((0.0, 1.0), (1.0, 0.0)):
        config = {"memory": dict(zip(("similarity_weight", "confidence_weight"), weights, strict=True))}
        given = MemoryMiddleware(data, config=config).before_model({"messages": [HumanMessage("pytest")]})
        first[weights] = given["messages"][0].content.splitlines()[2]
    assert {(0.0, 1.0): "- Uses Docker", (1.0, 0.0): "- pytest"} == first


# -- in LangChain's create_agent ---------------------------------------------------------------------------------------


def test_it_is_langchains_only_where_langchain_is():
    """Without LangChain's agents it is a plain class, nothing is imported for it, and it says what create_agent needs."""
    code = (
        "import sys\n"
        "from pagefile.standalone import MemoryMiddleware\n"
        "made = MemoryMiddleware({'facts': []})\n"
        "assert type(made) is MemoryMiddleware and 'langchain' not in sys.modules\n"
        "try:\n    made.tools\nexcept AttributeError as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "import langchain.agents before" in told
    assert "pagefile.integrations.langchain.PagefileMiddleware" in told


async def test_in_an_agent_memory_stays_out_of_the_state():
    """F22: each model call has it once, sync and async, the thread never; the document's own method is still there."""
    middleware = MemoryMiddleware(DATA)
    assert isinstance(middleware, AgentMiddleware)
    assert "MemoryMiddleware" == middleware.name
    assert (
        middleware.before_model({"messages": [HumanMessage("pytest")]})["messages"][0].name
        == "memory_context"
    )
    model = Recorder(script=[AIMessage("a"), AIMessage("b")])
    agent = create_agent(model, [], system_prompt="BASE", middleware=[middleware])
    states = [
        agent.invoke({"messages": [HumanMessage("pytest?")]}),
        await agent.ainvoke({"messages": [HumanMessage("x")]}),
    ]
    assert [["human", "ai"]] * 2 == [[one.type for one in state["messages"]] for state in states]
    assert [1, 1] == [sum(one.name == "memory_context" for one in call) for call in model.calls]
