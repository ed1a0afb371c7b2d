"""Recorded windows are written, whatever else asks for that meanwhile."""

import anyio
import pytest

from pagefile.engine.calls import WindowRecorder
from pagefile.engine.metrics import NoMeter
from pagefile.engine.worker import Worker
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from pagefile.testing.drafts import CHAT, call
from tests.waiting import PATIENCE_S


@pytest.mark.waits
async def test_who_flushes_an_idle_writer_does_not_put_it_to_sleep():
    """As an erasure does: the windows after it are still written."""
    store = InMemoryStore(FakeClock())
    writer = WindowRecorder(store.calls, keep=10)
    worker = Worker([writer], NoMeter())
    writer.wake = lambda scope: worker.wake(writer.name, scope)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await anyio.wait_all_tasks_blocked()
        await writer.flush()
        writer.add(CHAT, lambda: call("a"))
        with anyio.fail_after(PATIENCE_S):
            await worker.settle()
        tasks.cancel_scope.cancel()
    assert ["a"] == [found.id for found in await store.calls.list(CHAT)]


@pytest.mark.waits
async def test_a_writer_that_is_stopped_while_it_writes_loses_nothing(monkeypatch):
    """As when a memory is closed: what was being written is written."""
    store = InMemoryStore(FakeClock())
    writer = WindowRecorder(store.calls, keep=10)
    writing, stopped, add = anyio.Event(), anyio.Event(), store.calls.add

    async def slowly(calls, *, keep, epoch=None):
        writing.set()
        await stopped.wait()
        await add(calls, keep=keep, epoch=epoch)

    monkeypatch.setattr(store.calls, "add", slowly)
    async with anyio.create_task_group() as tasks:
        writer.add(CHAT, lambda: call("a"))
        tasks.start_soon(writer.flush)
        await writing.wait()
        tasks.cancel_scope.cancel()
        stopped.set()
    assert ["a"] == [found.id for found in await store.calls.list(CHAT)]
