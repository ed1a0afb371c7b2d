"""Redis, and the fake beside it, keep every promise of a session cache."""

import pytest
from redis.asyncio import Redis

from pagefile.stores.redis import RedisOptions, RedisSessions
from pagefile.testing import FakeClock, InMemorySessions, contracts
from tests.servers.valkey import ValkeyServer

# A busy machine is no outage.
PATIENT = RedisOptions(timeout_s=10)


@pytest.fixture(scope="module")
def server():
    with ValkeyServer() as server:
        yield server


@pytest.fixture
async def redis(server):
    async with Redis.from_url(server.url) as redis:
        await redis.flushall()
        yield redis


class TestRedis(contracts.SessionCacheContract):
    @pytest.fixture
    async def cache(self, server, redis):
        cache = RedisSessions(server.url, options=PATIENT)
        yield cache
        await cache.close()

    @pytest.fixture
    async def elapse(self, redis):
        async def elapse(seconds):
            for key in await redis.keys():
                await redis.pexpire(key, await redis.pttl(key) - round(seconds * 1000))

        return elapse


class TestFake(contracts.SessionCacheContract):
    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    async def cache(self, clock):
        return InMemorySessions(clock)

    @pytest.fixture
    async def elapse(self, clock):
        async def elapse(seconds):
            clock.advance(seconds)

        return elapse
