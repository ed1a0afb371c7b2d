"""What a conversation is about, and where a fact belongs, is kept and shown."""

import json

import pytest

from pagefile import InvalidArgumentError, Memory


async def test_project_language_and_time_zone_are_kept_with_the_conversation(tmp_path):
    """From the first turn on, until others are named; in the head, in a list, in an export and after an import."""
    url = f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url) as memory:
        chat = memory.conversation(
            "trip", user_id="ada", project="alpha", language="zh", timezone="Asia/Shanghai"
        )
        await chat.record("去哪里？", "上海")
        head = await memory.conversation("trip", user_id="ada").head()
        assert (head.project, head.language, head.timezone) == ("alpha", "zh", "Asia/Shanghai")
        await memory.conversation("trip", user_id="ada", language="en").record("And then?", "Home.")
        (head,) = await memory.conversations(user_id="ada")
        assert (head.project, head.language, head.timezone) == ("alpha", "en", "Asia/Shanghai")
        await memory.export(tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    (line,) = [line for line in lines if line["type"] == "conversation"]
    assert (line["project"], line["language"], line["timezone"]) == ("alpha", "en", "Asia/Shanghai")
    async with Memory.open(f"sqlite:///{tmp_path}/b.db") as memory:
        await memory.import_(tmp_path / "out.jsonl")
        (copied,) = await memory.conversations(user_id="ada")
        assert (copied.project, copied.language, copied.timezone) == ("alpha", "en", "Asia/Shanghai")


async def test_a_fact_keeps_its_project_and_its_agent(tmp_path):
    """As it was given; nothing for the one that named none."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as memory:
        await memory.remember("Deploys on Fridays.", user_id="ada", project="alpha", agent="coder")
        await memory.remember("Likes tea.", user_id="ada")
        facts = await memory.facts("ada")
        assert [(fact.project, fact.agent) for fact in facts] == [("alpha", "coder"), (None, None)]


@pytest.mark.parametrize(
    "label", [{"language": "fr"}, {"timezone": "Mars/Olympus"}, {"project": " "}, {"timezone": 8}]
)
async def test_what_cannot_be_meant_is_refused_at_once(label):
    """Before anything is written."""
    async with Memory.open("memory://") as memory:
        with pytest.raises(InvalidArgumentError):
            memory.conversation("trip", **label)
