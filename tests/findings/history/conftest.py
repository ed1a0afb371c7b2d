"""The stores that the findings were seen on: each test gets one that nobody used."""

import pytest
from redis.asyncio import Redis

from tests.integration.postgres.serving import fresh_url
from tests.servers.valkey import ValkeyServer


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path}/history.db"


@pytest.fixture
def postgres_url():
    return fresh_url()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    """Both databases, for what a program reads in their tables."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(scope="session")
def valkey_server():
    with ValkeyServer() as server:
        yield server


@pytest.fixture
async def redis(valkey_server):
    """Another program on the same server, which is empty."""
    async with Redis.from_url(valkey_server.url, decode_responses=True) as redis:
        await redis.flushall()
        yield redis


@pytest.fixture
def valkey_url(valkey_server, redis):
    return valkey_server.url
