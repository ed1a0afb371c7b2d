"""PostgreSQL behaves as the oracle does, whatever is done to both."""

from functools import cache

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from pagefile.records import Scope
from tests.integration.postgres.serving import fresh_url, opened
from tests.property.stores.twins import TENANTS, Twins


@cache
def url():
    """One schema for all examples: emptying it is much faster than making another."""
    return fresh_url(pool_min=1)


class PostgresTwins(Twins):
    def __init__(self):
        super().__init__()
        for tenant in TENANTS:
            self.loop.run(self.store.erase(Scope(tenant)))

    async def opened(self):
        return await opened(url(), self.clock)


@pytest.mark.slow
def test_postgres_is_the_oracle():
    """Results, the types of errors and everything that can be read are the same."""
    bounds = settings(
        max_examples=12,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(PostgresTwins, settings=bounds)
