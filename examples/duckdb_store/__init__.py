"""A Pagefile store in a DuckDB file: a player and a dialect, over the verbs and statements of `pagefile.stores.sql`."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import duckdb

from pagefile.errors import ClosedError, InvalidArgumentError, StoreError, StoreUnavailableError
from pagefile.ports import Clock
from pagefile.records import JsonObject
from pagefile.stores.encoding import time_text
from pagefile.stores.sql.auditor import SqlAuditor
from pagefile.stores.sql.plain import PlainReader, PlainTurnLog
from pagefile.stores.sql.plays import Ask, Play, Player, played, skipped
from pagefile.stores.sql.store import SqlStore
from pagefile.stores.sql.texts import COMMON, PLAIN, parameters, statement_texts, type_of, with_parameters

T = TypeVar("T")
HERE = Path(__file__).parent
#: What an erasure leaves.
LEFT = ("blocks of the DuckDB file that were freed and not yet written over",)

#: DuckDB's name for what PostgreSQL calls otherwise; the driver would want a package more for times.
_TYPES = {
    "pagefile_tenant": "TEXT",
    "pagefile_tenants": "TEXT",
    "timestamptz": "TEXT",
    "json": "TEXT",
    "bytea": "BLOB",
}


@cache
def _statements() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Every statement as DuckDB reads it, and the names of its parameters."""
    found = {}
    for name, text in statement_texts("duckdb", COMMON, PLAIN, HERE / "sql").items():
        names = parameters(text)
        kinds = {one: _TYPES.get(type_of(one), type_of(one)) for one in names}
        found[name] = with_parameters(text, {one: f"$p_{one}::{kind}" for one, kind in kinds.items()}), names
    return found


def _encoded(name: str, value: Any) -> Any:
    return time_text(value) if type_of(name) == "timestamptz" and value is not None else value


class DuckPlayer(Player):
    """Runs one verb at a time, each in a transaction and in a thread."""

    def __init__(self, path: Path) -> None:
        self._place = str(path)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._lock = anyio.Lock()

    async def open(self) -> None:
        def connect() -> duckdb.DuckDBPyConnection:
            # Its verbs touch a few rows: more threads would only wait for each other.
            connection = duckdb.connect(self._place, config={"threads": 1})
            connection.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
            return connection

        self._connection = await anyio.to_thread.run_sync(self._translated, connect)

    async def read(self, play: Callable[[], Play[T]], *, often: Hashable = None) -> T:
        return await self._play(play)

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self._play(play)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        self._connected()
        return await anyio.to_thread.run_sync(work)

    async def close(self) -> None:
        async with self._lock:
            if self._connection is not None:
                await anyio.to_thread.run_sync(self._connection.close)
            self._connection = None

    async def _play(self, play: Callable[[], Play[T]]) -> T:
        async with self._lock:
            return await anyio.to_thread.run_sync(self._translated, lambda: self._transaction(play))

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """The connection, which is there until the store is closed."""
        if self._connection is None:
            raise ClosedError
        return self._connection

    def _transaction(self, play: Callable[[], Play[T]]) -> T:
        connection = self._connected()
        connection.execute("BEGIN")
        try:
            result = played(play(), lambda ask: _answer(connection, ask))
            connection.execute("COMMIT")
        except BaseException:
            # After a commit that failed there is nothing to roll back: what went wrong first is what the caller wants to know.
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            raise
        return result

    def _translated(self, work: Callable[[], T]) -> T:
        """The one place where DuckDB's errors become ours."""
        try:
            return work()
        except duckdb.IOException as error:
            raise StoreUnavailableError(f"{self._place!r} cannot be used ({error}).") from error
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"A text is not valid Unicode at position {error.start}.") from error
        except duckdb.Error as error:
            raise StoreError(f"DuckDB refused on {self._place!r}: {error}") from error


def _answer(connection: duckdb.DuckDBPyConnection, ask: Ask) -> Any:
    wanted, name, values = ask
    text, names = _statements()[name]
    if not text:
        return skipped(wanted)
    if wanted == "many":
        for one in values:
            _run(connection, text, names, one)
        return None
    rows = _run(connection, text, names, values)
    if wanted == "rows":
        return rows
    first = rows[0] if rows else None
    if wanted == "row":
        return first
    # DuckDB answers a change with one row, which says how many rows it changed.
    return first[0] if first else 0


def _run(
    connection: duckdb.DuckDBPyConnection, text: str, names: tuple[str, ...], values: Mapping[str, Any]
) -> list[Any]:
    given = {f"p_{name}": _encoded(name, values[name]) for name in names}
    return connection.execute(text, given).fetchall()


class DuckAuditor(SqlAuditor):
    async def errors(self, *, full: bool) -> list[str]:
        """DuckDB checks the sum of every block that it reads."""
        return []


class DuckStore(SqlStore):
    """Open one with `await DuckStore.open(path, clock=…)`; `:memory:` is kept nowhere."""

    _player: DuckPlayer

    def __init__(self, player: DuckPlayer, path: Path, clock: Clock) -> None:
        super().__init__(player, clock)
        self._path = path
        self.log = PlainTurnLog(player, clock)
        self.reader = self.source = PlainReader(player)
        self.audit = DuckAuditor(player)

    @classmethod
    async def open(cls, path: Path, *, clock: Clock) -> "DuckStore":
        player = DuckPlayer(path)
        await player.open()
        return cls(player, path, clock)

    async def _left(self) -> Sequence[str]:
        return LEFT

    async def scrub(self) -> Sequence[str]:
        return LEFT

    async def describe(self) -> JsonObject:
        size = await self._player.compute(lambda: self._path.stat().st_size if self._path.exists() else 0)
        return {
            "backend": "duckdb",
            "version": duckdb.__version__,
            "schema": 1,
            "place": str(self._path),
            "bytes": size,
            "read_only": False,
            "synchronous": "full",
        }

    async def close(self) -> None:
        await self._player.close()
