"""What an export takes along beside turns: items of LangGraph's store, tombstones, where a fact was read."""

import json

import pytest

from pagefile import ConflictError, Memory, PagePurgedError, Settings, TransferError
from pagefile.engine.verification import verify
from pagefile.integrations.langgraph_store import PagefileStore
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.testing import FakeClock, HashingEmbedder

from .cli_calling import pagefile

SETTINGS = Settings(
    indexing="manual",
    archive=ArchiveSettings(threshold=400, page_from=200),
    facts=FactSettings(extract="rules"),
)
#: As Pagefile 0.1 wrote it: no fields that came later, no kinds either.
OLD = """\
{"type":"pagefile-export","version":1}
{"type":"conversation","id":"c","user_id":"u","agent":null}
{"type":"turn","user_id":"u","conversation_id":"c","id":"t1","seq":1,"status":"done","user":"你好","assistant":"hi","steps":[],\
"at":"2026-01-01T00:00:00+00:00","created":"2026-01-01T00:00:00+00:00","user_tokens":1,"assistant_tokens":1,"tokens":10,\
"counter":"other","metadata":{}}
{"type":"fact","user_id":"u","conversation_id":null,"id":"f1","text":"likes tea","category":null,"confidence":0.9,\
"valid_from":"2026-01-01T00:00:00+00:00","valid_to":null,"recorded":"2026-01-01T00:00:00+00:00","retracted":null,\
"source_turn":null,"source_quote":null,"tokens":2,"counter":"other"}
"""


def opened(url, clock=None):
    return Memory.open(url, settings=SETTINGS, embedder=HashingEmbedder(64), clock=clock or FakeClock())


