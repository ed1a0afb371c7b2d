"""Many at once: the newest wins, the small pool is enough, and nobody who is cancelled takes a connection along."""

import random

import anyio
import pytest

from pagefile.ports import CachedSession
from pagefile.records import Scope

CHAT = Scope(conversation="chat")


@pytest.fixture
def cache(server, redis, opened):
    return opened(server.url)


async def test_of_two_writers_the_newest_wins(cache, server, opened):
    """In every one of 200 races between two programs, with a reader who never sees a value go back."""
    other, chance = opened(server.url), random.Random(1)
    seen = [0]

    async def write(writer, version):
        for _ in range(chance.randrange(4)):
            await anyio.lowlevel.checkpoint()
        await writer.put(CHAT, {"is": version}, version=version)

    async def look():
        found = await cache.get(CHAT)
        if found is not None:
            assert {"is": found.version} == found.value
            seen.append(found.version)

    for race in range(200):
        newest = 2 * race + 2
        writers = [cache, other]
        chance.shuffle(writers)
        async with anyio.create_task_group() as group:
            group.start_soon(write, writers[0], newest)
            group.start_soon(write, writers[1], newest - 1)
            group.start_soon(look)
        assert CachedSession({"is": newest}, newest) == await cache.get(CHAT)
    assert sorted(seen) == seen
    assert (0, 0) == (cache.errors, other.errors)


async def test_five_hundred_at_once_share_a_small_pool(server, redis, opened):
    """None fails, and there are never more connections than allowed."""
    cache, found = opened(server.url, connections=4), []
    await cache.put(CHAT, {"is": "here"}, version=1)
    before = (await redis.info("stats"))["total_connections_received"]

    async def read():
        found.append(await cache.get(CHAT))

    async with anyio.create_task_group() as group:
        for _ in range(500):
            group.start_soon(read)
    assert [CachedSession({"is": "here"}, 1)] * 500 == found
    assert (500, 0, 0) == (cache.hits, cache.misses, cache.errors)
    assert (await redis.info("stats"))["total_connections_received"] - before <= 3


async def test_a_cancelled_call_leaves_the_pool_whole(server, redis, opened):
    """Connections are given back, and nobody gets an answer that was meant for another."""
    filler, chance = opened(server.url), random.Random(2)
    chats = [Scope(conversation=f"chat-{number}") for number in range(20)]
    for number, chat in enumerate(chats):
        await filler.put(chat, {"of": number}, version=1)
    for _ in range(10):
        cache = opened(server.url, connections=2)
        for _ in range(4):
            async with anyio.create_task_group() as group:
                for chat in chats:
                    group.start_soon(cache.get, chat)
                for _ in range(chance.randrange(1, 15)):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        for number, chat in enumerate(chats):
            assert CachedSession({"of": number}, 1) == await cache.get(chat)
        assert 0 == cache.errors
