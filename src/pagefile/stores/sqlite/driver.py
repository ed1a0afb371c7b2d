"""The part of apsw we use, and the one place that translates its errors, each saying what to do."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Protocol, cast

import apsw

from pagefile import errors
from pagefile.stores.sql.failures import Failure, translated

Row = tuple[Any, ...]
#: By name, or in the order of the parameters.
Bindings = Mapping[str, Any] | Sequence[Any]


class Cursor(Protocol):
    @property
    def get(self) -> Any:
        """The only value, the only row or all rows, whichever there is; None for nothing."""

    def __iter__(self) -> Iterator[Row]: ...
    def fetchone(self) -> Row | None: ...
    def get_description(self) -> Sequence[Any]: ...
    def fetchall(self) -> list[Row]: ...
    def close(self) -> None: ...


class Connection(Protocol):
    """The part of `apsw.Connection` we use; apsw's own types name buffers that Python 3.11 has no name for."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statements: str, bindings: Bindings | None = None, /) -> Cursor: ...
    def executemany(self, statements: str, bindings: Iterable[Bindings], /) -> Cursor: ...
    def pragma(self, name: str, value: Any = None, /) -> Any: ...
    def changes(self) -> int: ...
    def total_changes(self) -> int: ...
    def interrupt(self) -> None: ...
    def readonly(self, name: str, /) -> bool: ...
    def set_busy_handler(self, handler: Callable[[int], bool] | None, /) -> None: ...
    def backup(self, name: str, source: "Connection", source_name: str, /) -> AbstractContextManager[Any]: ...
    def close(self) -> None: ...


def check_encrypts(key: object) -> None:
    """Refuse a key that a plain SQLite would ignore, storing everything as it is."""
    if key is not None and not hasattr(apsw, "mc_version"):
        raise errors.SettingsError(
            "`encryption_key_file` needs a SQLite that encrypts: put `apsw-sqlite3mc` in the place of `apsw` with "
            "`pip uninstall -y apsw && pip install apsw-sqlite3mc`."
        )


def connect(
    name: str,
    flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
    *,
    key: str | None = None,
) -> Connection:
    """A new connection; the file is looked at only when the first statement runs."""
    check_encrypts(key)
    connection = cast("Connection", apsw.Connection(name, flags=flags))
    if key is not None:
        connection.pragma("key", key)
    return connection


@contextmanager
def transaction(connection: Connection) -> Generator[None]:
    """An exclusive write transaction: all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


#: How long a write waits for those of other processes.
BUSY_TIMEOUT_S = 10.0
#: How often it looks whether they are done.
_LOOKS_EVERY_S = 0.0005


def wait_for_locks(connection: Connection, seconds: float | None = None) -> None:
    """Let this connection wait so long for a lock that another process holds, instead of failing at once.

    SQLite's own wait sleeps longer every time, up to a tenth of a second: beside a process that writes often a writer finds the lock
    taken again and again, and one in a hundred waited for 100 to 2,000 ms.
    """
    seconds = BUSY_TIMEOUT_S if seconds is None else seconds
    began = 0.0

    def look_again(looked: int) -> bool:
        nonlocal began
        if not looked:
            began = time.monotonic()
        time.sleep(_LOOKS_EVERY_S)
        return time.monotonic() - began < seconds

    connection.set_busy_handler(look_again)


class InterruptedStatementError(Exception):
    """A statement was interrupted because its caller was cancelled; never leaves this package."""


_FAILURES = (
    Failure(
        (apsw.FullError,),
        (
            "The disk of {place!r} is full: free some space, or erase what is no longer wanted, for which room is kept in "
            "reserve. Everything recorded before is safe."
        ),
        errors.StoreFullError,
    ),
    Failure(
        (apsw.NotADBError,),
        (
            "{place!r} is not a SQLite database, or is encrypted with another key than that of `encryption_key_file`: move the "
            "file away or name another one. It was left untouched."
        ),
        errors.StoreCorruptError,
    ),
    Failure(
        (apsw.CorruptError,),
        (
            "{place!r} is damaged ({why}): restore a backup, or save what can be read with "
            "`sqlite3 FILE .recover` into a new file."
        ),
        errors.StoreCorruptError,
    ),
    Failure(
        (apsw.BusyError, apsw.LockedError),
        "{place!r} stays locked by another process: end the program that locks it, or try again.",
    ),
    Failure(
        (apsw.ReadOnlyError, apsw.PermissionsError),
        "{place!r} cannot be written: give this user write permission to the file and to its directory.",
    ),
    Failure(
        (apsw.CantOpenError,),
        "{place!r} cannot be opened: make sure that its directory exists and that this user may read and write there.",
    ),
    Failure(
        (apsw.IOError,),
        "The disk of {place!r} failed ({why}): check the disk, then open it again.",
    ),
    Failure((apsw.Error,), "SQLite refused ({kind}: {why}) on {place!r}.", errors.StoreError),
)


class translating:  # noqa: N801 - reads as a word of the `with` statement
    """Raises our errors for the driver's. Every transaction enters it several times: a class costs a third of a generator."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, apsw.InterruptError):
            raise InterruptedStatementError from error
        if isinstance(error, apsw.SQLError) and "malformed JSON" in str(error):
            raise errors.StoreCorruptError(
                f"A value in {self._place!r} is damaged (it is not JSON): `pagefile verify --full` says which."
            ) from error
        if isinstance(error, UnicodeDecodeError):
            raise errors.StoreCorruptError(
                f"A text in {self._place!r} is damaged (it is not valid UTF-8): `pagefile verify --full` says which."
            ) from error
        if isinstance(error, apsw.Error):
            raise translated(error, _FAILURES, self._place, str(error)) from error
        if isinstance(error, UnicodeEncodeError):
            raise errors.InvalidArgumentError(
                f"A text is not valid Unicode at position {error.start} (a lone surrogate): decode its source with "
                "errors='replace'."
            ) from error
