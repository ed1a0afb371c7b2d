"""Erases on a full disk: in pieces, with a checkpoint of the write-ahead log after each.

It has the writer's connection to itself, so that no other write in this process takes the space that it frees.
"""

from collections.abc import Callable
from typing import TypeVar

import apsw

from pagefile.errors import StoreFullError
from pagefile.ports import Part
from pagefile.records import Scope
from pagefile.stores.erasure import counted_vectors, erased_keys
from pagefile.stores.sql.erasure import erase, going_conversations, recount
from pagefile.stores.sql.pages import drop_pages, erase_blobs
from pagefile.stores.sql.plays import Play, Values, count, many, row, rows
from pagefile.stores.sql.reader import raise_epoch
from pagefile.stores.sql.rows import keys
from pagefile.stores.sql.store import Erased
from pagefile.stores.sqlite.database import Reserve
from pagefile.stores.sqlite.driver import Connection, transaction
from pagefile.stores.sqlite.player import played

T = TypeVar("T")
#: Rows in the first piece; a quarter of that each time there is no room.
_ROWS = 256
#: SQLite's errors for a write that finds no room: a full disk, or a quota.
_NO_ROOM = (apsw.FullError, apsw.IOError)


class Eraser:
    """One erasure for which there was no room."""

    def __init__(self, connection: Connection, place: str, reserve: Reserve) -> None:
        self._connection = connection
        self._place = place
        self._reserve = reserve

    def erased(self, scope: Scope, part: Part | None, work: Callable[[], Play[Erased]]) -> Erased:
        """The result of the erasure: at once with the space of the reserve, else in pieces."""
        self._reserve.give_up()
        self._fold()
        try:
            return self._piece(lambda _: work(), 1)
        except StoreFullError:
            if part is not None:
                raise
        counts, gone = self._in_pieces(scope)
        return counts, (), gone

    def _in_pieces(self, scope: Scope) -> tuple[dict[str, int], tuple[str, ...]]:
        """How many rows were erased, table by table, and which conversations. From the first piece on it cannot be undone."""
        gone = played(self._connection, going_conversations(scope))
        everything = scope.user is None and scope.conversation is None
        values: Values = {**keys(scope), "gone": gone, "everything": everything}
        if scope.conversation is not None:
            values["user"] = None
        self._piece(lambda _: raise_epoch(erased_keys(scope, gone)), 1)
        counts = {
            table: self._all(lambda limit, name=statement: count(name, {**values, "limit": limit}))
            for table, statement in _SIMPLE.items()
        }
        counts["ai_message"] += self._all(lambda limit: _cut(values, limit))
        counts["tool_result_archive"] = self._all(lambda limit: _pages(values, limit))
        counts["attachments"] = self._all(lambda limit: _attachments(values, limit))
        left, _ = self._piece(lambda _: erase(scope), 1)
        vectors = counted_vectors(counts["conversation_episodes"] + left.get("conversation_episodes", 0))
        return {table: count + counts.get(table, 0) for table, count in left.items()} | vectors, tuple(gone)

    def _all(self, work: Callable[[int], Play[int]]) -> int:
        total, limit = 0, _ROWS
        while True:
            try:
                done = self._piece(work, limit)
            except StoreFullError:
                if limit == 1:
                    raise
                limit //= 4
                continue
            total += done
            if not done:
                return total

    def _piece(self, work: Callable[[int], Play[T]], limit: int) -> T:
        try:
            with transaction(self._connection):
                return played(self._connection, work(limit))
        except _NO_ROOM as error:
            # A quota and a broken disk look alike, so it quotes SQLite.
            raise StoreFullError(
                f"The disk of {self._place!r} is so full ({error}) that not everything could be erased: free some megabytes, and "
                "erase it once more. What is erased by now stays erased, and nothing else was touched."
            ) from error
        finally:
            self._fold()

    def _fold(self) -> None:
        """Truncate the write-ahead log, as far as other readers allow."""
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - runs it
        except apsw.Error:
            return


#: Tables whose rows are independent, and the statement that removes some of them. `ai_message` are open turns.
_SIMPLE = {
    "sessions": "thin_sessions",
    "context_calls": "thin_calls",
    "turn_terms": "thin_terms",
    "conversation_episodes": "thin_vectors",
    "fact_revisions": "thin_revisions",
    "facts": "thin_facts",
    "ai_message": "thin_open",
}


def _cut(values: Values, limit: int) -> Play[int]:
    """Some entries from the end of one of the logs."""
    longest = yield from row("thin_longest", values)
    if longest is None:
        return 0
    name, user, last_seq = longest
    scope = Scope(values["tenant"], user, name)
    cut: Values = {**keys(scope), "cut": max(0, last_seq - limit)}
    gone = yield from count("thin_log", cut)
    for statement in ("thin_conversation", "thin_watermarks"):
        yield from count(statement, cut)
    yield from recount(scope)
    # A damaged log may have no entry there: it is cut anyway.
    return max(1, gone)


def _pages(values: Values, limit: int) -> Play[int]:
    found = yield from rows("thin_pages", {**values, "limit": limit})
    return (yield from drop_pages(values["tenant"], found))


def _attachments(values: Values, limit: int) -> Play[int]:
    found = yield from rows("thin_attachments", {**values, "limit": limit})
    named: list[Values] = [
        {"tenant": values["tenant"], "conversation": name, "id": turn, "hash": key}
        for name, turn, key in found
    ]
    yield from many("thin_attachment", named)
    yield from erase_blobs(key for _, _, key in found)
    return len(found)
