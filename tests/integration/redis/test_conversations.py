"""A conversation over a cache that is lost in every way: what is read is what the database holds."""

import json
import random
from datetime import UTC, datetime

import pytest

from pagefile.errors import ConflictError, StoreUnavailableError
from pagefile.ports import ConversationQuery
from pagefile.records import ConversationInfo, Scope
from pagefile.stores import CachedSessions, StoreOptions, head_version, open_store, versions_in
from pagefile.testing import FakeClock, FlakyStore, InMemorySessions
from pagefile.testing.drafts import CHAT, checkpoint, done, reset, view
from tests.servers.valkey import ValkeyServer


@pytest.fixture
async def store(tmp_path, clock):
    options = StoreOptions(synchronous="normal")
    store = await open_store(f"sqlite:///{tmp_path}/memory.db", clock=clock, options=options)
    yield store
    await store.close()


def cached(store, cache):
    return CachedSessions(store.sessions, cache, versions_in(store.reader), store.erasures)


async def version_of(store):
    (head,) = await store.reader.heads(ConversationQuery(CHAT))
    return head_version(head)


class Life:
    """One conversation, and everything that may happen to it and to its cache."""

    def __init__(self, store, server, clock, chance):
        self.store, self.server, self.clock, self.chance = store, server, clock, chance
        self.written = 0
        self.running = True

    async def turn(self, _):
        self.written += 1
        await self.store.log.append(done(f"t{self.written}", "头晕", f"answer {self.written}"))

    async def summary(self, _):
        (head,) = await self.store.reader.heads(ConversationQuery(CHAT)) or [None]
        if head is not None and head.live_turns:
            before = (await self.store.reader.view(view())).checkpoint
            self.written += 1
            version = 0 if before is None else before.version
            await self.store.log.mark(checkpoint(f"k{self.written}", head.last_seq, version))

    async def begin_anew(self, _):
        self.written += 1
        await self.store.log.mark(reset(f"r{self.written}"))

    async def application_writes(self, sessions):
        self.written += 1
        value = json.loads(json.dumps(await self.store.sessions.get(CHAT) or {}))
        value["own"] = self.written
        await sessions.put(CHAT, value)

    async def time_passes(self, _):
        self.clock.advance(self.chance.choice([0.001, 2, 60]))

    async def crash(self, _):
        if self.running:
            self.server.kill()
        else:
            self.server.start()
        self.running = not self.running


@pytest.mark.parametrize("seed", range(3))
async def test_every_read_is_what_the_database_holds(store, clock, opened, seed):
    """Two programs with one server: after each of 300 turns, summaries, resets, writes, crashes and losses in any order."""
    chance = random.Random(seed)
    with ValkeyServer() as server:
        life = Life(store, server, clock, chance)
        caches = [opened(server.url), opened(server.url)]
        sessions = [cached(store, cache) for cache in caches]
        deeds = [life.turn] * 6 + [life.summary, life.begin_anew, life.application_writes, life.time_passes]
        for round_ in range(300):
            deed = life.crash if round_ % 40 == 39 else chance.choice(deeds)
            await deed(chance.choice(sessions))
            if chance.random() < 0.05:
                await caches[0].drop(CHAT)
            for one in sessions:
                assert await store.sessions.get(CHAT) == await one.get(CHAT)
        assert 100 < sum(cache.hits for cache in caches)
        assert 2 <= sum(cache.errors for cache in caches)


async def test_a_write_lost_in_an_outage_is_not_believed_afterwards(store, clock):
    """The cache comes back with what it held before: old, and known to be."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache)
    await sessions.put(CHAT, {"is": "old"})
    cache.down = True
    clock.advance(1)
    await sessions.put(CHAT, {"is": "new"})
    cache.down = False
    assert {"is": "old"} == (await cache.get(CHAT)).value
    assert {"is": "new"} == await sessions.get(CHAT)
    assert {"is": "new"} == (await cache.get(CHAT)).value


async def test_a_value_read_before_a_write_is_not_taken_for_newer(store, clock):
    """A slow reader fills the cache with what it read long ago: the next read finds the database's."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache)
    await sessions.put(CHAT, {"is": "old"})
    old, version = await store.sessions.get(CHAT), await version_of(store)
    await store.log.append(done("a"))
    new = await store.sessions.get(CHAT)
    cache.flush()
    await cache.put(CHAT, old, version=version)
    assert new == await sessions.get(CHAT)
    assert not await cache.put(CHAT, old, version=version)
    assert new == await sessions.get(CHAT)


async def test_a_hit_reads_no_session_from_the_database(store, clock):
    """Only its version."""
    cache = InMemorySessions(clock)
    await store.log.append(done("a"))
    value = await cached(store, cache).get(CHAT)
    broken = FlakyStore(store)
    broken.fail(["sessions.get"])
    assert value == await cached(broken, cache).get(CHAT)
    cache.flush()
    with pytest.raises(StoreUnavailableError):
        await cached(broken, cache).get(CHAT)


async def test_a_cached_session_is_its_owner_s(store, clock):
    """A hit for one user is no way around the owner's right."""
    sessions = cached(store, InMemorySessions(clock))
    await sessions.put(CHAT, {"is": "Ada's"})
    for stranger in (Scope("tenant", "bob", "chat"), Scope("tenant", None, "chat")):
        with pytest.raises(ConflictError):
            await sessions.get(stranger)
        with pytest.raises(ConflictError):
            await sessions.put(stranger, {})
    assert {"is": "Ada's"} == await sessions.get(CHAT)


async def test_an_erased_session_does_not_come_back(store, clock):
    """Not even while the cache still holds it, nor into the conversation that follows under the same id."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache)
    await sessions.put(CHAT, {"is": "erased"})
    await store.erase(CHAT)
    assert await cache.get(CHAT) is not None
    assert await sessions.get(CHAT) is None
    clock.advance(1)
    await store.log.append(done("a", agent="new"))
    assert "erased" not in str(await sessions.get(CHAT))


def test_versions_fit_into_lua():
    """For two centuries to come."""
    times = FakeClock().now(), datetime(2240, 1, 1, tzinfo=UTC)
    head = ConversationInfo(CHAT, None, *times, 10**9, 0, 0, 0, 0, 0)
    assert head_version(head) < 2**53
