"""What every test shares."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure. What is found is printed so that it can be played again; CI always plays the same.
settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def anyio_backend():
    """Pagefile runs on asyncio."""
    return "asyncio"
