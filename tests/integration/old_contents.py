"""What `tests/fixtures/old_databases` holds, read through the ports of today: the same for every store."""

import hashlib
import json
from pathlib import Path

import numpy as np

from pagefile import Memory, Settings
from pagefile.engine.verification import verify
from pagefile.ports import EmbeddingModel, EntryQuery
from pagefile.records import Scope
from pagefile.testing.drafts import CHAT, view

OLD = Path(__file__).parents[1] / "fixtures" / "old_databases"
EVERYTHING = frozenset({"turn", "checkpoint", "reset"})

#: Opens a store in a process of its own, and says what it found.
OPENING = """
import asyncio, sys
from pagefile.stores import open_store
async def main():
    store = await open_store(sys.argv[1])
    print((await store.describe())["schema"])
    await store.close()
asyncio.run(main())
"""


async def check_contents(store, number):
    """Everything that was written is read; the number is that of SQLite's schema."""
    await check_log(store, number)
    assert (await store.pages.load(CHAT, "p"))[1] == "the whole result\n" * 40
    assert (await store.pages.load(CHAT, "q"))[1] == "another result"
    facts = await store.facts.list(CHAT)
    assert [(fact.id, fact.text, fact.category, fact.project) for fact in facts] == [
        ("f", "allergic to penicillin", "health", None),
        ("g", "lives in 上海", None, None),
    ]
    assert [call.id for call in await store.calls.list(CHAT)] == ["w"]
    assert (await store.sessions.get(CHAT))["own"] == {"x": 1}
    if number >= 3:
        assert await store.watermarks.known(CHAT, "tier") == {"chat": 2}
    if number >= 4:
        near = await store.vectors().search(EmbeddingModel("old", 2), CHAT, np.array([1, 0], np.float32), 1)
        assert [hit.turn_id for hit in near] == ["a"]
    if number >= 5:
        assert [key.id for key in await store.keys.list()] == ["key"]
    if number >= 6:
        (item,) = await store.items.get(Scope("tenant", "ada"), [(("notes",), "n")], now=facts[0].recorded)
        assert item.value == {"text": "喜欢茶"}
    if number >= 8:
        assert await store.media.load(Scope("firm", "eve"), hashlib.sha256(b"PNG").hexdigest()) == b"PNG"


async def check_log(store, number):
    """Turns and markers of the conversations."""
    entries = await store.reader.entries(EntryQuery(CHAT, EVERYTHING))
    assert [(entry.id, entry.seq) for entry in entries] == [
        ("a", 1),
        ("b", 2),
        ("k", 3),
        ("c", 4),
        ("e", 5),
        ("d", None),
    ]
    first, second, marker, third, aborted, open_turn = entries
    assert (first.user, first.assistant, first.metadata) == (
        "我对青霉素过敏",
        "记住了",
        {"k": [1, {"空": None}]},
    )
    assert [(step.tool, step.input, step.result) for step in first.steps] == [
        ("weather", {"city": "上海"}, "sunny")
    ]
    assert second.steps[0].page == (None if number == 1 else "p")
    assert (marker.summary, marker.anchors, marker.archive_refs) == ("what was said", ("42 mg",), ("page-1",))
    assert (third.user, third.assistant, third.layout) == ("an English question", None, None)
    assert (aborted.status, open_turn.status, open_turn.user) == ("aborted", "open", "still open")
    seen = await store.reader.view(view())
    assert ([turn.id for turn in seen.turns], seen.checkpoint) == (["b", "c"], marker)
    # Since erasures have numbers, one was made.
    assert (seen.head.agent, seen.head.project, seen.head.epoch) == ("triage", None, int(number >= 8))
    other = Scope("firm", "bob", "other")
    assert [entry.id for entry in await store.reader.entries(EntryQuery(other, EVERYTHING))] == ["o", "r"]


async def check_whole(url, file):
    """`verify` finds no damage, recall finds a turn, and an export holds every turn."""
    async with Memory.open(url, settings=Settings(indexing="manual")) as memory:
        # The token counts are not a tokenizer's, the pages are named by no turn that could have made them.
        told = [kind for kind in await damage(memory) if "digest" in kind or "unreadable" in kind]
        assert told == []
        hits = await memory.recall("青霉素", user_id="ada", tenant="tenant")
        assert [hit.id for hit in hits][:1] == ["a"]
        await memory.export(file, tenant="tenant")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["id"] for line in lines if line["type"] == "turn"} == {"a", "b", "c", "d", "e", "n"}


async def damage(memory):
    """The kinds of damage that `verify` names."""
    report = await verify(memory.engine, full=True)
    return [finding.kind for finding in report.findings if finding.level == "damage"]
