"""A LangChain agent with all defaults is spoken to in the language of its user."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from pagefile import Memory
from pagefile.integrations.langchain import PagefileMiddleware
from tests.speaking import EN, ZH

from .models import Recorder, calls_tool


class Listener(Recorder):
    """Remembers how the tools were described as well."""

    described: list = []  # noqa: RUF012 - pydantic copies defaults

    def bind_tools(self, tools, **kwargs):
        self.described[:] = [convert_to_openai_tool(one)["function"] for one in tools]
        return super().bind_tools(tools, **kwargs)


def words(schema: dict) -> str:
    about = [one.get("description", "") for one in schema["parameters"]["properties"].values()]
    return "\n".join([schema["description"], *about])


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", embedder="none") as opened:
        yield opened


@pytest.mark.parametrize("talk", [ZH, EN], ids=["zh", "en"])
async def test_every_request_is_in_the_language_of_the_user(memory, talk):
    """The guide, placeholders, memory, what our tools answer and how they are described."""

    @tool(description=talk.query)
    def search_docs(query: str) -> str:
        return talk.document(12_000)

    model = Listener(
        script=[
            calls_tool("search_docs", {"query": talk.query}, "c1"),
            AIMessage(talk.reply),
            calls_tool("load_tool_history", {"uuid": "-"}, "c2"),
            calls_tool("search_tool_history", {"query": "-"}, "c3"),
            calls_tool("recall", {"query": ""}, "c4"),
            calls_tool("remember", {"text": talk.fact}, "c5"),
            AIMessage(talk.reply),
        ]
    )
    agent = create_agent(
        model, [search_docs], middleware=[PagefileMiddleware(memory)], system_prompt=talk.instructions
    )
    config = {"configurable": {"thread_id": "c", "user_id": "ada"}}
    first = await agent.ainvoke({"messages": [HumanMessage(talk.first)]}, config)
    again = [*first["messages"], HumanMessage(talk.asking)]
    await agent.ainvoke({"messages": again}, config)
    assert len(model.calls) == 7
    for call in model.calls:
        assert isinstance(call[0], SystemMessage)
        for message in call:
            assert [] == talk.foreign(str(message.text))
    # The guide is the one that the window records.
    chat = memory.conversation("c", user_id="ada")
    told = await chat.explain((await chat.calls())[0].id)
    assert told.window.parts.guide in model.calls[2][0].text
    assert told.window.parts.guide
    assert "📎" in "".join(str(message.text) for message in model.calls[2])
    assert 7 == len(model.described)
    for schema in model.described:
        assert [] == talk.foreign(words(schema)), json.dumps(schema, ensure_ascii=False)


@pytest.mark.parametrize("talk", [ZH, EN], ids=["zh", "en"])
async def test_a_greeting_is_answered_in_the_language_of_the_agents_own_prompt(memory, talk):
    """And the bill has that prompt, so that what explain shows is what the model saw."""
    model = Listener(script=[AIMessage("Hi!")])
    agent = create_agent(model, [], middleware=[PagefileMiddleware(memory)], system_prompt=talk.instructions)
    config = {"configurable": {"thread_id": "c", "user_id": "ada"}}
    await agent.ainvoke({"messages": [HumanMessage("hi")]}, config)
    ((system, *_),) = model.calls
    assert [] == talk.foreign(str(system.text))
    assert 1 == system.text.count(talk.instructions)
    chat = memory.conversation("c", user_id="ada")
    told = await chat.explain((await chat.calls())[0].id)
    assert talk.instructions in told.messages[0]["content"]
    assert "instructions" in [block.block for block in told.blocks]


async def test_a_long_prompt_of_the_agents_own_leaves_room_for_the_conversation(memory):
    """It is counted once: the newest turns are beside it, within the window."""
    for number in range(20):
        await memory.conversation("c", user_id="ada").record(
            f"Question {number} " + "about pumps " * 20, "Noted."
        )
    model = Listener(script=[AIMessage("Hi!")])
    middleware = [PagefileMiddleware(memory, window_tokens=3000)]
    agent = create_agent(model, [], middleware=middleware, system_prompt="You are terse. " * 400)
    config = {"configurable": {"thread_id": "c", "user_id": "ada"}}
    await agent.ainvoke({"messages": [HumanMessage("And now?")]}, config)
    said = "".join(str(message.text) for message in model.calls[0])
    assert 2500 < memory.engine.counter.count(said) <= 3000
    assert "Question 19" in said
