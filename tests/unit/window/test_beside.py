"""What a request holds beside its messages, and what models can take."""

import pytest
from pydantic import BaseModel

from pagefile import BudgetError, Memory, Settings, SettingsError
from pagefile.text.tokens import KNOWN_COUNTERS
from pagefile.window.budget import UNPUBLISHED, known_models, model_limits, tool_texts, tools_tokens

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
OPENAI = {
    "type": "function",
    "function": {"name": "weather", "description": "Of a city.", "parameters": SCHEMA},
}
ANTHROPIC = {"name": "weather", "description": "Of a city.", "input_schema": SCHEMA}
MCP = {"name": "weather", "description": "Of a city.", "inputSchema": SCHEMA}


@pytest.mark.parametrize("tool", [OPENAI, ANTHROPIC, MCP])
def test_a_tool_costs_its_json_in_every_shape(tool):
    """Every character of the schema is counted, and a little for the frame."""
    (text,) = tool_texts([tool])
    assert "weather" in text
    assert tools_tokens([text], len) == len(text) + 8


@pytest.mark.parametrize(
    "tools", [[BaseModel], ["weather", 3], "weather", OPENAI, [3], [{"name": object()}], None, 7]
)
def test_what_is_no_list_of_schemas_is_refused(tools):
    """With words that say what to give."""
    with pytest.raises(SettingsError, match=r"tool"):
        tool_texts(tools)


async def test_tools_and_answer_are_taken_from_the_budget():
    """Messages, tools and answer together are never over it, and the receipt has a line for each."""
    async with Memory.open("memory://", settings=Settings(checkpoints="manual")) as memory:
        chat = memory.conversation("c")
        for number in range(60):
            await chat.record(user=f"question {number} " * 5, assistant=f"answer {number} " * 5)
        plain = await chat.context("now?", window_tokens=1000)
        window = await chat.context("now?", window_tokens=1000, tools=[OPENAI, MCP], answer_tokens=300)
    reserved = window.receipt.reserved
    assert (plain.receipt.reserved, set(reserved), reserved["answer"]) == ({}, {"tools", "answer"}, 300)
    assert window.tokens + sum(reserved.values()) <= window.budget == 1000
    assert len(window.parts.turns) < len(plain.parts.turns)
    assert window.tokens < plain.tokens <= 1000


async def test_what_does_not_fit_says_what_takes_how_much():
    """Instructions, question, tools and answer, each by its tokens."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c")
        with pytest.raises(BudgetError, match=r"instructions 301, current \d+ tokens.* 200 for the answer"):
            await chat.context("now?", instructions="word " * 300, window_tokens=400, answer_tokens=200)
        with pytest.raises(
            BudgetError, match=r"no room for messages .*window of 100 tokens, less 200 for the answer"
        ):
            await chat.context("now?", window_tokens=100, answer_tokens=200)


async def test_a_model_gives_the_budget():
    """Its context size, at most; the tokenizer is named where it is another."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c")
        named = await chat.context("now?", window_for="gpt-5-2025-08-07")
        capped = await chat.context("now?", window_for="gpt-4", window_tokens=100_000)
        smaller = await chat.context("now?", window_for="gpt-4", window_tokens=3000)
        foreign = await chat.context("now?", window_for="claude-sonnet-4-5")
        with pytest.raises(SettingsError, match=r"'gpt-55' is not in .*gpt-5.*window_tokens="):
            await chat.context("now?", window_for="gpt-55")
        with pytest.raises(SettingsError, match="must be the name of a model, not list"):
            await chat.context("now?", window_for=[])
    assert [window.budget for window in (named, capped, smaller)] == [272_000, 8192, 3000]
    assert named.receipt.degraded == ()
    assert "gpt-4 counts with cl100k_base" in capped.receipt.degraded[0]
    assert "not published" in foreign.receipt.degraded[0]
    assert foreign.receipt.reserved == {"tokenizer": 40_000}


async def test_the_settings_can_name_the_model():
    """Everything that asks for the size of a window gets the model's."""
    async with Memory.open("memory://", settings=Settings(window_for="gpt-4o", answer_tokens=1000)) as memory:
        window = await memory.conversation("c").context("now?")
        assert (window.budget, dict(window.receipt.reserved)) == (128_000, {"answer": 1000})
        assert memory.settings.window_tokens == 128_000
    with pytest.raises(SettingsError, match="not in Pagefile's table"):
        async with Memory.open("memory://", settings=Settings(window_for="nothing-1")):
            pass


async def test_a_call_with_tools_is_made_again_exactly():
    """A replay knows what was reserved, and can be asked with another model or more room for the answer."""
    async with Memory.open("memory://", settings=Settings(checkpoints="manual")) as memory:
        chat = memory.conversation("c")
        for number in range(40):
            await chat.record(user=f"question {number} " * 5, assistant=f"answer {number} " * 5)
        window = await chat.context("now?", window_tokens=800, tools=[OPENAI], answer_tokens=100)
        found = await chat.explain(window.id)
        less = await chat.replay(window.id, answer_tokens=500)
        other = await chat.replay(window.id, window_for="gpt-4")
    assert found.exact
    assert found.window is not None
    assert found.window.receipt.reserved == window.receipt.reserved
    assert less.after.receipt.reserved["answer"] == 500
    assert less.after.tokens < window.tokens
    assert other.after.budget == 8192


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-5", "gpt-5"),
        ("GPT-5-mini-2025-08-07", "gpt-5-mini"),
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("models/gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("azure_openai:gpt-5", "gpt-5"),
        ("openrouter:anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("bedrock:us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
    ],
)
def test_dated_names_and_providers_are_understood(name, known):
    """As providers write them."""
    assert model_limits(name).name == known


@pytest.mark.parametrize(
    "name", ["gpt-6", "openai:gpt-6", "mistral:7b", "openai:", "gpt-5-turbo", "claude", "", "gpt-4o-realtime"]
)
def test_what_is_not_in_the_table_is_not_guessed(name):
    """A family's name is not enough."""
    with pytest.raises(SettingsError, match="window_tokens="):
        model_limits(name)


def test_the_table_is_in_order():
    """Every row has limits that make sense, and a tokenizer that can be opened or is said to be unpublished."""
    for limits in known_models().values():
        assert 0 < limits.answer_tokens <= limits.window_tokens * 2
        assert limits.window_tokens >= 4096
        assert limits.tokenizer in {*KNOWN_COUNTERS, UNPUBLISHED}
