"""The tools of every framework, called with whatever a model sends."""

import pytest

from pagefile import Memory
from pagefile.integrations.tools import ToolCaller

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "given", [{}, {"text": ""}, {"text": "  "}, {"text": {"name": "Ada"}}, {"text": ["a"]}, {"text": 5}]
)
async def test_only_a_text_is_remembered(given):
    """The model is told what is missing, and nothing is kept."""
    async with Memory.open("memory://") as memory:
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        assert "missing argument" in await caller.answer("remember", given)
        assert [] == await memory.facts("ada")


@pytest.mark.parametrize("given", [{}, {"query": " "}, {"query": ["a"]}, {"query": 7}])
async def test_only_a_text_is_recalled(given):
    """Likewise."""
    async with Memory.open("memory://") as memory:
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        assert "missing argument" in await caller.answer("recall", given)
