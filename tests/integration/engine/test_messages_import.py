"""Messages that come from a file: whatever is in the line can be shown and given back, or the line is refused."""

import copy
import json

import pytest

from pagefile import Memory, TransferError
from tests.transcripts import ASKED, LOOKED, SAID, SEEN

pytestmark = pytest.mark.anyio

BLOCKS = [{"type": "text", "text": "seen"}, {"type": "unheard of", "n": 1}]
MESSAGES = [
    *ASKED,
    *LOOKED,
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": BLOCKS}]},
    *SAID,
]


@pytest.fixture
async def lines(tmp_path):
    """An export with one turn; its first message has a picture, the others thoughts, a call and a result."""
    async with Memory.open("memory://") as memory:
        await memory.conversation("c", user_id="ada").record(messages=MESSAGES)
        await memory.export(tmp_path / "out.jsonl")
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def damaged(lines, change):
    """The lines with a change in the turn's layout, and the number of that line."""
    lines = copy.deepcopy(lines)
    number = next(number for number, line in enumerate(lines, 1) if line["type"] == "turn")
    change(lines[number - 1]["layout"])
    return lines, number


def written(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def part(value, message=0):
    return lambda layout: layout[message]["parts"].__setitem__(0, value)


def given(value, message=0):
    return lambda layout: layout[message].__setitem__("given", value)


MEDIA = {"type": "media", "kind": "image"}
DAMAGE = {
    "a text that is a number": part({"type": "text", "text": 5}),
    "a text that is missing": part({"type": "text"}),
    "a thought that is nothing": part({"type": "reasoning", "text": None}),
    "a seal that is a list": part({"type": "reasoning", "text": "t", "sealed": []}),
    "a size in words": part(MEDIA | {"size": "big"}),
    "a size below zero": part(MEDIA | {"size": -1}),
    "tokens in words": part(MEDIA | {"tokens": "many"}),
    "a hash that is a number": part(MEDIA | {"blob": 5}),
    "a kind that is unheard of": part(MEDIA | {"kind": "smell"}),
    "a part that is a text": part("x"),
    "a part of no type": part({}),
    "a step that is a text": part({"type": "tool_call", "step": "0"}),
    "a step that is true": part({"type": "tool_call", "step": False}),
    "an error that is a text": part({"type": "tool_result", "step": 0, "error": "yes"}),
    "a text for a picture": part({"type": "tool_result", "step": 0, "media": [{"type": "text", "text": ""}]}),
    "a picture of no kind": part({"type": "tool_result", "step": 0, "media": [MEDIA | {"kind": 5}]}),
    "a message that is a text": lambda layout: layout.__setitem__(0, "x"),
    "parts that are a text": lambda layout: layout[0].__setitem__("parts", "x"),
    "a role that is a list": lambda layout: layout[0].__setitem__("role", []),
    "a reference in words": given({"$part": "x"}),
    "a reference to no part": given({"content": {"$part": [9]}}),
    "a reference to no step": given({"content": {"$input": 9}}),
    "a reference of no kind": given({"content": {"$what": 0}}),
    "a reference that is a number": given({"content": {"$result": 0}}),
    "a spelling that is unheard of": given({"content": {"$arguments": [0, "upside down"]}}, 1),
    "a picture that is not the message's": given({"content": {"$blob": ["0" * 64]}}),
    "a picture read as a text": lambda layout: layout[0].__setitem__(
        "given", {"content": {"$blob_text": layout[0]["parts"][0]["blob"]}}
    ),
    "a thought that is not JSON": given({"content": {"$part_json": 0}}, 1),
    "a result that is not JSON": given({"content": {"$result_json": [0, 0, 4]}}, 2),
    "a message as it came that is a text": given("x"),
    "a message as it came that is a reference": given({"$part": [1]}),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_message_is_refused_with_its_line(tmp_path, lines, change):
    """Nothing of the file is imported; later it would cost a window its history, or `messages()` its answer."""
    bad, number = damaged(lines, change)
    async with Memory.open("memory://") as memory:
        with pytest.raises(TransferError, match=f"Line {number} .*nothing of the file was imported"):
            await memory.import_(written(tmp_path / "in.jsonl", bad))
        assert [] == list(await memory.conversations())


async def test_the_same_lines_undamaged_are_read(tmp_path, lines):
    """What the test above breaks is whole."""
    async with Memory.open("memory://") as memory:
        await memory.import_(written(tmp_path / "in.jsonl", lines))
        chat = memory.conversation("c", user_id="ada")
        assert MESSAGES == await chat.messages((await chat.turns())[0])
        assert () == (await chat.context("next")).receipt.degraded


async def test_an_archived_result_is_read_though_its_text_is_on_another_line(tmp_path):
    """References into a page's text cannot be followed by its placeholder, and are no damage."""
    long = [{"type": "text", "text": "a cat " * 2000}, {"type": "unheard of", "n": 1}]
    messages = [*ASKED, *LOOKED, copy.deepcopy(SEEN[0]), *SAID]
    messages[2]["content"][0]["content"] = long
    file = tmp_path / "all.jsonl"
    async with Memory.open("memory://") as memory:
        turn = await memory.conversation("c", user_id="ada").record(messages=messages)
        assert not turn.steps[0].whole
        await memory.export(file)
    async with Memory.open("memory://") as memory:
        await memory.import_(file)
        assert messages == await memory.conversation("c", user_id="ada").messages(turn.id)
