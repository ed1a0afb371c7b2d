"""The database file: opened, migrated, copied, and the reserve beside it.

A file that is not ours is left untouched.
"""

import logging
import os
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from pagefile.errors import SchemaVersionError, SettingsError, StoreCorruptError, StoreUnavailableError
from pagefile.stores.sql.auditor import fill_digests
from pagefile.stores.sql.texts import migration_texts
from pagefile.stores.sqlite.driver import (
    BUSY_TIMEOUT_S,
    Connection,
    connect,
    transaction,
    translating,
    wait_for_locks,
)
from pagefile.stores.sqlite.player import played, sql

#: Written into the header of our files: "PGFL".
APPLICATION_ID = 0x5047464C
#: How a file begins that is not encrypted.
_PLAIN = b"SQLite format 3\0"

Synchronous = Literal["full", "normal"]


@dataclass(frozen=True, slots=True)
class Place:
    path: Path
    synchronous: Synchronous = "full"
    #: What every page of the file and of its write-ahead log is encrypted with.
    key: str | None = field(default=None, repr=False)


class FileWatch:
    """Detects that the open file was deleted or replaced: SQLite would keep writing to the unlinked file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._identity()

    def check(self) -> None:
        if self._identity() != self._opened:
            raise StoreUnavailableError(
                f"{str(self._path)!r} was deleted or replaced while it was open, so nothing more is written: put the file back, "
                "or restore a backup, and open it again."
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def open_connections(place: Place, *, readers: int) -> list[Connection]:
    """A connection that writes, unless the file is read-only, and then several that read, on a database of our schema."""
    if not place.path.parent.is_dir():
        raise StoreUnavailableError(
            f"{str(place.path)!r} cannot be opened: its directory does not exist. Make it with `mkdir -p {place.path.parent}`."
        )
    if place.key is not None and place.path.is_file() and is_plain(place.path):
        raise SettingsError(
            f"{str(place.path)!r} is not encrypted, but there is an `encryption_key_file`: make an encrypted copy with "
            "`pagefile backup FILE`, and put it in the place of the database."
        )
    with translating(str(place.path)):
        try:
            writer = _prepared(place)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if not place.path.is_file():
                raise
            return _open_unwritable(place, readers)
        return [writer, *(_reader(place) for _ in range(readers))]


def rewrite(place: Place) -> None:
    """Rewrite the file without its free pages; readers continue, writers wait. The old pages stay in the write-ahead log until that is emptied."""
    with translating(str(place.path)), closing(_connected(place)) as connection:
        tune(connection, place.synchronous)
        connection.execute("VACUUM")


def _prepared(place: Place) -> Connection:
    with ExitStack() as undo:
        connection = _connected(place)
        undo.callback(connection.close)
        _check_ours(connection, place)
        if connection.readonly("main"):
            check_version(connection, str(place.path), exactly=True)
        else:
            _enter_wal(connection)
            # Before any migration: rows that it copies must not stay in the pages that it frees.
            connection.pragma("secure_delete", True)
            migrate(connection, str(place.path))
        tune(connection, place.synchronous)
        undo.pop_all()
        return connection


def _connected(place: Place, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) -> Connection:
    connection = connect(str(place.path), flags, key=place.key)
    wait_for_locks(connection)
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
            f"{str(place.path)!r} is a SQLite database, but not one of Pagefile's: name another file. It was left untouched. "
            "Rows of an ai_message or a messages table in it can be brought along: `pagefile import FILE --from ai-message`."
        )


def _enter_wal(connection: Connection) -> None:
    # Two processes that open a new file at once may refuse each other here without asking the busy handler.
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def tune(connection: Connection, synchronous: Synchronous = "full") -> None:
    connection.pragma("synchronous", synchronous)
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    # Sorted rows must not reach a temporary file, where an erasure would not find them.
    connection.pragma("temp_store", "memory")


def _reader(place: Place) -> Connection:
    connection = _connected(place)
    tune(connection, place.synchronous)
    connection.pragma("query_only", True)
    return connection


def _open_unwritable(place: Place, readers: int) -> list[Connection]:
    """Read a database whose directory is read-only, provided that no other process is writing to it.

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
        connection = connect(uri, flags, key=place.key)
        connections.append(connection)
        _check_ours(connection, place)
        check_version(connection, str(place.path), exactly=True)
        tune(connection, place.synchronous)
    return connections


