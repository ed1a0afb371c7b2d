"""SQLite's statements, and the player that runs verbs: each from end to end in the thread of a connection, so that no statement costs a hop of its own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeVar

import apsw

from pagefile.damage import note_damage
from pagefile.errors import PagefileError
from pagefile.ports import UNREADABLE
from pagefile.stores.encoding import time_text, to_json
from pagefile.stores.sql import plays
from pagefile.stores.sql.plays import Ask, Play, Player
from pagefile.stores.sql.texts import COMMON, PLAIN, parameters, statement_texts, type_of
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer

T = TypeVar("T")


class ConnectionPlayer(Player, ABC):
    """Runs a verb from end to end on a connection."""

    @abstractmethod
    async def look(self, read: Callable[[Connection], T]) -> T:
        """What a function reads, from one snapshot."""

    async def read(self, play: Callable[[], Play[T]], *, often: Hashable = None) -> T:
        return await self.look(lambda connection: read_by(connection, play()))


class SqlitePlayer(ConnectionPlayer):
    """Writes in the writer's thread, reads in one of the readers'."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def look(self, read: Callable[[Connection], T]) -> T:
        return await self._readers.run(read)

    async def read(self, play: Callable[[], Play[T]], *, often: Hashable = None) -> T:
        if often is None:
            return await super().read(play)
        return await self._readers.run_again(often, lambda connection: read_by(connection, play()))

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self._writer.run(lambda connection: played(connection, play()), purge=erases)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        return await self._readers.run(lambda _: work())


def read_by(connection: Connection, play: Play[T]) -> T:
    """The result of a verb that only reads; `StoreCorruptError` when a row that it cannot do without is damaged."""
    try:
        return played(connection, play)
    except UNREADABLE as error:
        if isinstance(error, PagefileError):
            raise
        raise plays.damaged(error) from error


def played(connection: Connection, play: Play[T]) -> T:
    """The result of a verb, in the connection's current transaction."""
    return plays.played(play, partial(_answer, connection))


def _answer(connection: Connection, ask: Ask) -> Any:
    wanted, name, values = ask
    one = statement(name)
    # No cursor outlives its result: one kept alive by a traceback would keep the file locked.
    if not one.text:
        return plays.skipped(wanted)
    try:
        if wanted == "row":
            return connection.execute(one.text, one.given(values)).fetchone()
        if wanted == "rows":
            return connection.execute(one.text, one.given(values)).fetchall()
    except UnicodeDecodeError:
        found = _read_damaged(connection, one, values)
        note_damage(
            name,
            values,
            "a text is not valid UTF-8, and is shown with U+FFFD in place of what cannot be read",
        )
        return found if wanted == "rows" else found[0]
    if wanted == "count":
        connection.execute(one.text, one.given(values))
        return connection.changes()
    return connection.executemany(one.text, map(one.given, values))


def _read_damaged(
    connection: Connection, one: "Statement", values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The rows of a statement with texts that are not valid UTF-8: texts are read as bytes."""
    with closing(connection.execute(one.text, one.given(values))) as cursor:
        names = [f"c{number}" for number in range(len(cursor.get_description()))]
    chosen = ", ".join(
        f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END, typeof({name})"
        for name in names
    )
    text = f"WITH damaged ({', '.join(names)}) AS ({one.text}) SELECT {chosen} FROM damaged"  # noqa: S608 - our own text
    with closing(connection.execute(text, one.given(values))) as cursor:
        found = cursor.fetchall()
    return [
        tuple(
            value.decode("utf-8", "replace") if kind == "text" else value
            for value, kind in zip(row[::2], row[1::2], strict=True)
        )
        for row in found
    ]


_Encoder = Callable[[Any], str]
_ENCODERS: dict[str, _Encoder] = {"timestamptz": time_text, "text[]": to_json, "bigint[]": to_json}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, its parameter names in SQLite's order, and the positions of those that SQLite has no type for."""

    text: str
    names: tuple[str, ...]
    encoders: tuple[tuple[int, _Encoder], ...]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        """The values as they are bound: by position, since SQLite would look up each name."""
        bound = [values[name] for name in self.names]
        for place, encode in self.encoders:
            if (value := bound[place]) is not None:
                bound[place] = encode(value)
        return bound


@cache
def statement(name: str) -> Statement:
    text = statements()[name]
    names = parameters(text)
    kinds = enumerate(map(type_of, names))
    return Statement(
        text, names, tuple((place, _ENCODERS[kind]) for place, kind in kinds if kind in _ENCODERS)
    )


def uncompiled(connection: Connection) -> list[str]:
    """What is wrong with the schema: a damaged name of a table or a column, which SQLite itself does not look for."""
    found: dict[str, None] = {}
    for name, text in statements().items():
        # Of several statements in one text, `EXPLAIN` would run all but the first.
        if text and ";" not in text and not text.startswith("PRAGMA"):
            try:
                connection.execute(f"EXPLAIN {text}", [None] * len(statement(name).names)).close()
            except apsw.SQLError as error:
                found[f"the schema is damaged: {error}"] = None
    return list(found)


def sql(name: str) -> str:
    """The text of this statement, for values that are encoded already."""
    return statement(name).text


@cache
def statements() -> dict[str, str]:
    return statement_texts("sqlite", COMMON, PLAIN, files("pagefile.stores.sqlite").joinpath("sql"))
