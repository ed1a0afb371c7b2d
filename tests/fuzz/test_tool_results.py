"""Whatever a tool returns is recorded, shown and brought back; what cannot be written says so in its place."""

import json

import pytest
from hypothesis import given, settings

from pagefile import InvalidArgumentError, Memory, Settings
from pagefile.engine.arguments import checked_json, result_text
from pagefile.settings import ArchiveSettings
from pagefile.standalone import ToolResultManager
from pagefile.tiers.workspace.results import as_text, canonical, to_json

from .values import FOREIGN, JSONISH, PIECES, nested

SMALL = Settings(archive=ArchiveSettings(threshold=200))
TOOLS = ("smart_search", "get_toc", "read_page_range", "bash", "load_tool_history")


@given(JSONISH)
def test_every_result_is_a_text(value):
    """One that a database can hold; JSON wherever the value has one."""
    text = result_text(value)
    assert "\0" not in text
    text.encode()
    json.loads(canonical(value))
    as_text(value, to_json(value)).encode()


@pytest.mark.parametrize("name", FOREIGN)
def test_every_foreign_result_is_a_text(name):
    """Objects, cycles, depths and numbers that JSON has no word for: nothing raises, and what was left out is told."""
    text = result_text(FOREIGN[name])
    text.encode()
    json.loads(canonical(FOREIGN[name]))
    as_text(FOREIGN[name], to_json(FOREIGN[name])).encode()


def test_what_cannot_be_written_says_so():
    """The rest of it is there."""
    text = result_text(["可读", nested(5_000), {(1, 2): "键"}, 10**5_000])
    assert "not all of this result" in text.splitlines()[0]
    assert "可读" in text
    assert "键" in text
    assert hex(10**5_000) in text


def test_one_bad_part_does_not_cost_the_others():
    """A tool's list with something in it that raises."""
    assert ["可读", None, {"a": None}] == to_json(FOREIGN["an unspeakable part"])


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_input_is_taken_or_refused(name):
    """As JSON would give it back, or with an error that says what to give; never half."""
    try:
        value = checked_json(FOREIGN[name], "input")
    except InvalidArgumentError:
        return
    assert value == json.loads(json.dumps(value))


@pytest.mark.parametrize("depth", [101, 150, 400, 900, 100_000])
def test_what_is_too_deep_is_refused_the_same_everywhere(depth):
    """However deep the caller's own stack is: what was taken can be read, exported and shown."""
    with pytest.raises(InvalidArgumentError, match="100"):
        checked_json(nested(depth), "input")
    assert nested(100) == checked_json(nested(100), "input")


@pytest.mark.anyio
@pytest.mark.parametrize("name", FOREIGN)
async def test_a_turn_with_a_foreign_result_is_kept(name):
    """Recorded, in the next window, in the export, and in the workspace; long ones can be loaded."""
    async with Memory.open("memory://", settings=SMALL) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.record(
            "问", "答", steps=[{"tool": "bash", "input": {"a": 1}, "result": FOREIGN[name]}]
        )
        step = turn.steps[0]
        if step.page:
            assert await chat.load(step.page) == result_text(FOREIGN[name])
        window = await chat.context("再问")
        json.dumps(window.messages).encode()
        workspace = chat.workspace()
        for tool in TOOLS:
            await workspace.lookup(tool, FOREIGN[name])
            await workspace.absorb(tool, {"reg_id": "r"}, FOREIGN[name])
        workspace.text().encode()


@pytest.mark.anyio
@settings(max_examples=25)
@given(PIECES)
async def test_what_looks_like_json_is_text_all_the_same(text):
    """A result that is a text comes back as it went in."""
    async with Memory.open("memory://", settings=SMALL) as memory:
        manager = ToolResultManager(memory)
        manager.ARCHIVE_THRESHOLD = 5  # type: ignore[misc]
        shown = await manager.process_tool_result("bash", {}, text, "c")
        if shown != text:
            uuid = shown.partition(": ")[2].partition("]")[0]
            assert result_text(text) == await manager.load_tool_result(uuid)
