"""Erased text is in the write-ahead log until that is emptied, which others who read may prevent; what failed is tried again."""

from contextlib import contextmanager
from threading import Timer

import apsw
import pytest

from pagefile import Memory
from pagefile.errors import StoreUnavailableError
from pagefile.records import Scope
from pagefile.stores.sqlite import lanes, write_ahead
from pagefile.stores.sqlite import store as sqlite_store
from tests.findings.security.looking import PLAIN, files_with
from tests.waiting import until

pytestmark = pytest.mark.anyio
SCOPE = Scope("default", "ada")


@contextmanager
def reading(path):
    """Another process, which reads what was there, until told to stop."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM ai_message").fetchall()
    try:
        yield lambda: connection.execute("ROLLBACK")
    finally:
        connection.close()


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await memory.conversation("chat", user_id="ada").record("ERASED words", "Noted.")
        yield memory


async def test_scrubbing_waits_for_who_reads(memory, tmp_path):
    with reading(tmp_path / "a.db") as stop:
        Timer(0.5, stop).start()
        assert () == (await memory.engine.erase(SCOPE, scrub=True)).pending
        assert [] == files_with(tmp_path, "ERASED")


@pytest.mark.parametrize("scrub", [True, False])
async def test_a_receipt_says_that_the_log_could_not_be_emptied(memory, tmp_path, monkeypatch, scrub):
    monkeypatch.setattr(lanes, "BUSY_TIMEOUT_S", 0.2)
    with reading(tmp_path / "a.db"):
        assert (sqlite_store.IN_LOG,) == (await memory.engine.erase(SCOPE, scrub=scrub)).pending
        assert [] != files_with(tmp_path, "ERASED")


async def test_closing_tries_once_more_and_longer(memory, tmp_path, monkeypatch):
    """However short the last attempt was ago."""
    monkeypatch.setattr(write_ahead, "RESTS", 10_000)
    with reading(tmp_path / "a.db") as stop:
        assert (sqlite_store.IN_LOG,) == (await memory.engine.erase(SCOPE)).pending
        Timer(0.3, stop).start()
        await memory.close()
        assert [] == files_with(tmp_path, "ERASED")


@pytest.mark.parametrize("error", [StoreUnavailableError, MemoryError])
async def test_a_rewrite_that_was_put_off_and_fails_is_tried_again(store, monkeypatch, error, caplog):
    """The writer goes on, whatever it was."""
    tried = []

    def failing(_):
        tried.append(error)
        if len(tried) < 3:
            raise error

    monkeypatch.setattr(sqlite_store, "rewrite", failing)
    monkeypatch.setattr(lanes, "_AGAIN_S", 0.01)
    store._writer.later(0.0, store._rewrite_now)
    await until(lambda: len(tried) == 3)
    assert 2 == caplog.text.count("the file was not rewritten")
    assert await store._writer.run(lambda _: "written") == "written"


async def test_nothing_is_rewritten_in_a_file_that_was_replaced(store, path, monkeypatch, caplog):
    rewritten = []
    monkeypatch.setattr(sqlite_store, "rewrite", rewritten.append)
    path.rename(path.with_suffix(".moved"))
    store._writer.later(0.0, store._rewrite_now)
    await until(lambda: "was deleted or replaced" in caplog.text)
    assert [] == rewritten
    path.with_suffix(".moved").rename(path)
