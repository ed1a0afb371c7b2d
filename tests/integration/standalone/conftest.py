"""A memory with a clock and a store that a test commands, and document 001's face of it."""

import pytest

from pagefile import Memory
from pagefile.settings import Settings
from pagefile.standalone import AgentApp
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock, FlakyStore
from pagefile.text.tokens import open_counter
from tests.engines import engine_over


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return FlakyStore(InMemoryStore(clock))


@pytest.fixture
def memory(store, clock):
    return Memory(engine_over(store, Settings(), clock, open_counter()))


@pytest.fixture
def pauses():
    """How long the app would have slept."""
    return []


@pytest.fixture
def app(memory, pauses):
    async def sleep(seconds):
        pauses.append(seconds)

    return AgentApp(memory, sleep=sleep)
