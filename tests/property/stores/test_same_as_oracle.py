"""SQLite behaves as the oracle does, whatever is done to both."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .twins import Twins


def test_sqlite_is_the_oracle():
    """Results, the types of errors and everything that can be read are the same."""
    bounds = settings(
        max_examples=50,
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(Twins, settings=bounds)
