"""Runs verbs on SQLite: each from end to end in the thread of a connection, so that no statement costs a hop of its own."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pagefile.stores.sql import plays
from pagefile.stores.sql.plays import Ask, Play, Player
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import statement

T = TypeVar("T")


class SqlitePlayer(Player):
    """Writes in the writer's thread, reads in one of the readers'."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def read(self, play: Callable[[], Play[T]]) -> T:
        return await self._readers.run(lambda connection: played(connection, play()))

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self._writer.run(lambda connection: played(connection, play()), purge=erases)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        return await self._readers.run(lambda _: work())


def played(connection: Connection, play: Play[T]) -> T:
    """What a verb returns, in the transaction that the connection is in."""
    return plays.played(play, partial(_answer, connection))


def _answer(connection: Connection, ask: Ask) -> Any:
    wanted, name, values = ask
    one = statement(name)
    if not one.text:
        return ask.skipped()
    if wanted == "many":
        connection.executemany(one.text, map(one.given, values))
        return None
    cursor = connection.execute(one.text, one.given(values) if one.encoders else values)
    if wanted == "row":
        return cursor.fetchone()
    return cursor.fetchall() if wanted == "rows" else connection.changes()
