"""A conversation over a cache that is lost in every way: what is read is what the database holds."""

import json
import random
from datetime import UTC, datetime

import pytest

from pagefile.engine.cache_doubts import TRUST_S
from pagefile.engine.metrics import NoMeter
from pagefile.engine.sessions import CachedSessions, FollowedLog, Sessions
from pagefile.errors import ConflictError, StoreUnavailableError
from pagefile.ports import ConversationQuery
from pagefile.records import ConversationInfo, Scope
from pagefile.stores import StoreOptions, head_version, open_store
from pagefile.testing import FakeClock, FlakyStore, InMemorySessions
from pagefile.testing.drafts import CHAT, checkpoint, done, reset, view
from tests.servers.valkey import ValkeyServer


@pytest.fixture
async def store(tmp_path, clock):
    options = StoreOptions(synchronous="normal")
    store = await open_store(f"sqlite:///{tmp_path}/memory.db", clock=clock, options=options)
    yield store
    await store.close()


def cached(store, cache, clock):
    async def sleep(seconds):
        clock.advance(seconds)

    def now():
        return clock.now().timestamp()

    return CachedSessions(store, cache, NoMeter(), clock, monotonic=now, sleep=sleep)


async def held(store):
    """What the database has, whatever a cache says."""
    return await Sessions(store, NoMeter()).get(CHAT)


async def version_of(store):
    (head,) = await store.reader.heads(ConversationQuery(CHAT))
    return head_version(head)


class Life:
    """One conversation, and everything that may happen to it and to its cache."""

    def __init__(self, store, server, clock, chance):
        self.store, self.server, self.clock, self.chance = store, server, clock, chance
        self.written = 0
        self.running = True

    def log(self, sessions):
        """The log as a program writes it that has the cache."""
        return FollowedLog(self.store.log, sessions.changed)

    async def turn(self, sessions):
        self.written += 1
        await self.log(sessions).append(done(f"t{self.written}", "头晕", f"answer {self.written}"))

    async def summary(self, sessions):
        (head,) = await self.store.reader.heads(ConversationQuery(CHAT)) or [None]
        if head is not None and head.live_turns:
            before = (await self.store.reader.view(view())).checkpoint
            self.written += 1
            version = 0 if before is None else before.version
            await self.log(sessions).mark(checkpoint(f"k{self.written}", head.last_seq, version))

    async def start_over(self, sessions):
        self.written += 1
        await self.log(sessions).mark(reset(f"r{self.written}"))

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
        sessions = [cached(store, cache, clock) for cache in caches]
        deeds = [life.turn] * 6 + [life.summary, life.start_over, life.application_writes, life.time_passes]
        for round_ in range(300):
            deed = life.crash if round_ % 40 == 39 else chance.choice(deeds)
            await deed(chance.choice(sessions))
            if chance.random() < 0.05:
                await caches[0].drop(CHAT)
            for one in (*sessions, *sessions):
                assert await held(store) == await one.get(CHAT)
                read = await one.read(CHAT, lambda: store.reader.view(view()))
                assert (await store.reader.view(view()), await held(store)) == read[:2]
        assert 100 < sum(cache.hits for cache in caches)
        assert 2 <= sum(cache.errors for cache in caches)


class Unreached(InMemorySessions):
    """The same server as another program's, which this one reaches or not."""

    def __init__(self, other, clock):
        super().__init__(clock)
        self._kept, self._invalidated = other._kept, other._invalidated


async def test_a_write_that_did_not_reach_the_cache_is_seen_by_all(store, clock):
    """As soon as it returns: whoever believed the old value does so no more. It waits once, and not with every write."""
    cache = InMemorySessions(clock)
    theirs = Unreached(cache, clock)
    sessions, others = cached(store, theirs, clock), cached(store, cache, clock)
    await sessions.put(CHAT, {"is": 0})
    waited = []
    for number in range(1, 40):
        assert number - 1 == (await others.get(CHAT))["is"]
        clock.advance(0.1)
        theirs.down, began = True, clock.now()
        await sessions.put(CHAT, {"is": number})
        waited.append((clock.now() - began).total_seconds())
        theirs.down = False
        for one in (others, sessions):
            assert number == (await one.get(CHAT))["is"]
        clock.advance(1)
    assert [TRUST_S, 0] == [pytest.approx(waited[0]), sum(waited[1:])]
    # When the doubt is over, the cache is believed again; the next loss is waited for.
    clock.advance(60)
    await others.get(CHAT)
    hits = cache.hits
    await others.get(CHAT)
    assert 1 == cache.hits - hits
    theirs.down, began = True, clock.now()
    await sessions.put(CHAT, {"is": "last"})
    assert TRUST_S == pytest.approx((clock.now() - began).total_seconds())
    assert "last" == (await others.get(CHAT))["is"]


