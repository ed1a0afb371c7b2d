"""The tools of every framework, called with whatever a model sends."""

import pytest

from pagefile import Memory, Settings
from pagefile.standalone.memory_tools import ToolCaller

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


async def test_a_model_corrects_and_retracts_by_id_and_by_words():
    """Each change is one revision, and undoing it brings the fact back; facts of other projects are not named."""
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        await memory.remember("The user is allergic to nuts", user_id="ada", project="b")
        await memory.remember("The user lives in Oslo", user_id="ada", category="identity")
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        answer = await caller.answer(
            "correct", {"fact": "lives in Oslo.", "text": "The user lives in Bergen"}
        )
        (fact,) = [one for one in await memory.facts("ada") if one.project is None]
        assert ("The user lives in Bergen", "identity") == (fact.text, fact.category)
        assert fact.id[:8] in answer
        await memory.undo("ada")
        (fact,) = [one for one in await memory.facts("ada") if one.project is None]
        assert "The user lives in Oslo" == fact.text
        assert "retracted" in await caller.answer("retract", {"fact": fact.id[:8]})
        assert ["The user is allergic to nuts"] == [one.text for one in await memory.facts("ada")]
        await memory.undo("ada")
        assert fact.id in [one.id for one in await memory.facts("ada")]
        assert "no such fact" in await caller.answer("retract", {"fact": "The user is allergic to nuts"})


@pytest.mark.parametrize(
    ("held", "given"),
    [
        ("The user takes 5 mg warfarin", "The user takes 50 mg warfarin"),
        ("The user is not allergic to penicillin", "The user is allergic to penicillin"),
        ("The user's sister is allergic to nuts", "The user is allergic to nuts"),
        ("The user lives in Berlin", "the user works in Berlin"),
    ],
)
async def test_a_fact_that_is_only_alike_is_shown_and_left_alone(held, given):
    """Even if it is the only one: the model has to name it by its id."""
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        fact = await memory.remember(held, user_id="ada")
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        for tool, arguments in (("retract", {}), ("correct", {"text": "The user is well"})):
            answer = await caller.answer(tool, {"fact": given, **arguments})
            assert f"{fact.id[:8]}: {held}" in answer
        assert [held] == [one.text for one in await memory.facts("ada")]


async def test_a_long_argument_is_not_echoed():
    """What matches nothing is named by its beginning."""
    async with Memory.open("memory://") as memory:
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        for tool, name in (("retract", "fact"), ("recall", "query"), ("search_tool_history", "query")):
            assert len(await caller.answer(tool, {name: "x" * 100_000})) < 500


async def test_a_model_is_asked_which_fact_it_means():
    """Two that fit are listed with the beginnings of their ids; nothing is changed."""
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        for kind in ("green", "black"):
            await memory.remember(f"The user drinks {kind} tea every morning", user_id="ada")
        caller = ToolCaller(memory, memory.conversation("c", user_id="ada"))
        answer = await caller.answer("retract", {"fact": "The user drinks tea every morning"})
        assert all(fact.id[:8] in answer for fact in await memory.facts("ada"))
        assert 2 == len(await memory.facts("ada"))
        for given in ({}, {"fact": 7}):
            assert "missing argument" in await caller.answer("retract", given)
        assert "missing argument" in await caller.answer("correct", {"fact": "tea"})
