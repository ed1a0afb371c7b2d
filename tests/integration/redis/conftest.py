"""A real Valkey, programs that look at it beside us, and servers that misbehave."""

from contextlib import asynccontextmanager

import anyio
import pytest
from redis.asyncio import Redis

from pagefile.stores.redis import RedisOptions, RedisSessions
from pagefile.testing import FakeClock
from tests.servers.valkey import ValkeyServer


@pytest.fixture(scope="module")
def server():
    with ValkeyServer() as server:
        yield server


@pytest.fixture
async def redis(server):
    """Another program on the same server."""
    async with Redis.from_url(server.url, decode_responses=True) as redis:
        await redis.flushall()
        yield redis


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def opened(clock):
    """Opens caches whose breaker goes by `clock`, and closes them."""
    caches = []

    def opened(url, **options):
        # Long enough for a busy machine; those who test the timeout give their own.
        options.setdefault("timeout_s", 10)
        cache = RedisSessions(url, options=RedisOptions(**options), monotonic=lambda: clock.now().timestamp())
        caches.append(cache)
        return cache

    yield opened
    for cache in caches:
        await cache.close()


class Impostor:
    """Listens like a server, counts who connects, and answers everything alike: None is silence."""

    def __init__(self, url, answer):
        self.url = url
        self.answer = answer
        self.connections = 0

    async def serve(self, stream):
        self.connections += 1
        async with stream:
            try:
                while await stream.receive():
                    if self.answer is not None:
                        await stream.send(self.answer)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass


@asynccontextmanager
async def impostor(answer):
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    found = Impostor(f"redis://127.0.0.1:{port}", answer)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, found.serve)
        yield found
        group.cancel_scope.cancel()