async def test_a_view_is_not_believed_after_a_write_that_did_not_reach_the_cache(store, clock):
    """Nor while the database cannot be told either."""
    cache, broken = InMemorySessions(clock), FlakyStore(store)
    theirs = Unreached(cache, clock)
    sessions, others = cached(broken, theirs, clock), cached(store, cache, clock)
    log, read = FollowedLog(store.log, sessions.changed), lambda: store.reader.view(view())
    for number in range(9):
        theirs.down = number % 3 > 0
        broken.fail(["leases.claim", "leases.renew"] if number % 3 > 1 else [])
        await log.append(done(f"t{number}"))
        for _ in range(2):
            assert number + 1 == (await others.read(CHAT, read)).view.head.turns
        clock.advance((0.1, 7, 0.1, 40)[number % 4])


async def test_a_short_failure_is_waited_for_no_longer_than_it_lasts(store, clock):
    """The cache is told as soon as it answers."""
    cache = InMemorySessions(clock)
    sessions, others = cached(store, cache, clock), cached(store, cache, clock)
    await sessions.put(CHAT, {"is": "old"})
    await others.get(CHAT)

    async def sleep(seconds):
        clock.advance(seconds)
        cache.down = False

    sessions._doubts._sleep, cache.down = sleep, True
    began = clock.now()
    await sessions.put(CHAT, {"is": "new"})
    assert TRUST_S / 10 > (clock.now() - began).total_seconds()
    assert "new" == (await others.get(CHAT))["is"]


async def test_what_a_slow_reader_read_is_not_put_after_a_write(store, clock):
    """Somebody who holds a view of that version would believe it."""
    cache = InMemorySessions(clock)
    slow, quick = cached(store, cache, clock), cached(store, cache, clock)
    log, read = FollowedLog(store.log, quick.changed), lambda: store.reader.view(view())
    await log.append(done("a"))
    put, written = cache.put, []

    async def late(*given, **how):
        if not written:
            written.append(await log.append(done("b", "头晕", "多休息")))
        return await put(*given, **how)

    await slow.read(CHAT, read)
    await cache.drop(CHAT)
    cache.put = late
    for one in (slow.get(CHAT), slow.get(CHAT)):
        await one
    assert written
    cache.put = put
    assert 2 == (await slow.read(CHAT, read)).view.head.turns


async def test_who_wrote_during_an_outage_reads_what_was_written(store, clock):
    """At once, although the cache is back with the old value."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache, clock)
    await sessions.put(CHAT, {"is": "old"})
    await sessions.get(CHAT)
    cache.down = True
    clock.advance(0.1)
    await sessions.put(CHAT, {"is": "new"})
    cache.down = False
    assert "new" == (await sessions.get(CHAT))["is"]


async def test_a_program_without_the_cache_is_seen_soon(store, clock):
    """It invalidates nothing, so others believe the old value for two seconds; who reads the log knows at once."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache, clock)
    await store.log.append(done("a"))
    await sessions.get(CHAT)
    clock.advance(0.1)
    await store.log.append(done("b", "头晕", "多休息"))
    assert 1 == (await sessions.get(CHAT))["flow_context"]["turn_count"]
    read = await sessions.read(CHAT, lambda: store.reader.view(view()))
    assert 2 == read.session["flow_context"]["turn_count"]
    clock.advance(TRUST_S)
    await store.log.append(done("c"))
    clock.advance(TRUST_S)
    assert await held(store) == await sessions.get(CHAT)


