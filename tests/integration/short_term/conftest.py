"""A fresh schema of PostgreSQL and an empty Valkey, which a test may stop."""

import pytest
from redis.asyncio import Redis

from tests.integration.postgres.serving import fresh_url
from tests.servers.valkey import ValkeyServer


@pytest.fixture(scope="module")
def server():
    with ValkeyServer() as server:
        yield server


@pytest.fixture
async def valkey(server):
    """Running and empty, whatever the test before did to it."""
    server.start()
    async with Redis.from_url(server.url) as redis:
        await redis.flushall()
    return server


@pytest.fixture
def url():
    return fresh_url()
