"""The edge of every hook: what fails or hangs behind it costs memory, never the run."""

import asyncio
import logging
import threading

import pytest

from pagefile import BlockingMemory, Memory, Settings
from pagefile.edge.fail_open import FailOpen
from pagefile.errors import SettingsError, StoreUnavailableError
from pagefile.ports import Meter
from tests.waiting import until


class Counts(Meter):
    """Remembers what was counted."""

    def __init__(self):
        self.counted = []

    def count(self, name, amount=1.0, **labels):
        self.counted.append((name, labels))

    def observe(self, name, value, **labels):
        pass


DEGRADED = ("pagefile_degraded_total", {"tier": "frame"})


async def fails():
    raise StoreUnavailableError


async def hangs():
    await asyncio.Event().wait()


async def answers():
    return "answer"


async def where():
    return asyncio.get_running_loop()


async def test_what_goes_well_is_returned():
    """The memory's own loop runs the work, and nothing is counted."""
    async with Memory.open("memory://", meter=(meter := Counts())) as memory:
        edge = FailOpen(memory, "frame")
        assert "answer" == await edge.attempt("asking", answers, None)
        assert asyncio.get_running_loop() is await edge.attempt("asking", where, None)
        assert DEGRADED not in meter.counted


async def test_a_failure_is_counted_each_time_and_told_once(caplog):
    """The log names the kind of work once; the metric counts every time."""
    async with Memory.open("memory://", meter=(meter := Counts())) as memory:
        edge = FailOpen(memory, "frame")
        for _ in range(3):
            assert "nothing" == await edge.attempt("recall", fails, "nothing")
        assert "nothing" == await edge.attempt("record", fails, "nothing")
        assert 4 == meter.counted.count(DEGRADED)
        assert {"frame": 4} == (await memory.describe())["tier_failures"]
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert ["recall", "record"] == [record.args[1] for record in told]
    assert all(record.exc_info for record in told)


async def test_what_is_slow_is_told_in_a_line(caplog):
    """How long it may take says all there is to say: no traceback of ours."""
    async with Memory.open("memory://") as memory:
        edge = FailOpen(memory, "frame", timeout_s=0.05)
        assert "nothing" == await edge.attempt("recall", lambda: asyncio.sleep(30), "nothing")
    (line,) = caplog.messages
    assert (
        "frame: recall took longer than 0.05 s (timeout_s); the run continues without memory, which is left alone for 1 s"
        == line
    )
    assert "Traceback" not in caplog.text


@pytest.mark.waits
async def test_what_hangs_is_given_up_and_left_alone_for_a_while():
    """A time-out costs its limit once; the next hooks do not wait, and what must be tried is tried beside the run."""
    tried = []

    async def tries():
        tried.append(1)

    async with Memory.open("memory://", meter=(meter := Counts())) as memory:
        edge = FailOpen(memory, "frame", timeout_s=0.5)
        assert "late" == await edge.attempt("recall", hangs, "late")
        assert "resting" == await edge.attempt("recall", tries, "resting")
        assert [] == tried
        assert "resting" == await edge.attempt("record", tries, "resting", always=True)
        await until(lambda: tried == [1])
        assert 3 == meter.counted.count(DEGRADED)


@pytest.mark.waits
async def test_what_cannot_be_cancelled_is_not_waited_for():
    """A thread that goes on is left behind."""
    go, ended = threading.Event(), threading.Event()

    def held():
        go.wait()
        ended.set()

    async def holds_a_thread():
        await asyncio.shield(asyncio.to_thread(held))

    async with Memory.open("memory://") as memory:
        edge = FailOpen(memory, "frame", timeout_s=0.05)
        assert "late" == await edge.attempt("loading", holds_a_thread, "late")
        assert not ended.is_set()
        go.set()
        await until(ended.is_set)


@pytest.mark.waits
async def test_cancelling_the_run_cancels_the_work():
    """A user who gives up leaves nothing running."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def watched():
        begun.set()
        try:
            await hangs()
        finally:
            ended.set()

    async with Memory.open("memory://") as memory:
        edge = FailOpen(memory, "frame")
        run = asyncio.ensure_future(edge.attempt("recall", watched, None))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await ended.wait()


@pytest.mark.waits
def test_a_blocking_memory_serves_hooks_of_both_kinds():
    """The work always runs in the memory's own loop."""
    with BlockingMemory.open("memory://") as memory:
        edge = FailOpen(memory, "frame", timeout_s=2)
        home = edge.attempt_blocking("asking", where, None)
        assert home is asyncio.run(edge.attempt("asking", where, None))
        assert "late" == edge.attempt_blocking("recall", hangs, "late")


async def test_a_thread_asks_a_memory_that_lives_in_a_loop():
    """A synchronous run in a worker thread reaches the memory of a server's loop."""
    async with Memory.open("memory://") as memory:
        edge = FailOpen(memory, "frame")
        assert "answer" == await asyncio.to_thread(edge.attempt_blocking, "asking", answers, None)


async def test_a_synchronous_call_in_the_memorys_own_loop_does_not_hang(caplog):
    """It cannot work, and says at once what to do."""
    async with Memory.open("memory://") as memory:
        edge = FailOpen(memory, "frame")
        assert "without" == edge.attempt_blocking("asking", answers, "without")
    assert "ainvoke" in caplog.records[0].getMessage()


def test_an_unknown_loop_is_explained(caplog):
    """A memory out of a loop that nobody named: the run goes on, the log says what to do."""
    found = []
    with BlockingMemory.open("memory://") as memory:
        edge = FailOpen(memory.inner, "frame")
        thread = threading.Thread(
            target=lambda: found.append(edge.attempt_blocking("asking", answers, "without"))
        )
        thread.start()
        thread.join()
    assert ["without"] == found
    assert "BlockingMemory" in caplog.records[0].getMessage()


def test_a_closed_memory_costs_nothing(caplog):
    """A hook that runs after the memory was closed goes on without it."""
    with BlockingMemory.open("memory://") as memory:
        edge = FailOpen(memory, "frame")
    assert "without" == edge.attempt_blocking("asking", answers, "without")
    assert "This memory is closed" in caplog.records[0].getMessage()


async def test_tests_may_ask_for_the_failure_itself():
    """`on_tier_error="raise"` hides nothing."""
    async with Memory.open("memory://", settings=Settings(on_tier_error="raise")) as memory:
        with pytest.raises(StoreUnavailableError):
            await FailOpen(memory, "frame").attempt("recall", fails, None)


async def test_a_limit_must_leave_time():
    """No time at all is refused."""
    async with Memory.open("memory://") as memory:
        with pytest.raises(SettingsError, match="timeout_s"):
            FailOpen(memory, "frame", timeout_s=0)


async def test_a_closed_memory_behind_an_open_breaker_costs_no_run():
    """Also not for work that is carried out beside the run, because something would be lost without it."""
    with BlockingMemory.open("memory://") as memory:
        edge = FailOpen(memory, "frame", timeout_s=0.05)
        assert "nothing" == await edge.attempt("recall", hangs, "nothing")
    assert "nothing" == await edge.attempt("record", answers, "nothing", always=True)
