"""A line begins work when its pace says so, loses none of it, and tries what failed again."""

from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from pagefile.engine.metrics import NoMeter
from pagefile.engine.worker import Line
from pagefile.records import Scope
from pagefile.tiers import Pace, RetryLater, Tier
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.waits

#: Nothing that rests or waits for so long begins by itself during a test.
LONG_S = 1000.0


def chat(name, user="ada"):
    return Scope("tenant", user, name)


class Care(Tier):
    """Notes what it looks after, and does with it what a test wants."""

    name = "care"

    def __init__(self, work=None, *, behind=(), **pace):
        self.pace = Pace(**pace)
        self.begun = []
        self.looks = 0
        self._work = work
        self._behind = [chat(name) for name in behind]

    async def maintain(self, scope):
        self.begun.append(scope.conversation)
        if self._work is not None:
            await self._work(scope.conversation)

    async def behind(self):
        self.looks += 1
        return self._behind


class Rounds(Care):
    """The same for a tier that works in rounds of its own."""

    def __init__(self, work=None, **pace):
        super().__init__(work, together=True, **pace)
        self.rounds = []

    async def maintain_all(self, backlog):
        self.rounds.append(backlog)
        if self._work is not None:
            await self._work(backlog)


def failing(*names, times=1):
    """Fails this many times for each of these."""
    left = dict.fromkeys(names, times)

    async def work(name):
        if left.get(name, 0) > 0:
            left[name] -= 1
            raise ValueError(name)

    return work


@asynccontextmanager
async def at_work(tier, **options):
    line = Line(tier, NoMeter(), **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.run)
        with anyio.fail_after(PATIENCE_S):
            yield line
        tasks.cancel_scope.cancel()


# -- rests -------------------------------------------------------------------------------------------------------------


async def test_a_conversation_that_always_fails_rests_while_others_go_well():
    """Their success says nothing about it."""
    tier = Care(failing("bad", times=1000), first_rest_s=LONG_S)
    async with at_work(tier) as line:
        line.wake(chat("bad"))
        for number in range(20):
            line.wake(chat(f"good {number}"))
            await until(lambda number=number: f"good {number}" in tier.begun)
    assert 1 == tier.begun.count("bad")


async def test_what_failed_is_tried_again_when_something_that_failed_works():
    """They probably failed of the same."""
    tier = Care(failing("a", "b"), first_rest_s=LONG_S)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        line.wake(chat("b"))
        await until(lambda: tier.begun == ["a", "b"])
        line.wake(chat("a"))
        await until(lambda: tier.begun == ["a", "b", "a", "b"])


async def test_a_tier_says_when_to_try_again():
    """After its own time, not after that of failures."""

    async def work(name):
        raise RetryLater(0.01)

    tier = Care(work, first_rest_s=LONG_S)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        await until(lambda: tier.begun == ["a", "a", "a"])


async def test_another_turn_does_not_cut_that_short():
    """What cannot go on cannot because of more to do."""

    async def work(name):
        if name == "a":
            raise RetryLater(LONG_S)

    tier = Care(work)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        await until(lambda: tier.begun == ["a"])
        line.wake(chat("a"))
        line.wake(chat("b"))
        await until(lambda: tier.begun == ["a", "b"])


# -- several at once ---------------------------------------------------------------------------------------------------


async def test_who_sleeps_is_woken_when_who_was_to_wake_first_works():
    """One waits for a conversation and then works on it for long: the other begins the next one."""
    go = {"a": anyio.Event()}

    async def work(name):
        if name == "a":
            await go[name].wait()
            go[name] = anyio.Event()

    tier = Care(work, at_once=2, quiet_s=0.05)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        await until(lambda: tier.begun == ["a"])
        line.wake(chat("a"))
        go["a"].set()
        await anyio.wait_all_tasks_blocked()
        line.wake(chat("b"))
        await until(lambda: sorted(tier.begun) == ["a", "a", "b"])


# -- in rounds ---------------------------------------------------------------------------------------------------------


async def test_one_of_a_round_that_fails_stops_no_other_and_is_tried_again():
    """By itself, although nobody looks for what others left behind."""
    tier = Care(failing("a"), together=True, first_rest_s=0.01)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        line.wake(chat("b"))
        await until(lambda: tier.begun == ["a", "b", "a"])


async def test_a_round_that_failed_is_done_again_with_all_of_it():
    """Nobody knows how far it came."""
    fails = [True]

    async def work(backlog):
        if fails:
            fails.pop()
            raise ValueError

    tier = Rounds(work, first_rest_s=0.01)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        line.wake(chat("b"))
        await until(lambda: len(tier.rounds) == 2)
    assert [[chat("a"), chat("b")]] * 2 == [backlog.scopes for backlog in tier.rounds]


async def test_a_round_that_sweeps_finds_what_others_left():
    """Without a line of its own: that is what `behind` is for."""
    tier = Care(behind=("a", "b"), together=True, first_sweep_s=0.0)
    async with at_work(tier):
        await until(lambda: tier.begun == ["a", "b"])


