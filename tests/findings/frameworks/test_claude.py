"""The Claude Agent SDK: sessions of its own command, and the tools by themselves."""

import asyncio
import json
import threading
from pathlib import Path

import pytest

from pagefile import Memory, Settings
from tests.findings.marks import finding
from tests.heavy import heavy, is_there
from tests.integration.claude.stub import MessagesStub

from .promises import PICTURE, promised, words

if is_there("claude"):
    from claude_agent_sdk import AgentDefinition, ClaudeSDKClient

    from pagefile.integrations.claude_agent import ClaudeMemory

    from .claude_session import answers_a_tool, ask, last_words, logged, options, result_of, text, use

README = Path(__file__).parents[3] / "README.md"
#: One dot, as PNG in base64.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SETTINGS = Settings(language="en")

pytestmark = heavy("claude")


# -- F6: sub-agents ----------------------------------------------------------------------------------------------------


def delegating(is_started):
    """The outer agent starts a helper; the helper runs a command; its answer comes as a notification."""

    def script(request):
        inner = "Agent" not in [tool["name"] for tool in request["tools"]]
        if "task-notification" in json.dumps(request["messages"][-2:]):
            return [text("The helper says 42.")]
        if answers_a_tool(request):
            return [text("INNER ANSWER 42" if inner else "I started it.")]
        if inner:
            # A helper in the background does its work after the prompt that started it has its answer.
            is_started.wait(timeout=60)
            return [use("Bash", {"command": "echo inner-tool"})]
        return [use("Agent", {"description": "ask", "prompt": "INNER question", "subagent_type": "helper"})]

    return script


@pytest.fixture(scope="module")
def delegated(tmp_path_factory):
    """The log after a prompt that made a sub-agent work in the background."""
    return asyncio.run(delegate(tmp_path_factory.mktemp("delegated")))


async def delegate(folder):
    helper = AgentDefinition(description="helps", prompt="You help.", tools=["Bash"])
    results = []
    is_started = threading.Event()
    with MessagesStub(delegating(is_started)) as stub:
        given = options(stub, folder, agents={"helper": helper}, allowed_tools=["Bash", "Agent"])
        async with Memory.open(f"sqlite:///{folder}/agent.db", settings=SETTINGS, embedder="none") as memory:
            async with ClaudeSDKClient(ClaudeMemory(memory, user_id="ada").options(given)) as client:
                await client.query("OUTER question")
                # One result when the helper is started, another when it is done.
                while len(results) < 2:
                    results.append((await result_of(client)).result)
                    is_started.set()
            turns = await logged(memory)
    if results != ["I started it.", "The helper says 42."]:
        pytest.fail(f"The command did something else than it should: {results}")
    return turns


@finding("frameworks-F6")
def test_only_what_the_user_said_is_a_turn(delegated):
    """What tells the model that a sub-agent is done is not recorded as the user's words."""
    assert ["OUTER question"] == [turn.user for turn in delegated if turn.user]


@finding("frameworks-F6")
def test_what_a_sub_agent_did_is_in_the_log(delegated):
    """The call that started the sub-agent and the results of its tools are steps of the user's turn."""
    steps = [(step.tool, step.result) for step in delegated[0].steps]
    assert any("inner-tool" in result for _, result in steps)
    assert "Agent" in [tool for tool, _ in steps]


@finding("frameworks-F6")
def test_what_a_sub_agent_answered_is_in_the_log(delegated):
    """The answer made from what the sub-agent found is recorded."""
    assert any("42" in (turn.assistant or "") for turn in delegated)


# -- F7, F8, F15, F16: one prompt --------------------------------------------------------------------------------------


@finding("frameworks-F7")
async def test_what_is_said_beside_tool_calls_is_kept(memory, tmp_path):
    """What the model said before it called its tools is in the log, and so in the windows made from it."""

    def script(request):
        if answers_a_tool(request):
            return [text("done")]
        calls = [use("Bash", {"command": f"echo tiny-{number}"}, number) for number in (1, 2)]
        return [text("I will run two things."), *calls]

    with MessagesStub(script) as stub:
        given = options(stub, tmp_path, allowed_tools=["Bash"])
        claude = ClaudeMemory(memory, user_id="ada", conversation_id="c")
        async with ClaudeSDKClient(claude.options(given)) as client:
            await ask(client, "Run two things.")
    window = await memory.conversation("c", user_id="ada").context("And now?")
    assert "tiny-2" in words(window.messages)
    assert "I will run two things." in words(window.messages)


