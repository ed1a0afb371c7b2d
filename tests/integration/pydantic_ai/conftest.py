"""A memory in a file, for every test here."""

import pytest

from pagefile import Memory


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/agent.db") as opened:
        yield opened
