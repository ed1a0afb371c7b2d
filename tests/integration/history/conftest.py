"""A memory on every kind of store."""

import pytest

from pagefile import Memory
from pagefile.standalone import ConversationStore
from pagefile.testing import FakeClock
from tests.integration.postgres.serving import fresh_url


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request, tmp_path):
    return {
        "memory": lambda: "memory://",
        "sqlite": lambda: f"sqlite:///{tmp_path}/history.db",
        "postgres": fresh_url,
    }[request.param]()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def memory(url, clock):
    async with Memory.open(url, clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return ConversationStore(memory)
