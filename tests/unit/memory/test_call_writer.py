"""Windows that were handed out are written in batches, and none is made that would be gone again at once."""

import anyio
import pytest

from pagefile.engine.calls import MAX_WAITING, WindowRecorder
from pagefile.engine.metrics import NoMeter
from pagefile.engine.worker import Worker
from pagefile.records import Scope
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from pagefile.testing.drafts import call

A, B = Scope("tenant", "ada", "a"), Scope("tenant", "ada", "b")


@pytest.fixture
def store():
    return InMemoryStore(FakeClock())


async def test_only_what_is_kept_is_made(store):
    """Of a hundred windows of one conversation three are built; another conversation loses nothing by it."""
    writer, made = WindowRecorder(store.calls, keep=3), []

    def make(name, scope):
        made.append(name)
        return call(name, scope=scope)

    writer.add(B, lambda: make("first", B))
    for number in range(100):
        writer.add(A, lambda number=number: make(f"a{number}", A))
    await writer.flush()
    assert made == ["first", "a97", "a98", "a99"]
    assert [found.id for found in await store.calls.list(Scope("tenant"))] == ["a99", "a98", "a97", "first"]
    assert writer.dropped == 0


async def test_whoever_waits_does_not_wait_for_the_gathering(store):
    """`settle` has them written at once, however long others are gathered."""
    writer = WindowRecorder(store.calls, keep=3)
    worker = Worker([writer], NoMeter())
    writer.wake = lambda scope: worker.wake(writer.name, scope)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        for number in range(5):
            writer.add(A, lambda number=number: call(f"a{number}", scope=A))
        await worker.settle()
        assert [found.id for found in await store.calls.list(A)] == ["a4", "a3", "a2"]
        tasks.cancel_scope.cancel()


async def test_too_many_are_dropped_and_told(store, caplog):
    """The oldest go, and the log says so."""
    writer = WindowRecorder(store.calls, keep=3)
    for number in range(MAX_WAITING + 2):
        scope = Scope("tenant", "ada", f"c{number}")
        writer.add(scope, lambda scope=scope: call(f"k{scope.conversation}", scope=scope))
    assert writer.dropped == 2
    assert 2 == sum("dropped a recorded window" in record.message for record in caplog.records)
    await writer.flush()
    assert await store.calls.list(Scope("tenant", "ada", "c1")) == []
    assert len(await store.calls.list(Scope("tenant", "ada", "c2"))) == 1


async def test_a_window_that_cannot_be_written_down_costs_no_other(store, caplog):
    """It is dropped and told; whoever erases later is not kept from it."""
    writer = WindowRecorder(store.calls, keep=3)
    writer.add(A, lambda: call("a", scope=A))
    writer.add(B, lambda: 1 // 0)
    await writer.flush()
    assert ["a"] == [found.id for found in await store.calls.list(Scope("tenant"))]
    assert (1, False) == (writer.dropped, writer.waiting)
    await writer.flush()
    assert "could not record" in caplog.text
