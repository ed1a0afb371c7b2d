"""SQLite files to break."""

import pytest

from pagefile.stores import StoreOptions, open_store
from pagefile.testing import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path, clock):
    store = await open_store(f"sqlite:///{path}", clock=clock, options=StoreOptions(synchronous="normal"))
    yield store
    await store.close()
