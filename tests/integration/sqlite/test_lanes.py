"""One writer, some readers, and what happens when nobody waits for them any more."""

import asyncio
import threading

import anyio
import apsw
import pytest

from pagefile.errors import ClosedError, ConflictError, StoreFullError
from pagefile.ports import EntryQuery
from pagefile.stores import open_store
from pagefile.stores.sqlite.database import Reserve
from pagefile.testing.drafts import CHAT, done, view
from tests.waiting import PATIENCE_S, until

FOREVER = "WITH RECURSIVE n(i) AS (SELECT begun() UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class Forever:
    """A statement that never ends, and whether it runs."""

    def __init__(self):
        self._runs = threading.Event()

    def __call__(self, connection):
        connection.create_scalar_function("begun", self._begun)
        connection.execute(FOREVER).fetchall()

    def _begun(self):
        self._runs.set()
        return 1

    async def begun(self):
        await until(self._runs.is_set)


async def counted(store):
    """A list that grows with every commit."""
    commits = []

    def hook():
        commits.append(1)
        return False

    await store._writer.run(lambda connection: connection.set_commit_hook(hook))
    commits.clear()
    return commits


async def test_many_appends_share_a_commit(store):
    """Sixty-four at once take far fewer than sixty-four commits."""
    commits = await counted(store)
    turns = await asyncio.gather(*(store.log.append(done(f"t{number}")) for number in range(64)))
    assert sorted(turn.seq for turn in turns) == list(range(1, 65))
    assert len(commits) <= 8


async def test_one_that_fails_does_not_harm_its_group(store):
    """Its neighbours in the same transaction are written, and take no place for it."""
    await store.log.append(done("a"))
    drafts = [done("a", "else") if number % 3 == 0 else done(f"t{number}") for number in range(12)]
    answers = await asyncio.gather(*(store.log.append(draft) for draft in drafts), return_exceptions=True)
    assert [isinstance(answer, ConflictError) for answer in answers] == [
        number % 3 == 0 for number in range(12)
    ]
    entries = await store.reader.entries(EntryQuery(CHAT))
    assert [entry.seq for entry in entries] == list(range(1, 10))
    assert (await store.reader.view(view())).head.turns == 9


async def test_one_that_fills_the_disk_does_not_harm_its_group(store):
    """The transaction is lost with it; the others are run again."""
    writer = store._writer
    pages = await writer.run(lambda connection: connection.pragma("page_count"))
    await writer.run(lambda connection: connection.pragma("max_page_count", pages + 20))
    drafts = [done("t0"), done("large", "x" * 1_000_000), done("t1")]
    first, large, second = await asyncio.gather(
        *(store.log.append(d) for d in drafts), return_exceptions=True
    )
    assert isinstance(large, StoreFullError)
    assert (first.seq, second.seq) == (1, 2)


@pytest.mark.waits
async def test_cancelling_interrupts_a_long_read(store):
    """At once, and the connection is good for the next reader."""
    readers = store._readers
    with anyio.fail_after(PATIENCE_S):
        for _ in range(4):
            forever = Forever()
            async with anyio.create_task_group() as group:
                group.start_soon(readers.run, forever)
                await forever.begun()
                group.cancel_scope.cancel()
        await store.log.append(done("a"))
        for _ in range(4):
            assert (await store.reader.view(view())).head.last_seq == 1


@pytest.mark.waits
async def test_cancelling_interrupts_a_running_write(store):
    """It is rolled back, and those who shared its transaction are written."""
    writer, forever = store._writer, Forever()

    def slow(connection):
        connection.execute("DELETE FROM conversations")
        forever(connection)

    async with asyncio.TaskGroup() as tasks:
        before = tasks.create_task(store.log.append(done("a")))
        stuck = tasks.create_task(writer.run(slow))
        after = tasks.create_task(store.log.append(done("b")))
        await forever.begun()
        assert not stuck.done()
        stuck.cancel()
    assert stuck.cancelled()
    assert (before.result().seq, after.result().seq) == (1, 2)
    assert (await store.reader.view(view())).head.turns == 2


@pytest.mark.waits
async def test_cancelling_drops_a_queued_write(store):
    """What has not begun never happens."""
    writer, forever = store._writer, Forever()

    async with asyncio.TaskGroup() as tasks:
        blocker = tasks.create_task(writer.run(forever))
        await forever.begun()
        queued = tasks.create_task(store.log.append(done("never")))
        kept = tasks.create_task(store.log.append(done("kept")))
        await until(lambda: writer._queue.qsize() == 2)
        queued.cancel()
        blocker.cancel()
    assert queued.cancelled()
    assert kept.result().seq == 1
    assert [entry.id for entry in await store.reader.entries(EntryQuery(CHAT))] == ["kept"]


async def test_a_mistake_in_a_write_reaches_its_caller_only(store):
    """Any exception comes out where it was asked for, and the writer lives."""

    def mistaken(connection):
        connection.execute("DELETE FROM ai_message")
        raise ZeroDivisionError

    await store.log.append(done("a"))
    with pytest.raises(ZeroDivisionError):
        await store._writer.run(mistaken)
    assert (await store.log.append(done("b"))).seq == 2
    assert len(await store.reader.entries(EntryQuery(CHAT))) == 2


@pytest.mark.waits
async def test_readers_do_not_wait_for_the_writer(store):
    """While a write runs, reads answer from what was there before."""
    await store.log.append(done("a"))
    forever = Forever()
    async with asyncio.TaskGroup() as tasks:
        blocker = tasks.create_task(store._writer.run(forever))
        await forever.begun()
        with anyio.fail_after(PATIENCE_S):
            assert (await store.reader.view(view())).head.last_seq == 1
        blocker.cancel()


async def test_two_stores_on_one_file(store, path, clock):
    """Both write to one conversation, and each sees what the other wrote."""
    other = await open_store(f"sqlite:///{path}", clock=clock)
    await asyncio.gather(
        *(
            which.log.append(done(f"{name}{number}"))
            for name, which in (("a", store), ("b", other))
            for number in range(20)
        )
    )
    for which in (store, other):
        entries = await which.reader.entries(EntryQuery(CHAT))
        assert [entry.seq for entry in entries] == list(range(1, 41))
    await other.close()
    assert (await store.log.append(done("last"))).seq == 41


async def test_closing_finishes_what_was_accepted(path, clock):
    """Writes that were asked for before are written, and the write-ahead log is folded into the file; the reserve stays (0035)."""
    store = await open_store(f"sqlite:///{path}", clock=clock)
    writes = [asyncio.ensure_future(store.log.append(done(f"t{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert sorted(turn.seq for turn in await asyncio.gather(*writes)) == list(range(1, 21))
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}-reserve"}


async def test_many_open_a_new_file_at_once(path, clock):
    """One of them makes the schema, and all of them can use it."""
    stores = await asyncio.gather(*(open_store(f"sqlite:///{path}", clock=clock) for _ in range(8)))
    turns = await asyncio.gather(*(which.log.append(done(f"t{n}")) for n, which in enumerate(stores)))
    assert sorted(turn.seq for turn in turns) == list(range(1, 9))
    for which in stores:
        await which.close()


@pytest.fixture
def readers(store):
    """On a clock that stands still unless a test moves it."""
    store._readers._monotonic = lambda: NOW[0]
    return store._readers


NOW = [0.0]


def thread_name(connection):
    return threading.current_thread().name


async def test_what_was_quick_is_read_in_place_the_next_time(readers):
    """The first time by a thread, then without one; each thing for itself."""
    here = threading.current_thread().name
    assert "pagefile-reader" == await readers.run_again("a", thread_name)
    assert here == await readers.run_again("a", thread_name)
    assert "pagefile-reader" == await readers.run_again("b", thread_name)


async def test_what_was_slow_is_left_to_a_thread(readers):
    """Until it is quick there."""
    here = threading.current_thread().name

    def slow(connection):
        NOW[0] += 0.02
        return thread_name(connection)

    await readers.run_again("a", thread_name)
    assert here == await readers.run_again("a", slow)
    assert "pagefile-reader" == await readers.run_again("a", slow)
    assert "pagefile-reader" == await readers.run_again("a", thread_name)
    assert here == await readers.run_again("a", thread_name)


async def test_a_database_that_is_busy_is_waited_for_by_a_thread(readers):
    """And the event loop goes on."""
    here = threading.current_thread().name

    def busy_here(connection):
        if thread_name(connection) == here:
            raise apsw.BusyError
        return thread_name(connection)

    await readers.run_again("a", thread_name)
    assert "pagefile-reader" == await readers.run_again("a", busy_here)
    assert not readers._here.in_transaction


async def test_a_read_in_place_sees_what_was_written_last(store):
    """Each has a snapshot of its own."""
    for number in range(1, 5):
        await store.log.append(done(f"t{number}"))
        assert number == len((await store.reader.view(view())).turns)


async def test_an_error_of_the_reader_itself_comes_out_of_a_read_in_place(readers):
    """And the next read works."""
    await readers.run_again("a", thread_name)

    def refused(connection):
        raise ConflictError("no")

    with pytest.raises(ConflictError, match="no"):
        await readers.run_again("a", refused)
    assert threading.current_thread().name == await readers.run_again("a", thread_name)


async def test_others_get_their_turn_between_reads_in_place(readers):
    """However many there are in a row."""
    turns = []

    async def other():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    await readers.run_again("a", thread_name)
    turns.clear()
    for _ in range(10):
        await readers.run_again("a", thread_name)
    task.cancel()
    assert 10 <= len(turns)


async def test_nothing_is_read_in_place_after_closing(store, readers):
    """As with a thread."""
    await readers.run_again("a", thread_name)
    await store.close()
    with pytest.raises(ClosedError):
        await readers.run_again("a", thread_name)


async def test_a_cancelled_opening_leaves_no_threads(path, clock, monkeypatch):
    """What may take long is done before they are started."""
    slow, go = threading.Event(), threading.Event()

    def keep(_):
        slow.set()
        go.wait(10)

    monkeypatch.setattr(Reserve, "keep", keep)
    before = set(threading.enumerate())
    opening = asyncio.ensure_future(open_store(f"sqlite:///{path}", clock=clock))
    await asyncio.to_thread(slow.wait, 10)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go.set()
    left = [
        one.name
        for one in set(threading.enumerate()) - before
        if not one.name.startswith(("asyncio", "AnyIO"))
    ]
    assert [] == left
