"""What a file is before it is opened to be used."""

from pathlib import Path

import apsw

from pagefile.errors import StoreUnavailableError
from pagefile.stores.sqlite.connecting import BUSY_TIMEOUT_MS
from pagefile.stores.sqlite.driver import Connection, connect, translating
from pagefile.stores.sqlite.migrating import check_version, migrations


def known() -> int:
    """The schema of this version of Pagefile."""
    return len(migrations())


def version_of(path: Path) -> int:
    """The schema of a file."""
    with translating(str(path)):
        connection = _opened(path)
        try:
            return check_version(connection, str(path))
        finally:
            connection.close()


def copied(path: Path, copy: Path) -> None:
    """A copy as of one moment, without what was erased from the file and still lies in its free pages."""
    if copy.exists():
        raise StoreUnavailableError(f"{str(copy)!r} is there already: name another file for the backup.")
    with translating(str(copy)):
        connection = _opened(path)
        try:
            connection.execute("VACUUM INTO :copy", {"copy": str(copy)})
        finally:
            connection.close()


def _opened(path: Path) -> Connection:
    # Not read-only: a write-ahead log that a dead process left must be read too.
    connection = connect(str(path), apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection
