"""What the log keeps of an agent's messages: words beside calls, thoughts with their seal, images, errors."""

import base64

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.integrations.langchain.messages import asked, said

from .models import Recorder

THREAD = {"configurable": {"thread_id": "t", "user_id": "ada"}}
PIXELS = base64.b64encode(b"not quite a picture").decode()
PICTURE = {"type": "image", "base64": PIXELS, "mime_type": "image/png"}
CALLS = [{"name": "look", "args": {"where": place}, "id": f"c_{place}"} for place in ("up", "down")]


@tool(response_format="content")
def look(where: str) -> list:
    """Looks."""
    return [{"type": "text", "text": f"{where}: a cat"}, PICTURE]


async def ran(memory, first, content="Where is it?"):
    """The done turn of an agent that answers so, and the conversation it is in."""
    model = Recorder(script=[first, AIMessage("There.")])
    agent = create_agent(model, [look], middleware=[PagefileMiddleware(memory)])
    await agent.ainvoke({"messages": [HumanMessage(content, id="m1")]}, THREAD)
    chat = memory.conversation("t", user_id="ada")
    (turn,) = await chat.turns()
    assert ("done", "There.") == (turn.status, turn.assistant)
    return chat, turn


async def test_thoughts_of_anthropic_go_back_to_anthropic(memory):
    """A signed thought, the words behind it and both calls come back in one message, as Anthropic gave it."""
    thought = {"type": "thinking", "thinking": "Both places.", "signature": "c2lnbmVk"}
    content = [
        thought,
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c_up", "name": "look"},
    ]
    chat, turn = await ran(memory, AIMessage(content, tool_calls=CALLS))
    messages = await chat.messages(turn, shape="anthropic")
    assert ["user", "assistant", "user", "assistant"] == [message["role"] for message in messages]
    assert ["c_up", "c_down"] == [block["tool_use_id"] for block in messages[2]["content"]]
    first = messages[1]["content"]
    assert [thought, {"type": "text", "text": "I look."}] == first[:2]
    assert ["c_up", "c_down"] == [block["id"] for block in first[2:]]


async def test_thoughts_of_openai_keep_their_seal(memory):
    """An encrypted thought is kept with its id, and is no thought of Anthropic's."""
    sealed = {"type": "reasoning", "id": "rs_1", "encrypted_content": "b3BhcXVl"}
    thought = {**sealed, "summary": [{"type": "summary_text", "text": "Both places."}]}
    content = [thought, {"type": "text", "text": "I look."}]
    chat, turn = await ran(memory, AIMessage(content, tool_calls=CALLS))
    message = (await chat.messages(turn))[1]
    assert ("Both places.", [sealed], "I look.") == (
        message["reasoning_content"],
        message["reasoning_details"],
        message["content"],
    )
    assert "Both places." not in repr(await chat.messages(turn, shape="anthropic"))


async def test_images_of_user_and_tools_are_kept(memory):
    """The bytes of an image are in the log, once, whoever brought it; the question names it."""
    chat, turn = await ran(memory, AIMessage("", tool_calls=CALLS), ["What is this?", PICTURE])
    assert "What is this?\n[image: image/png, 19 bytes]" == turn.user
    assert ["up: a cat", "down: a cat"] == [step.result for step in turn.steps]
    messages = await chat.messages(turn, shape="anthropic")
    assert 3 == repr(messages).count(PIXELS)


async def test_an_error_of_a_tool_stays_one(memory):
    """A tool message with the status "error" is an error in the log."""
    agent = create_agent(
        Recorder(script=[AIMessage("", tool_calls=CALLS[:1]), AIMessage("No.")]),
        [look],
        middleware=[PagefileMiddleware(memory), Refusing()],
    )
    await agent.ainvoke({"messages": [HumanMessage("Where?", id="m1")]}, THREAD)
    chat = memory.conversation("t", user_id="ada")
    (turn,) = await chat.turns()
    (result,) = (await chat.messages(turn, shape="anthropic"))[2]["content"]
    assert ("not allowed", True) == (result["content"], result["is_error"])


class Refusing(AgentMiddleware):
    """Answers every call with an error."""

    async def awrap_tool_call(self, request, handler):
        return ToolMessage("not allowed", tool_call_id=request.tool_call["id"], name="look", status="error")


def test_what_no_database_holds_is_replaced():
    """NUL characters in words and arguments are replaced, as those in results are."""
    message = said(AIMessage("a\0b", tool_calls=[{"name": "look", "args": {"where": "\0"}, "id": "c"}]))
    assert "a␀b" == message.text
    assert "a␀b" == asked([HumanMessage("a\0b")]).text


async def test_images_that_the_window_has_no_room_for_are_named(memory):
    """The turn stays with its words, and so does what came before it."""
    model = Recorder(script=[AIMessage("Hello."), AIMessage("A cat."), AIMessage("Momo.")])
    agent = create_agent(
        model, [], middleware=[PagefileMiddleware(memory, window_tokens=600)], checkpointer=InMemorySaver()
    )
    given = {"image_url": {"url": f"data:image/png;base64,{PIXELS}"}, "type": "image_url"}
    await agent.ainvoke({"messages": [HumanMessage("I am Ada.", id="m1")]}, THREAD)
    chat = memory.conversation("t", user_id="ada")
    shown = [{"type": "text", "text": "What is this?"}, given]
    await chat.record(
        messages=[{"role": "user", "content": shown}, {"role": "assistant", "content": "A cat."}], id="m2"
    )
    thread = [HumanMessage(shown, id="m2"), AIMessage("A cat."), HumanMessage("Its name?", id="m3")]
    await agent.ainvoke({"messages": thread}, THREAD)
    sent = [message.content for message in model.calls[-1] if message.type == "human"]
    assert "I am Ada." in repr(model.calls[-1])
    named = {"type": "text", "text": "[image: image/png, 19 bytes]"}
    assert [{"type": "text", "text": "What is this?"}, named] in sent
    assert given in shown
