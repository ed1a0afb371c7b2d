"""Empties the write-ahead log after an erasure: what was erased is in it until then."""

from time import monotonic

import apsw

from pagefile.stores.sqlite.driver import Connection, wait_for_locks

#: How long it waits for readers, while no one can write; it is tried again after so many times as long.
_TIMEOUT_S = 0.05
RESTS = 50


class WriteAheadLog:
    """As the writer's thread sees it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        #: Whether erased text may still be in it, and when emptying it is tried next.
        self.is_owed, self.tried_next = False, 0.0

    def empty(self, wait_s: float | None = None) -> bool:
        """Whether it is empty now; unless told how long to wait, not tried if that was done a moment ago."""
        self.is_owed, began = True, monotonic()
        if wait_s is not None or began >= self.tried_next:
            self.is_owed = not self._truncated(_TIMEOUT_S if wait_s is None else wait_s)
            ended = monotonic()
            self.tried_next = ended + RESTS * (ended - began) if self.is_owed else 0.0
        return not self.is_owed

    def _truncated(self, wait_s: float) -> bool:
        wait_for_locks(self._connection, wait_s)
        try:
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
        except apsw.Error:
            return False
        finally:
            wait_for_locks(self._connection)
        return busy == 0
