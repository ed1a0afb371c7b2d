"""The store of `memory://`: a private SQLite database in memory, which ends with its store.

Verbs run in place, in the caller's thread: nothing waits for a disk, and a thread switch takes longer than most verbs.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import anyio.to_thread

from pagefile.errors import ClosedError
from pagefile.ports import Clock
from pagefile.records import JsonObject
from pagefile.stores.sql.plays import Play
from pagefile.stores.sqlite.database import migrate, tune
from pagefile.stores.sqlite.driver import Connection, connect, transaction, translating
from pagefile.stores.sqlite.player import ConnectionPlayer, played
from pagefile.stores.sqlite.store import ConnectionStore

T = TypeVar("T")

_PLACE = "memory://"
#: SQLite's name of a database that belongs to its connection alone.
_PRIVATE = ":memory:"
_blank_lock = threading.Lock()


class InMemoryStore(ConnectionStore):
    index_name = "memory"

    def __init__(self, clock: Clock) -> None:
        self._in_place = InPlacePlayer()
        super().__init__(self._in_place, clock)

    async def describe(self) -> JsonObject:
        self._in_place.check_open()
        return {"backend": "memory", "version": None, "place": None, "bytes": None, "read_only": False}

    async def close(self) -> None:
        self._in_place.close()


class InPlacePlayer(ConnectionPlayer):
    """Runs verbs one at a time on one connection, which is made when it is first needed."""

    def __init__(self) -> None:
        #: Event loops of several threads may share a store.
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    async def look(self, read: Callable[[Connection], T]) -> T:
        with self._lock, translating(_PLACE):
            return read(self._connected())

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        with self._lock, translating(_PLACE):
            connection = self._connected()
            with transaction(connection):
                return played(connection, play())

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        self.check_open()
        return work() if small else await anyio.to_thread.run_sync(work)

    def check_open(self) -> None:
        if self._closed:
            raise ClosedError

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _connected(self) -> Connection:
        self.check_open()
        if self._connection is None:
            connection = connect(_PRIVATE)
            with _blank_lock, connection.backup("main", _blank(), "main") as copy:
                copy.step()
            tune(connection)
            self._connection = connection
        return self._connection


@cache
def _blank() -> Connection:
    """An empty database with all tables, made once per process: migrating takes thirty times as long as a copy."""
    connection = connect(_PRIVATE)
    migrate(connection, _PLACE)
    return connection
