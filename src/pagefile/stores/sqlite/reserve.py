"""A file beside the database that only takes up space: on a full disk it is given up, so that something can be erased.

To erase is to write: SQLite writes every page that changes into its write-ahead log first.
"""

import logging
import os
from pathlib import Path

logger = logging.getLogger("pagefile")

#: Room for a write-ahead log of its usual size that has to be folded into the database, and for a part of an erasure.
MOST_BYTES = 6 * 2**20
#: Enough for an erasure from a database that was just begun; it doubles as the database grows.
_LEAST_BYTES = 2**19


class Reserve:
    """As large as the database and its log, which is the most that an erasure writes, up to a few megabytes."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.path = database.with_name(f"{database.name}-reserve")
        self._told = False

    def keep(self) -> None:
        """Make it, or make it larger; a disk without room for it is told of in the log, and it is tried again later."""
        try:
            self._grow()
        except OSError as error:
            level = logging.DEBUG if self._told else logging.WARNING
            logger.log(level, "no reserve beside %s for erasing on a full disk: %s", self._database, error)
            self._told = True
        else:
            self._told = False

    def give_up(self) -> None:
        """Let the disk have it."""
        self.path.unlink(missing_ok=True)

    def _grow(self) -> None:
        wanted, has = _LEAST_BYTES, _size(self.path)
        # What stands in the write-ahead log makes the database larger before that log becomes smaller.
        most = _size(self._database) + _size(self._database.with_name(f"{self._database.name}-wal"))
        while wanted < min(MOST_BYTES, most):
            wanted *= 2
        wanted = min(MOST_BYTES, wanted)
        if has >= wanted:
            return
        try:
            with self.path.open("ab") as file:
                _take(file.fileno(), has, wanted - has)
        except OSError:
            os.truncate(self.path, has)
            raise


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _take(file: int, start: int, size: int) -> None:
    """Blocks of the disk without anything in them; where a system has no word for that, something that cannot be compressed."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, size)
    else:
        os.write(file, os.urandom(size))
