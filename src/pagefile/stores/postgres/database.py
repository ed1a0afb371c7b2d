"""The connections of a store (pooling, retries, closing), and the player that runs verbs on them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from itertools import count
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CancelScope

from pagefile.errors import ClosedError
from pagefile.stores.postgres import driver
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.driver import Connection, RawConnection, translating
from pagefile.stores.sql.plays import Ask, Play, Player, skipped

T = TypeVar("T")

_MOST_ATTEMPTS = 8
_CONNECT_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 10.0


@asynccontextmanager
async def _transaction(raw: RawConnection) -> AsyncGenerator[None]:
    """A transaction that is rolled back even when its task is cancelled: a cancelled rollback would leave it open."""
    transaction = raw.transaction()
    await transaction.start()
    done = False
    try:
        yield
        done = True
    finally:
        with CancelScope(shield=True):
            if done:
                await transaction.commit()
            else:
                # The caller wants to know the first error.
                with suppress(*driver.LOST, *driver.REFUSED):
                    await transaction.rollback()


class Database(Player):
    """Takes a connection of the pool for each verb."""

    def __init__(self, place: Place, pool: driver.Pool) -> None:
        self.place = place
        self._pool = pool
        self._closed = False
        #: The schema of pgvector, quoted, once it is known.
        self.extension = ""

    @classmethod
    async def open(cls, place: Place) -> "Database":
        """Connect, without checking the schema."""
        with translating(place.shown):
            pool = await driver.open_pool(
                place.dsn,
                min_size=place.pool_min,
                max_size=place.pool_max,
                command_timeout=place.command_timeout_s or None,
                statement_cache_size=place.statement_cache,
                timeout=_CONNECT_TIMEOUT_S,
                server_settings=settings(place),
            )
        return cls(place, pool)

    async def read(self, play: Callable[[], Play[T]], *, often: Hashable = None) -> T:
        return await self.run(lambda connection: played(connection, play()))

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self.run(lambda connection: played(connection, play()), in_transaction=True, again=again)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        self.check_open()
        return work() if small else await anyio.to_thread.run_sync(work)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_TIMEOUT_S)
        except (TimeoutError, *driver.LOST):
            self._pool.terminate()

    async def run(
        self,
        function: Callable[[Connection], Awaitable[T]],
        *,
        in_transaction: bool = False,
        again: bool = True,
    ) -> T:
        """The result of a function on a connection, with a snapshot for each statement or in one transaction.

        It may be retried. When a connection is lost during the commit, it is unknown whether the transaction took effect: it
        is then retried only if applying it twice does no harm (`again`).
        """
        with translating(self.place.shown):
            lost = False
            for attempt in count(1):
                self.check_open()
                committing = False
                try:
                    async with self._pool.acquire(timeout=self.place.command_timeout_s or None) as raw:
                        connection = Connection(raw, self.extension)
                        if not in_transaction:
                            return await function(connection)
                        async with _transaction(raw):
                            result = await function(connection)
                            committing = True
                        return result
                except driver.OVERTAKEN:
                    # Reads too: they can deadlock with a migration.
                    if attempt == _MOST_ATTEMPTS:
                        raise
                except driver.LOST as error:
                    # A connection may have died while it was idle. The others probably did too.
                    if lost or (committing and not again) or isinstance(error, (TimeoutError, *driver.UNFIT)):
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
    return '"' + name.replace('"', '""') + '"'


async def played(connection: Connection, play: Play[T]) -> T:
    """The result of a verb, in the connection's current transaction."""
    answered: Any = None
    # Closed at once if a statement fails, as in `plays.played`.
    with closing(play):
        while True:
            try:
                ask = play.send(answered)
            except StopIteration as end:
                return end.value
            answered = await _answer(connection, ask)


async def _answer(connection: Connection, ask: Ask) -> Any:
    wanted, name, values = ask
    # The kinds of result are the names of the connection's methods.
    return await getattr(connection, wanted)(name, values) if driver.sql(name).text else skipped(wanted)
