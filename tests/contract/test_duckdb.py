"""DuckDB keeps every promise of the ports, in the store that docs/howto/own-store.md builds."""

from pathlib import Path

import duckdb
import pytest

import examples.duckdb_store
from examples.duckdb_store import LEFT, DuckPlayer, DuckStore
from pagefile.errors import StoreError
from pagefile.testing import FakeClock, contracts
from pagefile.testing.drafts import CHAT, done, view

#: Cases of the suite that cannot apply here, with the reason.
NOT_HERE = {"vector": "a DuckDB file is not a vector index: `vectors()` is None, and they are kept elsewhere"}


#: In memory, for one test of a class after the other: making the tables takes longer than emptying them, and
#: rows that were deleted stay in the way of the next ones.
DATABASE = ":memory:contract"


@pytest.fixture(scope="class")
def database():
    """Stays as long as somebody is connected to it."""
    with duckdb.connect(DATABASE, config={"threads": 1}) as connection:
        yield connection


class Backend:
    @pytest.fixture(autouse=True)
    def applies(self, request):
        """Names what is left out."""
        given = getattr(request.node, "callspec", None)
        reason = NOT_HERE.get(given.params.get("what")) if given is not None else None
        if reason is not None:
            pytest.skip(reason)

    @pytest.fixture
    async def store(self, clock, database):
        store = await DuckStore.open(Path(DATABASE), clock=clock)
        yield store
        await store.close()
        held = "SELECT table_name FROM duckdb_tables() WHERE estimated_size > 0"
        for (table,) in database.execute(held).fetchall():
            database.execute(f"DELETE FROM {table}")


async def test_what_was_written_is_there_after_a_restart(tmp_path):
    """In a file."""
    for _ in range(2):
        store = await DuckStore.open(tmp_path / "memory.duckdb", clock=FakeClock())
        turn = await store.log.append(done("a"))
        assert (turn,) == (await store.reader.view(view())).turns
        await store.close()


async def test_what_an_erasure_leaves_is_left_after_scrubbing_too(tmp_path):
    """Nothing rewrites the file: whoever asks is told."""
    store = await DuckStore.open(tmp_path / "memory.duckdb", clock=FakeClock())
    await store.log.append(done("a"))
    receipt = await store.erase(CHAT)
    assert await store.scrub() == receipt.pending == LEFT
    await store.close()


async def test_a_commit_that_fails_says_why(tmp_path):
    """Not that there is no transaction left to roll back."""

    class Refusing:
        def execute(self, text):
            if text == "COMMIT":
                raise duckdb.Error("the disk is full")
            if text == "ROLLBACK":
                raise duckdb.TransactionException("no transaction is active")

    def nothing():
        yield from ()

    player = DuckPlayer(tmp_path / "memory.duckdb")
    player._connection = Refusing()
    with pytest.raises(StoreError, match="the disk is full"):
        await player.write(nothing)


def test_a_sql_store_is_at_most_400_lines():
    """Player, dialect and tables: an afternoon."""
    folder = Path(examples.duckdb_store.__file__).parent
    files = [path for path in folder.rglob("*") if path.suffix in {".py", ".sql"}]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 400


class TestTurnLog(Backend, contracts.TurnLogContract): ...


class TestMessages(Backend, contracts.MessagesContract): ...


class TestMedia(Backend, contracts.MediaStoreContract): ...


class TestEpochs(Backend, contracts.EpochContract): ...


class TestErasures(Backend, contracts.ErasuresContract): ...


class TestMarkers(Backend, contracts.MarkerContract): ...


class TestRestore(Backend, contracts.RestoreContract): ...


class TestLogReader(Backend, contracts.LogReaderContract): ...


class TestTurnSource(Backend, contracts.TurnSourceContract): ...


class TestFactStore(Backend, contracts.FactStoreContract): ...


class TestFactRestore(Backend, contracts.FactRestoreContract): ...


class TestPageStore(Backend, contracts.PageStoreContract): ...


class TestPageKeeper(Backend, contracts.PageKeeperContract): ...


class TestPageIndex(Backend, contracts.PageIndexContract): ...


class TestCallLog(Backend, contracts.WindowLogContract): ...


class TestItemStore(Backend, contracts.ItemStoreContract): ...


class TestSessionStore(Backend, contracts.SessionStoreContract): ...


class TestWatermarks(Backend, contracts.WatermarksContract): ...


class TestTermStore(Backend, contracts.TermStoreContract): ...


class TestKeyStore(Backend, contracts.KeyStoreContract): ...


class TestLeaseStore(Backend, contracts.LeaseStoreContract): ...


class TestStore(Backend, contracts.StoreContract): ...


class TestParts(Backend, contracts.PartContract): ...


class TestAuditor(Backend, contracts.AuditorContract): ...
