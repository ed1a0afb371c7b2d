"""Opens a database file: looks before it touches, then sets it up.

A file that is not ours is left exactly as it was.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from pagefile.errors import StoreCorruptError, StoreUnavailableError
from pagefile.stores.sqlite.driver import Connection, connect, translating
from pagefile.stores.sqlite.migrating import check_version, migrate

#: Written into the header of our files: "PGFL".
APPLICATION_ID = 0x5047464C
BUSY_TIMEOUT_MS = 10_000

Synchronous = Literal["full", "normal"]


@dataclass(frozen=True, slots=True)
class Place:
    """A database file and how to open it."""

    path: Path
    synchronous: Synchronous = "full"


@dataclass(frozen=True, slots=True)
class Opened:
    """The connections of a store."""

    writer: Connection
    readers: tuple[Connection, ...]
    read_only: bool


def open_connections(place: Place, *, readers: int) -> Opened:
    """A connection that writes and several that read, on a database of our schema."""
    _check_directory(place.path)
    with translating(str(place.path)):
        try:
            writer = _prepared(place)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if not place.path.is_file():
                raise
            return _open_unwritable(place, readers)
        read_only = writer.readonly("main")
        return Opened(writer, tuple(_reader(place) for _ in range(readers)), read_only)


def rewrite(place: Place) -> None:
    """Write the file anew, without the pages that were freed; readers go on, writers wait."""
    with translating(str(place.path)):
        connection = connect(str(place.path))
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            _tune(connection, place)
            connection.execute("VACUUM")
            connection.pragma("wal_checkpoint", "truncate")
        finally:
            connection.close()


def _check_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreUnavailableError(
            f"{str(path)!r} cannot be opened: its directory does not exist. Make it with `mkdir -p {path.parent}`."
        )


def _prepared(place: Place) -> Connection:
    connection = connect(str(place.path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        _check_ours(connection, place)
        if connection.readonly("main"):
            check_version(connection, str(place.path), exactly=True)
        else:
            _enter_wal(connection)
            # Before anything is moved: what a migration copies must not stay in the pages that it frees.
            connection.pragma("secure_delete", True)
            migrate(connection, str(place.path), APPLICATION_ID)
        _tune(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(connection: Connection, place: Place) -> None:
    # One snapshot: another process may be making the tables at this moment.
    connection.execute("BEGIN")
    try:
        application = connection.pragma("application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        version = check_version(connection, str(place.path)) if application in {0, APPLICATION_ID} else 0
    finally:
        connection.execute("COMMIT")
    if application != APPLICATION_ID and (application or tables or version):
        raise StoreCorruptError(
            f"{str(place.path)!r} is a SQLite database, but not one of Pagefile's: name another file. It was left untouched."
        )


def _enter_wal(connection: Connection) -> None:
    # Two processes that open a new file at once may refuse each other here without asking the busy handler.
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _tune(connection: Connection, place: Place) -> None:
    connection.pragma("synchronous", place.synchronous)
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    # Sorted rows must not reach a temporary file, where an erasure would not find them.
    connection.pragma("temp_store", "memory")


def _reader(place: Place) -> Connection:
    connection = connect(str(place.path))
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    _tune(connection, place)
    connection.pragma("query_only", True)
    return connection


def _open_unwritable(place: Place, readers: int) -> Opened:
    """Reads a database whose directory cannot be written, provided that nobody writes to it now.

    SQLite needs a shared-memory file beside a database in WAL mode. Where it cannot make one, and no write-ahead log
    is there to be missed, the file can be read as one that never changes.
    """
    if Path(f"{place.path}-wal").exists():
        raise StoreUnavailableError(
            f"{str(place.path)!r} is in use and its directory cannot be written: give this user write permission to the "
            "directory, or copy the database elsewhere."
        )
    uri = f"file:{quote(str(place.path.resolve()))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connections: list[Connection] = []
    for _ in range(readers + 1):
        connection = connect(uri, flags)
        connections.append(connection)
        _check_ours(connection, place)
        check_version(connection, str(place.path), exactly=True)
        _tune(connection, place)
    return Opened(connections[0], tuple(connections[1:]), read_only=True)