async def test_no_number_of_waiting_conversations_is_too_large():
    """None is forgotten, whether anybody looks at the log or not."""
    tier = Care(together=True, quiet_s=LONG_S, longest_wait_s=LONG_S)
    async with at_work(tier) as line:
        names = [str(number) for number in range(1500)]
        for name in names:
            line.wake(chat(name))
        await line.settle()
        assert names == tier.begun


# -- working for others ------------------------------------------------------------------------------------------------


async def test_who_works_for_others_sweeps_no_more_often_than_else():
    """What a tier does now and then is not done at every look for work."""
    tier = Rounds(first_sweep_s=0.0, sweep_every_s=LONG_S)
    async with at_work(tier, poll_s=0.001):
        await until(lambda: tier.looks > 5)
    assert [True] == [backlog.sweep for backlog in tier.rounds]


async def test_who_works_for_others_begins_a_round_when_there_is_work():
    """However seldom the tier sweeps, or if it never does."""
    tier = Care(behind=("a",), together=True)
    async with at_work(tier, poll_s=0.001):
        await until(lambda: "a" in tier.begun)


async def test_who_works_for_others_waits_until_they_are_quiet():
    """A model is not asked at every look for work, but when the pace says so; who settles does not wait for it."""
    tier = Care(behind=("a",), quiet_s=LONG_S, longest_wait_s=LONG_S)
    async with at_work(tier, poll_s=0.001) as line:
        await until(lambda: tier.looks > 5)
        assert [] == tier.begun
        await line.settle()
        assert ["a"] == tier.begun


@pytest.mark.parametrize("together", [False, True])
async def test_who_works_for_others_rests_after_a_failure(together):
    """It is still there at every look for work, and not tried at each of them."""
    tier = Care(failing("a", times=1000), behind=("a",), together=together, first_rest_s=LONG_S)
    async with at_work(tier, poll_s=0.001):
        await until(lambda: tier.begun)
        looks = tier.looks
        await until(lambda: tier.looks > looks + 5)
    assert ["a"] == tier.begun


# -- waiting for it ----------------------------------------------------------------------------------------------------


async def test_settling_ends_while_others_keep_writing():
    """It waits for what was written when it was asked, not for what comes after."""

    async def work(name):
        line.wake(chat(f"{name}'"))
        await anyio.lowlevel.checkpoint()

    tier = Care(work)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        await line.settle()
    assert "a" in tier.begun


async def test_settling_waits_for_a_look_that_was_asked_for_during_another():
    """The one under way may have read the log before."""
    tier, looking, go = Care(first_sweep_s=0.0), anyio.Event(), anyio.Event()

    async def behind():
        if looking.is_set():
            return [chat("imported")]
        looking.set()
        await go.wait()
        return []

    tier.behind = behind
    async with at_work(tier) as line:
        await looking.wait()
        line.scan()
        go.set()
        await line.settle()
    assert ["imported"] == tier.begun


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_closing_while_the_log_is_looked_at_does_no_harm():
    """What was written here is finished, and nothing is raised."""
    tier, looking, go = Care(first_sweep_s=0.0), anyio.Event(), anyio.Event()

    async def behind():
        looking.set()
        await go.wait()
        return ()

    tier.behind = behind
    async with at_work(tier) as line, anyio.create_task_group() as closing:
        await looking.wait()
        line.wake(chat("a"))
        closing.start_soon(line.drain)
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert ["a"] == tier.begun


async def test_closing_does_not_wait_for_a_tier_that_does_not_want_it():
    """Also when it works on one conversation after the other."""

    class Leaving(Care):
        drains = False

    tier = Leaving(quiet_s=LONG_S, longest_wait_s=LONG_S)
    async with at_work(tier) as line:
        line.wake(chat("a"))
        await line.drain()
    assert [] == tier.begun


async def test_work_on_what_was_erased_is_dropped():
    """What waits is not begun, what runs is not tried again."""
    go = anyio.Event()

    async def work(name):
        if name == "running":
            await go.wait()
            raise ValueError

    tier = Care(work, at_once=2, first_rest_s=0.001)
    async with at_work(tier) as line:
        line.wake(chat("running"))
        await until(lambda: tier.begun == ["running"])
        line.wake(chat("running"))
        line.wake(chat("waiting"))
        line.drop(Scope("tenant", "ada"))
        line.wake(chat("other", "bob"))
        go.set()
        await line.settle()
        await line.settle()
    assert ["running", "other"] == tier.begun


async def test_a_slow_task_that_is_asked_for_again_meanwhile_runs_again(monkeypatch):
    """Another worker has taken its place by then, and has passed over the conversation that was being worked on."""
    monkeypatch.setattr("pagefile.engine.worker.SLOW_S", 0.01)
    may_end = anyio.Event()

    async def work(_):
        await may_end.wait()

    care = Care(work)
    async with at_work(care) as line, anyio.create_task_group() as tasks:
        line.wake(chat("c"))
        await until(lambda: line._relieved)
        line.wake(chat("c"))
        tasks.start_soon(line.settle)
        await anyio.wait_all_tasks_blocked()
        may_end.set()
    assert ["c", "c"] == care.begun
