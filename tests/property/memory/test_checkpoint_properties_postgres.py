"""Checkpoints lose nothing on PostgreSQL with Redis in front either, though the cache is lost at any moment (S1-49)."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from tests.integration.postgres.serving import fresh_url
from tests.servers.valkey import ValkeyServer

from .checkpointing import ACTIONS, Play


@pytest.fixture(scope="module")
def valkey():
    with ValkeyServer() as server:
        yield server


class CachedPlay(Play):
    """The same play; whatever becomes of the cache, a session is what the database says and counts every turn."""

    async def flush(self, number, value):
        async with Redis.from_url(self.sessions) as redis:
            await redis.flushall()

    async def check(self):
        await super().check()
        scope = self.chat(0).scope
        for process in self.processes:
            stored = await process.engine.sessions.from_store(scope)
            assert stored == await process.engine.sessions.get(scope)
            if stored is not None:
                assert len(self.done) == stored["flow_context"]["turn_count"]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(ACTIONS, st.lists(st.integers(0, 25), max_size=4))
def test_covered_and_window_and_segment_are_every_completed_turn(valkey, actions, flushes):
    """Two processes checkpoint at the same time and crash; each example has a schema of its own."""
    for place in sorted(flushes, reverse=True):
        actions.insert(place, ("flush", 0))
    anyio.run(CachedPlay(fresh_url(), valkey.url).run, actions)
