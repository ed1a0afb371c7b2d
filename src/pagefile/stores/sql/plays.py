"""A verb is a generator of statements: it says what to run, and a player runs it on a database.

A verb yields statements by name and receives their results; nothing here waits, connects or commits. SQLite's player
runs a verb from end to end in one of its threads, PostgreSQL's awaits each result. A verb may be run several times (another
transaction came first, a connection was lost), so a player is given the generator function, and a verb has no other effects.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from pagefile.damage import kind_of, note_damage
from pagefile.errors import PagefileError, StoreCorruptError
from pagefile.ports.audit import UNREADABLE

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]
Values: TypeAlias = dict[str, Any]


Wanted: TypeAlias = Literal["row", "rows", "count", "many"]
#: The kind of result, the statement's name and its values; for `many`, a sequence of them. A plain tuple: a turn makes several.
Ask: TypeAlias = tuple[Wanted, str, Any]

Play: TypeAlias = Generator[Ask, Any, T]

# The helpers below are typed, and cost a generator each: statements of every turn are yielded directly,
# `yield "count", "turn_insert", values`.


def played(play: Play[T], answer: Callable[[Ask], Any]) -> T:
    """The result of a verb, with each of its statements run by `answer`.

    A verb whose statement fails is closed at once: it may hold a lock, and the error's traceback keeps it alive.
    """
    answered: Any = None
    with closing(play):
        while True:
            try:
                ask = play.send(answered)
            except StopIteration as end:
                return end.value
            answered = answer(ask)


def skipped(wanted: Wanted) -> Any:
    """The result of a statement that is empty in a dialect, which does not need it: a lock, where there is one writer."""
    answers: dict[Wanted, Any] = {"row": None, "rows": [], "count": 0, "many": None}
    return answers[wanted]


def row(statement: str, values: Mapping[str, Any]) -> Play[Row | None]:
    return (yield "row", statement, values)


def rows(statement: str, values: Mapping[str, Any]) -> Play[list[Row]]:
    return (yield "rows", statement, values)


def first(statement: str, values: Mapping[str, Any], make: Callable[[Row], T]) -> Play[T | None]:
    """The first row, converted; converted here and not by the caller, since a player may have a thread for it."""
    found = yield from row(statement, values)
    try:
        return None if found is None else make(found)
    except UNREADABLE as error:
        if isinstance(error, PagefileError):
            raise
        note_damage(statement, values, kind_of(error))
        raise damaged(error) from error


def each(statement: str, values: Mapping[str, Any], make: Callable[[Row], T]) -> Play[list[T]]:
    """Every row, converted. Damaged ones are noted and left out."""
    found: list[T] = []
    for one in (yield from rows(statement, values)):
        try:
            found.append(make(one))
        except UNREADABLE as error:
            if isinstance(error, PagefileError):
                raise
            # Lists begin with the id of each row.
            note_damage(statement, {**values, "id": one[0]}, kind_of(error))
    return found


def damaged(error: Exception) -> StoreCorruptError:
    return StoreCorruptError(
        f"The requested data is damaged ({kind_of(error)}): `pagefile verify --full` says what, and where."
    )


def count(statement: str, values: Mapping[str, Any]) -> Play[int]:
    return (yield "count", statement, values)


def many(statement: str, values: Sequence[Mapping[str, Any]]) -> Play[None]:
    yield "many", statement, values


class Player(Protocol):
    async def read(self, play: Callable[[], Play[T]], *, often: Hashable = None) -> T:
        """The result of a verb that reads; `often` names one that is frequent, which a player may run in place if it is quick."""
        ...

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        """The result of a verb that writes, in one transaction.

        When a connection is lost during the commit, the verb may have taken effect: it is retried only if it is idempotent
        (`again`). After a verb that `erases`, the removed rows must not stay in the database's write-ahead log either.
        """
        ...

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        """The result of work that would keep the event loop or a writer waiting; `ClosedError` when the store is closed.

        `small` work takes about as long as a thread switch: a player may do it in place.
        """
        ...


class SqlPort:
    """A port of a SQL database, and the verbs of one statement."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def _row(self, statement: str, values: Mapping[str, Any]) -> Row | None:
        return await self._player.read(lambda: row(statement, values))

    async def _rows(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        return await self._player.read(lambda: rows(statement, values))

    async def _first(self, statement: str, values: Mapping[str, Any], make: Callable[[Row], T]) -> T | None:
        return await self._player.read(lambda: first(statement, values, make))

    async def _each(
        self, statement: str, values: Mapping[str, Any], make: Callable[[Row], T], *, often: Hashable = None
    ) -> list[T]:
        return await self._player.read(lambda: each(statement, values, make), often=often)

    async def _change(self, statement: str, values: Mapping[str, Any]) -> int:
        return await self._player.write(lambda: count(statement, values))
