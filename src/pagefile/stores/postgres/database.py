"""The connections of a store (pooling, retries, closing), and the player that runs verbs on them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count
from typing import Any, Generic, TypeVar

import anyio.to_thread
from anyio import CancelScope

from pagefile.errors import ClosedError
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.driver import (
    LOST,
    OVERTAKEN,
    REFUSED,
    UNFIT,
    Connection,
    Pool,
    RawConnection,
    Row,
    open_pool,
    sql,
    translating,
)
from pagefile.stores.sql import plays
from pagefile.stores.sql.plays import Ask, Play, Player

T = TypeVar("T")

_MOST_ATTEMPTS = 8
_CONNECT_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 10.0


class _Work(Generic[T]):
    """A function on a connection, once."""

    __slots__ = ("_extension", "_function", "_timeout_s", "done")

    def __init__(
        self, function: Callable[[Connection], Awaitable[T]], timeout_s: float | None, extension: str
    ) -> None:
        self._function = function
        self._extension = extension
        self._timeout_s = timeout_s
        #: Whether every statement ran and only the commit is left.
        self.done = False

    async def run(self, pool: Pool, *, in_transaction: bool) -> T:
        async with pool.acquire(timeout=self._timeout_s) as raw:
            if not in_transaction:
                return await self._function(Connection(raw, self._extension))
            return await self._all_or_nothing(raw)

    async def _all_or_nothing(self, raw: RawConnection) -> T:
        """A transaction that is rolled back even when its task is cancelled: a cancelled rollback would leave it open."""
        transaction = raw.transaction()
        await transaction.start()
        try:
            result = await self._function(Connection(raw, self._extension))
            self.done = True
            return result
        finally:
            with CancelScope(shield=True):
                if self.done:
                    await transaction.commit()
                else:
                    # The caller wants to know the first error.
                    with suppress(*LOST, *REFUSED):
                        await transaction.rollback()


class Database:
    def __init__(self, place: Place, pool: Pool) -> None:
        self.place = place
        self._pool = pool
        self._closed = False
        #: The schema of pgvector, quoted, once it is known.
        self.extension = ""

    @classmethod
    async def open(cls, place: Place) -> "Database":
        """Connect, without checking the schema."""
        with translating(place.shown):
            pool = await open_pool(
                place.dsn,
                min_size=place.pool_min,
                max_size=place.pool_max,
                command_timeout=place.command_timeout_s or None,
                statement_cache_size=place.statement_cache,
                timeout=_CONNECT_TIMEOUT_S,
                server_settings=settings(place),
            )
        return cls(place, pool)

    async def read(self, function: Callable[[Connection], Awaitable[T]]) -> T:
        """The result of a function that reads, each statement in its own snapshot; it may be retried."""
        return await self._run(function, in_transaction=False, again=True)

    async def write(self, function: Callable[[Connection], Awaitable[T]], *, again: bool = True) -> T:
        """The result of a function that writes, in one transaction; it may be retried.

        When a connection is lost during the commit, it is unknown whether the transaction took effect: it is then retried
        only if applying it twice does no harm.
        """
        return await self._run(function, in_transaction=True, again=again)

    async def row(self, name: str, values: Mapping[str, Any]) -> Row | None:
        return await self.read(lambda connection: connection.row(name, values))

    async def rows(self, name: str, values: Mapping[str, Any]) -> list[Row]:
        return await self.read(lambda connection: connection.rows(name, values))

    async def close(self) -> None:
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
                work = _Work(function, self.place.command_timeout_s or None, self.extension)
                try:
                    return await work.run(self._pool, in_transaction=in_transaction)
                except OVERTAKEN:
                    # Reads too: they can deadlock with a migration.
                    if attempt == _MOST_ATTEMPTS:
                        raise
                except LOST as error:
                    # A connection may have died while it was idle. The others probably did too.
                    if lost or (work.done and not again) or isinstance(error, (TimeoutError, *UNFIT)):
                        raise
                    lost = True
                    await self._pool.expire_connections()
        raise AssertionError

    def check_open(self) -> None:
        if self._closed:
            raise ClosedError

    def raw(self) -> AbstractAsyncContextManager[RawConnection]:
        """A connection for schema work: `async with database.raw() as connection`."""
        self.check_open()
        return self._pool.acquire()


def settings(place: Place) -> dict[str, str]:
    asked = {
        "application_name": "pagefile",
        # Compiling a plan takes longer than any statement of ours.
        "jit": "off",
        # Every statement reads a few rows by key; a planner that expects many must not scan whole tables.
        "enable_seqscan": "off",
        "synchronous_commit": "on" if place.synchronous == "full" else "off",
    }
    if place.schema is not None:
        asked["search_path"] = quoted(place.schema)
    return asked


def quoted(name: str) -> str:
    """A quoted identifier, whatever characters it contains."""
    return '"' + name.replace('"', '""') + '"'


class PostgresPlayer(Player):
    """Takes a connection of the pool for each verb."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, play: Callable[[], Play[T]]) -> T:
        return await self._database.read(lambda connection: played(connection, play()))

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self._database.write(lambda connection: played(connection, play()), again=again)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        self._database.check_open()
        return work() if small else await anyio.to_thread.run_sync(work)


async def played(connection: Connection, play: Play[T]) -> T:
    """The result of a verb, in the connection's current transaction."""
    return await plays.played_async(play, lambda ask: _answer(connection, ask))


async def _answer(connection: Connection, ask: Ask) -> Any:
    wanted, name, values = ask
    if not sql(name).text:
        return plays.skipped(wanted)
    match wanted:
        case "row":
            return await connection.row(name, values)
        case "rows":
            return await connection.rows(name, values)
        case "count":
            return await connection.count(name, values)
        case "many":
            return await connection.many(name, values)
