"""A database of an earlier schema opens, and everything in it is still there."""

import apsw

from pagefile.ports import PageTerms, PurgeRequest
from pagefile.records import Scope
from pagefile.stores import open_store
from pagefile.stores.encoding import packed
from pagefile.stores.sqlite.database import migrations
from pagefile.testing.drafts import AT, CHAT, done, view

from .schema_1 import LONG, write_schema_1


async def test_pages_of_schema_1_load(path, clock):
    """Byte for byte, with their sizes; each is one passage, so that a search finds it."""
    write_schema_1(path)
    store = await open_store(f"sqlite:///{path}", clock=clock)
    for uuid, text in (("long", LONG), ("same", LONG), ("short", "x")):
        page, loaded = await store.pages.load(CHAT, uuid)
        assert loaded == text
        assert (page.call_hash, page.thread, page.pinned, page.loads, page.purged) == (
            "",
            None,
            False,
            0,
            None,
        )
        assert page.stored_bytes == len(packed(text).data)
    assert await store.page_index.read(CHAT, ["short"]) == [PageTerms("short", ((0, 1),), None)]
    assert await store.page_index.uuids(CHAT) == ["long", "same", "short"]
    assert (await store.describe())["schema"] == len(migrations())
    await store.close()


async def test_turns_of_schema_1_are_read_and_go_on(path, clock):
    """Steps written without pages come back, and the log continues."""
    write_schema_1(path)
    store = await open_store(f"sqlite:///{path}", clock=clock)
    (turn,) = (await store.reader.view(view())).turns
    assert [(step.result, step.page, step.whole) for step in turn.steps] == [("r", None, True)]
    assert (await store.log.append(done("new"))).seq == 2
    await store.close()


async def test_pages_of_schema_1_can_be_kept_and_purged(path, clock):
    """As any others; what refers to what is whole."""
    write_schema_1(path)
    store = await open_store(f"sqlite:///{path}", clock=clock)
    await store.page_keeper.pin(CHAT, "same", pinned=True)
    gone = await store.page_keeper.purge(PurgeRequest(Scope("tenant"), AT, max_bytes=0))
    assert [page.uuid for page in gone] == ["long", "short"]
    assert (await store.pages.load(CHAT, "same"))[1] == LONG
    await store.close()
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.execute("SELECT count(*) FROM blobs").get == 1
    connection.close()