@finding("frameworks-F8")
async def test_a_structured_answer_is_the_turns_answer(memory, tmp_path):
    """An answer given through `output_format` is recorded as what the assistant said."""

    def script(request):
        return [text("done")] if answers_a_tool(request) else [use("StructuredOutput", {"city": "Kyoto"})]

    with MessagesStub(script) as stub:
        given = options(stub, tmp_path, output_format={"type": "json_schema", "schema": SCHEMA})
        async with ClaudeSDKClient(ClaudeMemory(memory, user_id="ada").options(given)) as client:
            result = await ask(client, "Which city?")
    assert {"city": "Kyoto"} == result.structured_output
    (turn,) = await logged(memory)
    assert "Kyoto" in (turn.assistant or "")


@finding("frameworks-F15")
async def test_a_saved_history_with_memory_in_it_is_named(memory, tmp_path):
    """Where the SDK's transcript keeps what memory told, the README says so beside its promise."""
    await memory.remember("The user is allergic to penicillin.", user_id="ada")
    with MessagesStub(lambda _: [text("hello")]) as stub:
        given = options(stub, tmp_path)
        async with ClaudeSDKClient(ClaudeMemory(memory, user_id="ada").options(given)) as client:
            await ask(client, "Am I allergic to anything?")
        asked = json.dumps([request["messages"] for request in stub.requests if request.get("tools")])
    assert "allergic to penicillin." in asked
    saved = [file.read_text(encoding="utf-8") for file in (tmp_path / "home").rglob("*.jsonl")]
    assert saved
    promise = next(
        part for part in README.read_text(encoding="utf-8").split("\n\n") if "saved history" in part
    )
    told = "transcript" in promise
    assert told or "allergic to penicillin." not in "".join(saved)


@finding("frameworks-F16")
async def test_the_log_tells_of_a_picture_beside_the_words(memory, tmp_path):
    """A picture beside the words is named in the log."""
    source = {"type": "base64", "media_type": "image/png", "data": DOT}
    content = [text("What is this?"), {"type": "image", "source": source}]

    async def prompt():
        message = {"role": "user", "content": content}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default"}

    with MessagesStub(lambda _: [text("a dot")]) as stub:
        given = options(stub, tmp_path)
        async with ClaudeSDKClient(ClaudeMemory(memory, user_id="ada").options(given)) as client:
            await ask(client, prompt())
        assert any('"type": "image"' in last_words(request) for request in stub.requests)
    (turn,) = await logged(memory)
    assert turn.user.startswith("What is this?")
    assert PICTURE.search(turn.user)


# -- F26: the tools ----------------------------------------------------------------------------------------------------


def tools_of(memory):
    return {tool.name: tool for tool in ClaudeMemory(memory, user_id="ada").tools()}


def spoken(answer):
    """What a tool told the model."""
    return "".join(block["text"] for block in answer["content"])


@finding("frameworks-F26")
async def test_a_tool_that_cannot_do_it_says_why(memory):
    """A refused fact is answered with words that a model can read."""
    with promised("the tool answers"):
        answer = await tools_of(memory)["remember"].handler(
            {"text": "The user's router password is hunter2!Blue."}
        )
    assert spoken(answer).strip()
    assert [] == await memory.facts("ada")


@finding("frameworks-F26")
@pytest.mark.parametrize("name", ["load_tool_history", "recall"])
async def test_a_missing_argument_is_explained(memory, name):
    """A page that is not named, or no question, is answered with words that a model can read."""
    assert spoken(await tools_of(memory)[name].handler({})).strip()


@finding("frameworks-F26")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("recall", {"query": "tea"}),
        ("remember", {"text": "The user likes tea."}),
        ("load_tool_history", {"uuid": "x"}),
    ],
)
async def test_a_tool_of_a_closed_memory_says_so(database, name, given):
    """With a closed memory a tool still answers with words that a model can read."""
    async with Memory.open(f"sqlite:///{database}") as memory:
        tools = tools_of(memory)
    with promised("the tool answers"):
        answer = await tools[name].handler(given)
    assert spoken(answer).strip()