@cache
def migrations() -> tuple[str, ...]:
    """The migrations in order; the schema version is how many were applied."""
    return tuple(migration_texts("pagefile.stores.sqlite").values())


def check_version(connection: Connection, place: str, *, exactly: bool = False) -> int:
    """The schema version of the file, or an error when this version of Pagefile cannot use it."""
    found, known = int(connection.pragma("user_version")), len(migrations())
    if found > known:
        raise SchemaVersionError(
            f"{place!r} has schema version {found}, this version of Pagefile knows {known}: upgrade with "
            "`pip install --upgrade pagefile`. The file was left untouched."
        )
    if exactly and found < known:
        raise SchemaVersionError(
            f"{place!r} has schema version {found} and must be brought to {known}, but cannot be written: "
            "open it once with write permission."
        )
    return found


def migrate(connection: Connection, place: str) -> None:
    """Apply missing migrations, each in a transaction with its version; other processes may be doing the same."""
    while check_version(connection, place) < len(migrations()):
        with transaction(connection):
            # Another process may have been faster while this one waited for the lock.
            found = check_version(connection, place)
            if found < len(migrations()):
                connection.execute(migrations()[found])
                if found + 1 == len(migrations()):
                    # The first files of schema 3 had vectors without their owner, and no later migration added it.
                    columns = connection.execute("PRAGMA table_info(conversation_episodes)")
                    if "user_id" not in {row[1] for row in columns}:
                        connection.execute(sql("episodes_rebuild"))
                    played(connection, fill_digests())
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", found + 1)


def version_of(place: Place) -> int:
    with translating(str(place.path)), closing(_opened(place)) as connection:
        return check_version(connection, str(place.path))


def copied(place: Place, copy: Path) -> None:
    """Make a consistent copy, without erased data that is still in the free pages of the file.

    With a key the copy is encrypted, even if the file is not yet.
    """
    if copy.exists():
        raise StoreUnavailableError(f"{str(copy)!r} is there already: name another file for the backup.")
    source = replace(place, key=None) if is_plain(place.path) else place
    target = str(copy)
    if place.key is not None:
        target = f"file:{quote(str(copy.resolve()))}?key={quote(place.key, safe='')}"
    with translating(str(copy)), closing(_opened(source)) as connection:
        connection.execute("VACUUM INTO :copy", {"copy": target})


def is_plain(path: Path) -> bool:
    """Whether a file is a SQLite database that is not encrypted."""
    with path.open("rb") as file:
        return file.read(len(_PLAIN)) == _PLAIN


def _opened(place: Place) -> Connection:
    # Not read-only: a write-ahead log that a dead process left must be read too.
    return _connected(place, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)


logger = logging.getLogger("pagefile")

#: Room for a write-ahead log of its usual size that has to be folded into the database, and for a part of an erasure.
MOST_BYTES = 6 * 2**20
#: Enough for an erasure from a database that was just begun; it doubles as the database grows.
_LEAST_BYTES = 2**19


class Reserve:
    """As large as the database and its log, which is the most that an erasure writes, up to a few megabytes."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.path = database.with_name(f"{database.name}-reserve")
        self._told = False

    def keep(self) -> None:
        """Create or enlarge it; if the disk has no room, that is logged and tried again later."""
        try:
            self._grow()
        except OSError as error:
            level = logging.DEBUG if self._told else logging.WARNING
            logger.log(level, "no reserve beside %s for erasing on a full disk: %s", self._database, error)
            self._told = True
        else:
            self._told = False

    def give_up(self) -> None:
        """Release its space on the disk."""
        self.path.unlink(missing_ok=True)

    def _grow(self) -> None:
        wanted, has = _LEAST_BYTES, _size(self.path)
        # A checkpoint makes the database larger before it makes the write-ahead log smaller.
        most = _size(self._database) + _size(self._database.with_name(f"{self._database.name}-wal"))
        while wanted < min(MOST_BYTES, most):
            wanted *= 2
        wanted = min(MOST_BYTES, wanted)
        if has >= wanted:
            return
        try:
            with self.path.open("ab") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), has, wanted - has)
                else:
                    # Data that no file system can compress.
                    os.write(file.fileno(), os.urandom(wanted - has))
        except OSError:
            os.truncate(self.path, has)
            raise


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