@pytest.fixture(params=["sqlite", "memory"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/to.db" if request.param == "sqlite" else "memory://"


async def test_items_go_along_with_what_they_are_found_by(tmp_path, url):
    """Of every user and of nobody, with their times and ends; found by meaning on the other side, without an embedder's work."""
    clock, file = FakeClock(), tmp_path / "out.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        store = PagefileStore(memory, user_id="u", index={})
        await store.aput(("notes", "用户/1"), "茶", {"text": "喜欢绿茶", "n": [1, None]})
        await store.aput(("notes",), "short", {"text": "soon gone"}, ttl=1)
        await PagefileStore(memory).aput(("shared",), "k", {"v": 1})
        clock.advance(seconds=90)
        await store.aput(("notes",), "later", {"text": "买单车"})
        counts = await memory.export(file)
        assert counts == {"item": 3}
        mine = await memory.export(tmp_path / "mine.jsonl", user_id="u")
        assert mine == {"item": 2}
        expected = await store.aget(("notes", "用户/1"), "茶")
    async with opened(url, clock) as memory:
        assert await memory.import_(file) == {"item": 3}
        assert await memory.import_(file) == {"item": 0}
        embedder = memory.engine.kit.vectors.embedder
        store = PagefileStore(memory, user_id="u", index={})
        assert await store.aget(("notes", "用户/1"), "茶") == expected
        assert await store.aget(("notes",), "short") is None
        found = await store.asearch(("notes",), query="绿茶", limit=1)
        assert [item.key for item in found] == ["茶"]
        assert embedder.embedded == 1
        assert (await PagefileStore(memory).aget(("shared",), "k")).value == {"v": 1}
        report = await verify(memory.engine, full=True)
        assert report.findings == ()
        assert report.checked["items"] == 3


async def test_an_export_of_before_still_comes_in(tmp_path, url):
    """With nothing of what came later."""
    file = tmp_path / "old.jsonl"
    file.write_text(OLD)
    async with opened(url) as memory:
        assert await memory.import_(file) == {"conversation": 1, "entry": 1, "fact": 1}
        assert (await verify(memory.engine, full=True)).whole


async def test_tombstones_and_the_turns_of_facts_go_along(tmp_path, url):
    """What was imported leads as far as what was exported: verify finds nothing missing on either side."""
    clock, file = FakeClock(), tmp_path / "out.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        chat = memory.conversation("c", user_id="u")
        steps = [
            {"tool": "search", "input": {"q": str(number)}, "result": f"result {number} " * 60}
            for number in range(2)
        ]
        await chat.record("我对青霉素过敏。", "好", id="t", steps=steps)
        await memory.settle()
        purged, kept = [page.uuid for page in await chat.pages()]
        await memory.purge(uuids=[purged], user_id="u")
        counts = await memory.export(file)
        assert counts == {"conversation": 1, "session": 1, "page": 2, "turn": 1, "watermark": 1, "fact": 1, "revision": 1}  # fmt: skip
    async with opened(url, clock) as memory:
        assert await memory.import_(file, tenant="t2") == {
            "conversation": 1,
            "page": 2,
            "entry": 1,
            "session": 1,
            "fact": 1,
            "revision": 1,
            "watermark": 1,
        }
        report = await verify(memory.engine, full=True)
        assert report.whole
        assert [(one.kind, one.page) for one in report.findings] == [("page-purged", purged)]
        chat = memory.conversation("c", user_id="u", tenant="t2")
        with pytest.raises(PagePurgedError, match="was purged at"):
            await chat.load(purged)
        assert (await chat.load(kept)).startswith("result ")
        (fact,) = await memory.facts(user_id="u", tenant="t2")
        assert (fact.scope.conversation, fact.source_turn) == ("c", "t")
        await memory.forget(conversation_id="c", user_id="u", tenant="t2")
        assert await memory.facts(user_id="u", tenant="t2") == []


async def test_a_conversation_that_is_refused_leaves_no_facts_behind(tmp_path, url):
    """Facts are written behind their turns: where those conflict with what is there, nothing of both comes in."""
    file = tmp_path / "out.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db") as memory:
        await memory.conversation("c", user_id="u").record("我对青霉素过敏。", "好", id="t")
        await memory.settle()
        assert (await memory.export(file))["fact"] == 1
    async with opened(url) as memory:
        await memory.conversation("c", user_id="u").record("something else", "yes", id="t")
        with pytest.raises(ConflictError):
            await memory.import_(file)
        assert await memory.facts(user_id="u") == []
        assert (await verify(memory.engine, full=True)).whole


@pytest.mark.parametrize(
    "broken",
    [
        {"vectors": "not base 64!"},
        {"vectors": "AAAAAAA="},
        {"vectors": "AADAfwAAwH8="},
        {"namespace": None},
        {"created": "soon"},
    ],
    ids=["no base 64", "half a row", "no numbers", "no namespace", "no time"],
)
async def test_a_damaged_item_is_named_by_its_line(tmp_path, broken):
    """And nothing of it is written."""
    file = tmp_path / "out.jsonl"
    line = {
        "type": "item",
        "user_id": "u",
        "namespace": ["a"],
        "key": "k",
        "value": 1,
        "created": "2026-01-01T00:00:00+00:00",
        "updated": "2026-01-01T00:00:00+00:00",
        "maker": "m",
        "dimension": 2,
        **broken,
    }
    file.write_text('{"type":"pagefile-export","version":1}\n' + json.dumps(line) + "\n")
    async with opened("memory://") as memory:
        with pytest.raises(TransferError, match="Line 2"):
            await memory.import_(file)
        assert await memory.engine.store.items.owners(None) == []


def test_the_command_line_counts_items(tmp_path):
    """Out and in again."""
    file = tmp_path / "in.jsonl"
    line = {
        "type": "item",
        "user_id": None,
        "namespace": ["a"],
        "key": "k",
        "value": {"x": 1},
        "created": "2026-01-01T00:00:00+00:00",
        "updated": "2026-01-01T00:00:00+00:00",
    }
    file.write_text('{"type":"pagefile-export","version":1}\n' + json.dumps(line) + "\n")
    db = str(tmp_path / "a.db")
    assert "1 item" in pagefile("--db", db, "import", str(file)).words
    assert pagefile("--db", db, "export", str(tmp_path / "out.jsonl"), "--json").json == {"item": 1}
