"""Runs verbs on SQLite: each from end to end in the thread of a connection, so that no statement costs a hop of its own."""

from collections.abc import Callable
from typing import Any, TypeVar

from pagefile.stores.sql.plays import Play, Player, skipped
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
    """What a verb returns, in the transaction that the connection is in.

    The loop of `plays.played`, written out: a turn asks four times, and each answer would cost another call.
    """
    answered: Any = None
    while True:
        try:
            wanted, name, values = play.send(answered)
        except StopIteration as end:
            return end.value
        one = statement(name)
        # No cursor outlives its answer: one that the traceback of an error keeps alive would keep the file locked.
        if not one.text:
            answered = skipped(wanted)
        elif wanted == "row":
            answered = connection.execute(one.text, one.given(values)).fetchone()
        elif wanted == "rows":
            answered = connection.execute(one.text, one.given(values)).fetchall()
        elif wanted == "count":
            connection.execute(one.text, one.given(values))
            answered = connection.changes()
        else:
            connection.executemany(one.text, map(one.given, values))
            answered = None
