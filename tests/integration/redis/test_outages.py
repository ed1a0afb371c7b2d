"""Whatever becomes of the server, nothing is raised, one call pays, and each outage is told once."""

import anyio
import pytest
from redis.asyncio import Redis

from pagefile.ports import CachedSession
from pagefile.records import Scope
from tests.servers.valkey import ValkeyServer
from tests.waiting import until

from .conftest import impostor

pytestmark = pytest.mark.waits
CHAT = Scope(conversation="chat")
LOADING = b"-LOADING Valkey is loading the dataset in memory\r\n"
GARBAGE = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def own():
    """A server of the test's own, to do harm to."""
    with ValkeyServer() as server:
        yield server


async def use(cache):
    """Every verb once, none of which finds or keeps anything."""
    assert await cache.get(CHAT) is None
    assert not await cache.put(CHAT, {}, version=1)
    await cache.drop(CHAT)


def told(caplog):
    return [record.levelname for record in caplog.records if record.name == "pagefile"]


async def test_a_dead_server_is_asked_once(own, opened, clock, caplog):
    """Then no more until a rest is over; each failed trial makes the next rest twice as long."""
    own.stop()
    cache = opened(own.url)
    for _ in range(10):
        await use(cache)
    assert (1, 10) == (cache.errors, cache.misses)
    for trials, rest in enumerate((1, 2, 4, 8, 16, 30, 30), start=1):
        clock.advance(rest - 0.5)
        await use(cache)
        assert trials == cache.errors
        clock.advance(0.5)
        await use(cache)
        assert trials + 1 == cache.errors
        assert not cache.answers
    assert ["WARNING"] == told(caplog)


async def test_the_server_comes_back(own, opened, clock, caplog):
    """The first trial that is answered ends the outage, which is told as well."""
    caplog.set_level("INFO", "pagefile")
    cache = opened(own.url)
    assert await cache.put(CHAT, {"is": "here"}, version=1)
    own.kill()
    await use(cache)
    own.start()
    await use(cache)
    clock.advance(1)
    assert await cache.get(CHAT) is None
    assert await cache.put(CHAT, {"is": "back"}, version=1)
    assert CachedSession({"is": "back"}, 1) == await cache.get(CHAT)
    assert (1, ["WARNING", "INFO"]) == (cache.errors, told(caplog))


async def test_a_restart_between_two_calls_goes_unnoticed(own, opened, caplog):
    """A connection that ended meanwhile is replaced, not taken for an outage."""
    cache = opened(own.url)
    await cache.put(CHAT, {"is": "here"}, version=1)
    own.kill()
    own.start()
    # The event loop has heard that the connection ended.
    (connection,) = cache._redis.connection_pool._available_connections
    await until(connection._reader.at_eof)
    assert await cache.get(CHAT) is None
    assert await cache.put(CHAT, {"is": "back"}, version=1)
    assert (0, []) == (cache.errors, told(caplog))


async def test_a_server_that_hangs_costs_one_timeout(own, opened, clock):
    """What it held counts again once it answers."""
    cache = opened(own.url, timeout_s=2)
    assert await cache.put(CHAT, {"is": "here"}, version=1)
    own.pause()
    for _ in range(5):
        await use(cache)
    assert 1 == cache.errors
    own.resume()
    clock.advance(1)
    assert CachedSession({"is": "here"}, 1) == await cache.get(CHAT)


async def test_a_silent_server_sees_one_connection(opened, clock):
    """One for the call that finds out, one for each trial."""
    async with impostor(None) as silent:
        cache = opened(silent.url, timeout_s=0.5)
        for _ in range(5):
            await use(cache)
        assert (1, 1) == (silent.connections, cache.errors)
        clock.advance(1)
        await use(cache)
        assert (2, 2) == (silent.connections, cache.errors)


async def test_calls_that_wait_for_a_connection_do_not_each_find_out(opened):
    """Those that were under way when it was found out end, those behind them are turned away."""
    async with impostor(None) as silent:
        cache = opened(silent.url, timeout_s=0.5, connections=4)
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(use, cache)
        assert (4, 4) == (silent.connections, cache.errors)


@pytest.mark.parametrize("answer", [LOADING, GARBAGE, b"\x00\xff\r\n" * 100, b"$-7\r\n", b"*1\r\n:1\r\n"])
async def test_strange_answers_are_misses(opened, answer, caplog):
    """Of a server that is loading, or is no Redis at all."""
    async with impostor(answer) as strange:
        cache = opened(strange.url, timeout_s=0.5)
        for _ in range(3):
            await use(cache)
        assert (0, 3) == (cache.hits, cache.misses)
        assert cache.errors <= 1
        assert cache.errors == len(told(caplog))


async def test_a_full_server_still_gives_what_it_holds(own, opened, caplog):
    """What cannot be put is told once, and again only after it went well in between."""
    cache = opened(own.url)
    assert await cache.put(CHAT, {"is": "here"}, version=1)
    other = Scope(conversation="other")
    for _ in range(2):
        await configure(own, "maxmemory", "1")
        for version in range(2, 5):
            assert not await cache.put(other, {"x": "y" * 1000}, version=version)
            assert CachedSession({"is": "here"}, 1) == await cache.get(CHAT)
        await configure(own, "maxmemory", "0")
        assert await cache.put(other, {}, version=5)
        await cache.drop(other)
    assert (6, ["WARNING", "WARNING"]) == (cache.errors, told(caplog))


async def test_a_read_only_server_still_gives_what_it_holds(own, opened, caplog):
    """A replica, for instance: writes are refused, and each verb is told once."""
    cache = opened(own.url)
    assert await cache.put(CHAT, {"is": "here"}, version=1)
    await command(own, "REPLICAOF", "127.0.0.1", "1")
    for version in range(2, 5):
        assert not await cache.put(CHAT, {}, version=version)
        await cache.drop(CHAT)
        assert CachedSession({"is": "here"}, 1) == await cache.get(CHAT)
    assert (6, ["WARNING", "WARNING"]) == (cache.errors, told(caplog))


async def command(server, *words):
    async with Redis.from_url(server.url) as redis:
        await redis.execute_command(*words)


async def configure(server, name, value):
    await command(server, "CONFIG", "SET", name, value)
