"""Erases on a full disk: in pieces, with the write-ahead log folded into the file after each.

It has the writer's connection to itself, so that nobody else in this process takes the room that is made.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from pagefile.errors import StoreFullError
from pagefile.ports import Part
from pagefile.records import Scope
from pagefile.stores.encoding import to_json
from pagefile.stores.epochs import erased_keys
from pagefile.stores.erasing import counted_vectors
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import raise_epoch
from pagefile.stores.sqlite.erasing import erase, going_conversations
from pagefile.stores.sqlite.parts import recount
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.reserve import Reserve
from pagefile.stores.sqlite.rows import Values, keys

T = TypeVar("T")
#: Rows of a piece, at first: a quarter of them each time that there is no room.
_ROWS = 256
#: What SQLite says when a write finds no room: a full disk, or a quota.
_NO_ROOM = (apsw.FullError, apsw.IOError)


class Eraser:
    """One erasure for which there was no room."""

    def __init__(self, connection: Connection, place: str, reserve: Reserve) -> None:
        self._connection = connection
        self._place = place
        self._reserve = reserve

    def whole(self, work: Callable[[Connection], T]) -> T | None:
        """All of it at once, with the room that the reserve gives; None when that is not enough."""
        self._reserve.give_up()
        self._fold()
        try:
            return self._written(work)
        except _NO_ROOM:
            return None
        finally:
            self._fold()

    def in_pieces(self, scope: Scope) -> tuple[dict[str, int], tuple[str, ...]]:
        """How many rows went, table by table, and which conversations. Nothing comes back from the first piece on."""
        gone = going_conversations(self._connection, scope)
        values: Values = {
            **keys(scope),
            "gone": to_json(gone),
            "everything": scope.user is None and scope.conversation is None,
        }
        if scope.conversation is not None:
            values["user"] = None
        self._piece(lambda connection, _: raise_epoch(connection, erased_keys(scope, gone)), 1)
        counts = {
            table: self._all(
                lambda connection, rows, name=statement: _thinned(connection, name, values, rows)
            )
            for table, statement in _SIMPLE.items()
        }
        counts["ai_message"] += self._all(lambda connection, rows: _cut(connection, values, rows))
        counts["tool_result_archive"] = self._all(lambda connection, rows: _pages(connection, values, rows))
        counts["attachments"] = self._all(lambda connection, rows: _attachments(connection, values, rows))
        left, _ = self._piece(lambda connection, _: erase(connection, scope), 1)
        vectors = counted_vectors(counts["conversation_episodes"] + left.get("conversation_episodes", 0))
        return {table: count + counts.get(table, 0) for table, count in left.items()} | vectors, tuple(gone)

    def too_full(self, error: Exception | None = None) -> StoreFullError:
        """What to do when even the smallest piece does not fit; a quota and a broken disk look alike, so SQLite's words are named."""
        said = "" if error is None else f" ({error})"
        return StoreFullError(
            f"The disk of {self._place!r} is so full{said} that not everything could be erased: free some megabytes, and erase it "
            "once more. What is erased by now stays erased, and nothing else was touched."
        )

    def _all(self, work: Callable[[Connection, int], int]) -> int:
        total, rows = 0, _ROWS
        while True:
            try:
                done = self._piece(work, rows)
            except StoreFullError:
                if rows == 1:
                    raise
                rows //= 4
                continue
            total += done
            if not done:
                return total

    def _piece(self, work: Callable[[Connection, int], T], rows: int) -> T:
        try:
            return self._written(lambda connection: work(connection, rows))
        except _NO_ROOM as error:
            raise self.too_full(error) from error
        finally:
            self._fold()

    def _written(self, work: Callable[[Connection], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return result

    def _fold(self) -> None:
        """Empty the write-ahead log; where others read from it, as much as goes."""
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - runs it
        except apsw.Error:
            return


#: Whose rows stand alone, and the statement that removes some of them. `ai_message` are open turns.
_SIMPLE = {
    "sessions": "thin_sessions",
    "context_calls": "thin_calls",
    "turn_terms": "thin_terms",
    "conversation_episodes": "thin_vectors",
    "fact_revisions": "thin_revisions",
    "facts": "thin_facts",
    "ai_message": "thin_open",
}


def _thinned(connection: Connection, statement: str, values: Values, rows: int) -> int:
    connection.execute(sql(statement), {**values, "limit": rows})
    return connection.changes()


def _cut(connection: Connection, values: Values, rows: int) -> int:
    """Some entries from the end of one of the logs."""
    longest: Any = connection.execute(sql("thin_longest"), values).fetchone()
    if longest is None:
        return 0
    name, user, last_seq = longest
    scope = Scope(values["tenant"], user, name)
    cut: Values = {**keys(scope), "cut": max(0, last_seq - rows)}
    connection.execute(sql("thin_log"), cut)
    gone = connection.changes()
    for statement in ("thin_conversation", "thin_watermarks"):
        connection.execute(sql(statement), cut)
    recount(connection, scope)
    # A log that is damaged may have nothing there: it is cut all the same.
    return max(1, gone)


def _pages(connection: Connection, values: Values, rows: int) -> int:
    found: Any = connection.execute(sql("thin_pages"), {**values, "limit": rows}).fetchall()
    named = [{"tenant": values["tenant"], "uuid": uuid, "hash": blob} for uuid, blob in found]
    for statement in ("passages_drop", "page_erase", "erase_blob"):
        connection.executemany(sql(statement), named)
    return len(named)


def _attachments(connection: Connection, values: Values, rows: int) -> int:
    found: Any = connection.execute(sql("thin_attachments"), {**values, "limit": rows}).fetchall()
    named = [
        {"tenant": values["tenant"], "conversation": name, "id": turn, "hash": key}
        for name, turn, key in found
    ]
    for statement in ("thin_attachment", "erase_blob"):
        connection.executemany(sql(statement), named)
    return len(named)


def erased_on_full_disk(
    connection: Connection,
    work: Callable[[Connection], T],
    *,
    place: str,
    reserve: Reserve,
    scope: Scope,
    part: Part | None,
    of_pieces: Callable[[dict[str, int], tuple[str, ...]], T],
) -> T:
    """What an erasure gives that found no room; it gives up the reserve, and then erases in pieces."""
    eraser = Eraser(connection, place, reserve)
    result = eraser.whole(work)
    if result is not None:
        return result
    if part is not None:
        raise eraser.too_full()
    return of_pieces(*eraser.in_pieces(scope))
