"""A disk that takes longer over every commit: lets a machine with a fast one see what a slow one would do."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import apsw


@contextmanager
def slow_disk(seconds: float) -> Generator[None]:
    """Databases opened inside hold every commit up for so long, as if its fsync took the time."""

    def wait() -> bool:
        time.sleep(seconds)
        return False  # True would roll back

    def slow_down(connection: apsw.Connection) -> None:
        connection.set_commit_hook(wait)

    apsw.connection_hooks.append(slow_down)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(slow_down)
