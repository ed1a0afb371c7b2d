"""A loop of one's own offers every tool and answers every call."""

import pytest

from pagefile import Memory
from pagefile.standalone import ToolCaller, tool_schemas

pytestmark = pytest.mark.anyio


async def test_every_tool_that_is_offered_is_answered(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as memory:
        fact = await memory.remember("Lives in Oslo.", user_id="ada")
        chat = memory.conversation("c", user_id="ada")
        caller = ToolCaller(memory, chat)
        given = {"fact": fact.text, "text": "Lives in Bergen.", "query": "home", "uuid": "none"}
        for schema in tool_schemas("en", facts=True):
            named = schema["parameters"]["required"]
            assert await caller.answer(schema["name"], {name: given[name] for name in named})
            if schema["name"] == "correct":
                given["fact"] = given["text"]
        # The last one retracts what was corrected; what was remembered beside it is the same fact.
        assert [one.text for one in await memory.facts("ada")] == []


@pytest.mark.parametrize("shape", ["plain", "openai", "responses", "anthropic", "mcp"])
async def test_facts_are_offered_only_if_asked_for(shape):
    assert len(tool_schemas("en", shape)) == 2
    assert len(tool_schemas("en", shape, facts=True)) == 6
