"""The connections of a store: who gets one, what is tried again, and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar, cast

import asyncpg

from pagefile.errors import ClosedError
from pagefile.stores.postgres.driver import LOST, OVERTAKEN, Connection, Row, Values, translating
from pagefile.stores.postgres.place import Place

T = TypeVar("T")

_MOST_ATTEMPTS = 8
_CONNECT_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 10.0


class _PlainConnection(asyncpg.Connection):
    """Leaves nothing behind that would have to be reset: no settings, no locks, no cursors. Saves a round trip each time."""

    def get_reset_query(self) -> str:
        return ""


class Database:
    """A pool of connections to one schema."""

    def __init__(self, place: Place, pool: Any) -> None:
        self.place = place
        self._pool = pool
        self._closed = False

    @classmethod
    async def open(cls, place: Place) -> "Database":
        """Connect; the schema is looked at by others."""
        pool: Any = asyncpg.create_pool(
            place.dsn,
            min_size=place.pool_min,
            max_size=place.pool_max,
            command_timeout=place.command_timeout_s or None,
            statement_cache_size=place.statement_cache,
            timeout=_CONNECT_TIMEOUT_S,
            connection_class=_PlainConnection,
            server_settings=_settings(place),
        )
        with translating(place.shown):
            await pool
        return cls(place, pool)

    async def read(self, function: Callable[[Connection], Awaitable[T]]) -> T:
        """What a function reads, each statement in its own snapshot; it may be run again."""
        return await self._run(function, in_transaction=False, again=True)

    async def write(self, function: Callable[[Connection], Awaitable[T]], *, again: bool = True) -> T:
        """What a function does, all of it or nothing; it may be run again, also (unless told not to) after a connection was
        lost and nobody knows whether the first time counted.
        """
        return await self._run(function, in_transaction=True, again=again)

    async def row(self, name: str, values: Values) -> Row | None:
        """The first row of one statement, which may be run again."""
        return await self.read(lambda connection: connection.row(name, values))

    async def rows(self, name: str, values: Values) -> list[Row]:
        """The rows of one statement, which may be run again."""
        return await self.read(lambda connection: connection.rows(name, values))

    async def close(self) -> None:
        """Finish what was accepted and let go."""
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_TIMEOUT_S)
        except (TimeoutError, *LOST):
            self._pool.terminate()

    async def _run(
        self, function: Callable[[Connection], Awaitable[T]], *, in_transaction: bool, again: bool
    ) -> T:
        with translating(self.place.shown):
            lost = False
            for attempt in count(1):
                self.check_open()
                try:
                    return await self._once(function, in_transaction=in_transaction)
                except OVERTAKEN:
                    if not in_transaction or attempt == _MOST_ATTEMPTS:
                        raise
                except LOST as error:
                    # A connection may have died while nobody used it. The others probably did too.
                    if lost or not again or isinstance(error, TimeoutError | asyncpg.DataError):
                        raise
                    lost = True
                    await self._pool.expire_connections()
        raise AssertionError

    async def _once(self, function: Callable[[Connection], Awaitable[T]], *, in_transaction: bool) -> T:
        async with self._pool.acquire(timeout=self.place.command_timeout_s or None) as raw:
            if not in_transaction:
                return await function(Connection(raw))
            async with raw.transaction():
                return await function(Connection(raw))

    def check_open(self) -> None:
        """Nobody uses a store that was closed."""
        if self._closed:
            raise ClosedError

    def raw(self) -> Any:
        """A connection for whoever looks after the schema: `async with database.raw() as connection`."""
        self.check_open()
        return self._pool.acquire()


def _settings(place: Place) -> dict[str, str]:
    settings = {
        "application_name": "pagefile",
        # Compiling a plan takes longer than any statement of ours.
        "jit": "off",
        "synchronous_commit": "on" if place.synchronous == "full" else "off",
    }
    if place.schema is not None:
        settings["search_path"] = quoted(place.schema)
    return settings


def quoted(name: str) -> str:
    """A name as PostgreSQL reads it, whatever is in it."""
    return cast("str", '"' + name.replace('"', '""') + '"')
