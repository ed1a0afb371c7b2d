"""PostgreSQL's statements, the part of asyncpg we use, and the one place that translates its errors, each saying what to do."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it is typed in part, and says so nowhere

from pagefile import errors
from pagefile.stores.sql.failures import Failure, translated
from pagefile.stores.sql.texts import ALL_ROWS, COMMON, parameters, statement_texts, type_of, with_parameters

Row = Sequence[Any]
Values = dict[str, Any]


class RawConnection(Protocol):
    """The part of `asyncpg.Connection` we use; asyncpg's own types are partly unknown."""

    async def fetch(self, query: str, *args: Any) -> list[Row]: ...
    async def fetchrow(self, query: str, *args: Any) -> Row | None: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...
    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str: ...  # noqa: ASYNC109 - asyncpg's own, which also ends the statement on the server
    async def executemany(self, query: str, args: Sequence[Sequence[Any]]) -> None: ...
    def transaction(self) -> Any: ...


class _PlainConnection(asyncpg.Connection):
    """Our statements leave nothing to reset (no settings, locks or cursors), which saves a round trip each time."""

    def get_reset_query(self) -> str:
        return ""


class Pool(Protocol):
    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[RawConnection]: ...
    async def expire_connections(self) -> None: ...
    async def close(self) -> None: ...
    def terminate(self) -> None: ...


async def open_pool(dsn: str, **options: Any) -> Pool:
    pool = asyncpg.create_pool(dsn, connection_class=_PlainConnection, **options)  # pyright: ignore[reportUnknownMemberType] - its own signature is untyped
    return cast("Pool", await pool)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as PostgreSQL reads it, and the names of its parameters in their order."""

    text: str
    names: tuple[str, ...]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] for name in self.names]

    def given_all(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The values of all rows: lists of what differs between them, and what is the same in each."""
        return [
            [values[name.removeprefix(ALL_ROWS)] for values in rows]
            if name.startswith(ALL_ROWS)
            else rows[0][name]
            for name in self.names
        ]


@cache
def sql(name: str, extension: str = "") -> Statement:
    statement = statements()[name]
    return replace(statement, text=statement.text.replace("{extension}", extension or "{extension}"))


@cache
def statements() -> dict[str, Statement]:
    texts = statement_texts("postgres", COMMON, files("pagefile.stores.postgres").joinpath("sql"))
    made: dict[str, Statement] = {}
    for name, text in texts.items():
        names = parameters(text)
        shown = {one: f"${number}::{type_of(one)}" for number, one in enumerate(names, 1)}
        made[name] = Statement(with_parameters(text, shown), names)
    return made


class Connection:
    """A connection that knows our statements by name."""

    __slots__ = ("extension", "raw")

    def __init__(self, raw: RawConnection, extension: str = "") -> None:
        #: For code that changes the tables.
        self.raw = raw
        #: The schema of an extension, quoted, for statements that name it.
        self.extension = extension

    async def rows(self, name: str, values: Mapping[str, Any]) -> list[Row]:
        statement = sql(name, self.extension)
        return await self.raw.fetch(statement.text, *statement.given(values))

    async def row(self, name: str, values: Mapping[str, Any]) -> Row | None:
        statement = sql(name, self.extension)
        return await self.raw.fetchrow(statement.text, *statement.given(values))

    async def count(self, name: str, values: Mapping[str, Any]) -> int:
        statement = sql(name, self.extension)
        told = await self.raw.execute(statement.text, *statement.given(values))
        return int(told.rpartition(" ")[2])

    async def many(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        statement = sql(name, self.extension)
        if rows and any(name.startswith(ALL_ROWS) for name in statement.names):
            await self.raw.execute(statement.text, *statement.given_all(rows))
        elif rows:
            await self.raw.executemany(statement.text, [statement.given(values) for values in rows])


#: The id is taken.
TAKEN: type[Exception] = asyncpg.UniqueViolationError
#: A concurrent transaction (or a migration) came first; a retry sees its result.
OVERTAKEN: tuple[type[Exception], ...] = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
    TAKEN,
    asyncpg.ForeignKeyViolationError,
)
#: The caller gave something that no column can hold.
UNFIT: tuple[type[Exception], ...] = (asyncpg.DataError, asyncpg.exceptions.DataError)
#: The connection is lost, or was never established.
LOST: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: Another transaction holds what the statement wants to lock.
LOCKED: tuple[type[Exception], ...] = (asyncpg.LockNotAvailableError,)
#: The server refused the connection.
REFUSED: tuple[type[Exception], ...] = (asyncpg.PostgresError,)
#: The role of the URL may not do this.
FORBIDDEN: tuple[type[Exception], ...] = (asyncpg.InsufficientPrivilegeError,)
_FAILURES = (
    Failure(
        (TimeoutError, asyncpg.LockNotAvailableError),
        "{place} did not answer in time: look at the server's load and locks, or raise `command_timeout` in the URL.",
    ),
    Failure(
        LOST,
        "{place} cannot be reached ({why}): check that the server runs and that host and port are right.",
    ),
    Failure(
        (asyncpg.DiskFullError,),
        "The disk of {place} is full: free some space; everything already recorded is safe.",
        errors.StoreFullError,
    ),
    Failure(
        (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError),
        "{place} refused the connection ({why}): check user, password and database name in the URL.",
    ),
    Failure(
        (asyncpg.TooManyConnectionsError, asyncpg.QueryCanceledError),
        "{place} is too busy ({why}): try again, or give it more connections.",
    ),
    Failure(
        (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError),
        (
            "The tables in {place} are not those of this version of Pagefile ({why}): they were changed or removed. "
            "Open the store again to bring them up to date."
        ),
        errors.SchemaVersionError,
    ),
    Failure(
        (asyncpg.InsufficientPrivilegeError,),
        "{place} does not allow this ({why}): grant the user of the URL the right to create and use tables.",
    ),
    Failure(
        (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError),
        "{place} is damaged ({why}): restore it from a backup.",
        errors.StoreCorruptError,
    ),
    Failure((Exception,), "{place} failed: {why}.", errors.StoreError),
)


@contextmanager
def translating(place: str) -> Generator[None]:
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncpg.InternalClientError) as error:
        raise _ours(error, place) from error


def _ours(error: Exception, place: str) -> errors.PagefileError:
    if isinstance(error, UNFIT):
        return errors.InvalidArgumentError(f"PostgreSQL cannot store this value: {error}.")
    return translated(error, _FAILURES, place, _error_text(error))


def _error_text(error: Exception) -> str:
    # A message of several lines would break the sentence it is part of.
    return " ".join(str(error).split()) or type(error).__name__
