"""A session as a program reads it that trusts its cache: one GET of the document's key."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from pagefile.errors import MissingExtraError
from pagefile.records import Scope
from pagefile.stores.redis.sessions import keys_of

try:
    from redis.asyncio import Redis
except ImportError as error:
    raise MissingExtraError.of("redis", "Measuring Redis") from error


@asynccontextmanager
async def bare_get(url: str, scope: Scope) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """A function that reads the session of a conversation, on a connection that stays open."""
    key, _ = keys_of(scope)
    # redis-py does not type what it passes on.
    redis: Redis = Redis.from_url(url, single_connection_client=True)  # pyright: ignore[reportUnknownMemberType]
    async with redis:
        yield lambda: redis.get(key)
