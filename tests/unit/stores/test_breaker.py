"""The circuit breaker: one failure, one rest, one trial."""

import pytest

from pagefile.stores.breaker import Breaker
from pagefile.testing import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def breaker(clock):
    return Breaker(lambda: clock.now().timestamp(), first_rest_s=1, longest_rest_s=5)


def fail(breaker):
    """A call that is let through and fails; tells whether it began an outage."""
    return breaker.failed(breaker.enter())


def test_calls_pass_while_all_goes_well(breaker):
    """Any number at once; success is no event."""
    passes = [breaker.enter() for _ in range(3)]
    assert None not in passes
    assert [False] * 3 == [breaker.succeeded(ticket) for ticket in passes]
    assert not breaker.resting


def test_one_failure_opens_it(breaker, clock):
    """Nothing passes until the rest is over, then one trial does, and only one."""
    assert fail(breaker)
    assert breaker.resting
    assert breaker.enter() is None
    clock.advance(0.999)
    assert breaker.enter() is None
    clock.advance(0.001)
    assert not breaker.resting
    assert breaker.enter() is not None
    assert breaker.enter() is None


def test_a_trial_that_succeeds_closes_it(breaker, clock):
    """The outage is over, and the next one begins with a short rest again."""
    for _ in range(3):
        fail(breaker)
        clock.advance(10)
    assert breaker.succeeded(breaker.enter())
    assert [True, True] == [breaker.enter() is not None for _ in range(2)]
    assert fail(breaker)
    clock.advance(1)
    assert breaker.enter() is not None


def test_each_failed_trial_doubles_the_rest_up_to_a_limit(breaker, clock):
    """1, 2, 4, 5, 5 … seconds, and it is one outage all along."""
    rests, began = [], []
    for _ in range(6):
        began.append(fail(breaker))
        rest = 0
        while breaker.resting:
            clock.advance(1)
            rest += 1
        rests.append(rest)
    assert [1, 2, 4, 5, 5, 5] == rests
    assert [True, False, False, False, False, False] == began


def test_calls_that_fail_together_are_one_failure(breaker, clock):
    """The rest is that of one failure, and one outage is told."""
    passes = [breaker.enter() for _ in range(100)]
    assert [True] + [False] * 99 == [breaker.failed(ticket) for ticket in passes]
    clock.advance(1)
    assert breaker.enter() is not None


def test_a_late_outcome_counts_for_nothing(breaker, clock):
    """Neither opens nor closes what others have opened or closed since."""
    early, late = breaker.enter(), breaker.enter()
    breaker.failed(early)
    assert not breaker.succeeded(late)
    assert breaker.resting
    clock.advance(1)
    trial = breaker.enter()
    assert not breaker.failed(late)
    assert breaker.resting
    assert breaker.succeeded(trial)
    assert not breaker.failed(trial)
    assert not breaker.resting


def test_a_trial_that_never_reports_is_followed_by_another(breaker, clock):
    """After the rest that its failure would have brought; its own outcome no longer counts then."""
    fail(breaker)
    clock.advance(1)
    lost = breaker.enter()
    assert breaker.enter() is None
    clock.advance(1)
    other = breaker.enter()
    assert other is not None
    assert not breaker.succeeded(lost)
    assert breaker.succeeded(other)