async def test_a_value_read_before_a_write_is_not_taken_for_newer(store, clock):
    """A slow reader fills the cache with what it read long ago: the next read finds the database's."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache, clock)
    await sessions.put(CHAT, {"is": "old"})
    old, version = await sessions.get(CHAT), await version_of(store)
    await FollowedLog(store.log, sessions.changed).append(done("a"))
    new = await held(store)
    await cache.put(CHAT, old, version=version)
    assert new == await sessions.get(CHAT)
    assert not await cache.put(CHAT, old, version=version)
    assert new == await sessions.get(CHAT)


async def test_an_older_value_that_is_genuine_is_not_believed(store, clock):
    """Redis came back from a backup, or somebody put the value of yesterday there again with its label."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache, clock)
    await store.log.append(done("a"))
    await sessions.get(CHAT)
    kept = dict(cache._kept)
    clock.advance(1)
    await FollowedLog(store.log, sessions.changed).append(done("b"))
    assert 2 == (await sessions.get(CHAT))["flow_context"]["turn_count"]
    cache._kept |= kept
    assert 2 == (await sessions.get(CHAT))["flow_context"]["turn_count"]


async def test_a_hit_asks_the_database_nothing(store, clock):
    """Neither for the session nor for its version, for as long as the last comparison is believed."""
    cache = InMemorySessions(clock)
    await store.log.append(done("a"))
    broken = FlakyStore(store)
    sessions = cached(broken, cache, clock)
    value = await sessions.get(CHAT)
    broken.fail(["sessions.get", "reader.heads", "reader.view", "reader.owner"], error=AssertionError())
    for read in (sessions.get, sessions.get_for_operator):
        assert value == await read(CHAT)
    cache.flush()
    with pytest.raises(AssertionError):
        await sessions.get(CHAT)


async def test_while_the_database_is_down_the_cache_answers(store, clock):
    """Its owner, and operators; a stranger is not told."""
    cache = InMemorySessions(clock)
    await store.log.append(done("a"))
    broken = FlakyStore(store)
    sessions = cached(broken, cache, clock)
    value = await sessions.get(CHAT)
    broken.fail(["sessions.get", "reader.heads", "reader.view", "reader.owner"])
    clock.advance(60)
    for read in (sessions.get, sessions.get_for_operator):
        assert value == await read(CHAT)
    assert value["user_snapshot"] == await sessions.snapshot(CHAT)
    stranger = Scope("tenant", "bob", "chat")
    assert await sessions.snapshot(stranger) is None
    with pytest.raises(StoreUnavailableError):
        await sessions.get(stranger)
    cache.flush()
    with pytest.raises(StoreUnavailableError):
        await sessions.get(CHAT)


async def test_a_cached_session_is_its_owner_s(store, clock):
    """A hit for one user is no way around the owner's right."""
    sessions = cached(store, InMemorySessions(clock), clock)
    await sessions.put(CHAT, {"is": "Ada's"})
    for stranger in (Scope("tenant", "bob", "chat"), Scope("tenant", None, "chat")):
        with pytest.raises(ConflictError):
            await sessions.get(stranger)
        with pytest.raises(ConflictError):
            await sessions.put(stranger, {})
        assert "Ada's" == (await sessions.get(CHAT))["is"]


async def test_an_erased_session_does_not_come_back(store, clock):
    """Not even while the cache still holds it, once it is no longer believed, nor into the conversation that follows."""
    cache = InMemorySessions(clock)
    sessions = cached(store, cache, clock)
    await sessions.put(CHAT, {"is": "erased"})
    await sessions.get(CHAT)
    await store.erase(CHAT)
    assert await cache.get(CHAT) is not None
    clock.advance(TRUST_S)
    assert await sessions.get(CHAT) is None
    clock.advance(1)
    await store.log.append(done("a", agent="new"))
    assert "erased" not in str(await sessions.get(CHAT))


def test_versions_fit_into_lua():
    """For two centuries to come."""
    times = FakeClock().now(), datetime(2240, 1, 1, tzinfo=UTC)
    head = ConversationInfo(CHAT, None, *times, 10**9, 0, 0, 0, 0, 0)
    assert head_version(head) < 2**53
