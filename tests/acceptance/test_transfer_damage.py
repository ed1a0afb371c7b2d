"""Exports that are damaged inside a record, and those that hold what a memory accepts and no id would be."""

import json

import pytest

from pagefile import Memory
from pagefile.errors import TransferError


async def test_a_record_with_a_part_of_an_unknown_type_is_damaged(tmp_path):
    """Only a whole record may be of a later version and passed over; a turn is imported whole or nothing is."""
    path = tmp_path / "export.jsonl"
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "there"}]},
        {"role": "assistant", "content": "hi"},
    ]
    async with Memory.open("memory://") as memory:
        await memory.conversation("c").record(messages=messages, id="t")
        await memory.conversation("c").record("and", "now", id="u")
        await memory.export(path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    turn = next(line for line in lines if line.get("id") == "t")
    turn["layout"][0]["parts"][0]["type"] = "txet"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    async with Memory.open("memory://") as memory:
        with pytest.raises(TransferError, match=r"is damaged .*nothing of the file was imported"):
            await memory.import_(path)
        assert [] == list(await memory.conversations())


@pytest.mark.parametrize("source", ["", " ", "a note of 2024, " * 30])
async def test_what_is_remembered_can_be_moved(tmp_path, source):
    """Where a fact came from is any text."""
    path = tmp_path / "export.jsonl"
    async with Memory.open("memory://") as memory:
        await memory.remember("Works at the clinic", user_id="ada", source=source)
        await memory.export(path)
    async with Memory.open("memory://") as memory:
        await memory.import_(path)
        assert [source] == [fact.source_turn for fact in await memory.facts("ada")]


@pytest.mark.parametrize("name", ["at", "created"])
async def test_a_turn_at_the_end_of_time_is_damage(tmp_path, name):
    """After it nothing more could be recorded."""
    path = tmp_path / "export.jsonl"
    async with Memory.open("memory://") as memory:
        await memory.conversation("c").record("one", "two")
        await memory.export(path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[-1][name] = "9999-12-31T23:59:59.999999Z"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    async with Memory.open("memory://") as memory:
        with pytest.raises(TransferError, match=r"is damaged .*nothing of the file was imported"):
            await memory.import_(path)
        await memory.conversation("c").record("three", "four")
