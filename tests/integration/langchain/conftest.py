"""A memory to plug in, in both faces."""

import pytest

from pagefile import BlockingMemory, Memory, Settings


@pytest.fixture
def settings():
    return Settings(language="en", checkpoints="sync", on_tier_error="raise")


@pytest.fixture
async def memory(tmp_path, settings):
    async with Memory.open(f"sqlite:///{tmp_path}/agent.db", settings=settings) as opened:
        yield opened


@pytest.fixture
def blocking(tmp_path, settings):
    with BlockingMemory.open(f"sqlite:///{tmp_path}/agent.db", settings=settings) as opened:
        yield opened
