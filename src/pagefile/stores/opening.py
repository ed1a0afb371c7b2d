"""Finds the store that a URL names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import anyio

from pagefile.errors import SettingsError
from pagefile.ports import Clock, Store
from pagefile.stores.clock import SystemClock
from pagefile.stores.inmemory import InMemoryStore
from pagefile.stores.sqlite import SqliteStore
from pagefile.stores.sqlite.connecting import Place

_KNOWN = "sqlite:///relative.db, sqlite:////absolute/path.db, sqlite://, memory://, postgresql://user:password@host/database"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is opened."""

    #: `full`: what was acknowledged survives a power cut. `normal`: it survives the death of the process, and a power
    #: cut may take the last moments.
    synchronous: Literal["full", "normal"] = "full"
    #: How many reads run at once.
    readers: int = 2

    def __post_init__(self) -> None:
        if self.synchronous not in {"full", "normal"}:
            raise SettingsError(f"synchronous is {self.synchronous!r}: use 'full' or 'normal'.")
        if self.readers < 1:
            raise SettingsError(f"readers is {self.readers}: at least one is needed.")


async def open_store(url: str, *, clock: Clock | None = None, options: StoreOptions | None = None) -> Store:
    """The store of this URL, opened and ready; close it after use.

    `sqlite://` and `sqlite:///:memory:` keep everything in this process, as `memory://` does: SQLite's own shared memory
    databases let readers wait for writers, which a store must not.
    """
    clock, options = clock or SystemClock(), options or StoreOptions()
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"postgresql", "postgres"}:
        return await _open_postgres(url, clock, options)
    if not separator or scheme not in {"sqlite", "memory"}:
        raise SettingsError(f"No store is known for {_shown(url)!r}: use one of {_KNOWN}.")
    if scheme == "memory" or rest in {"", "/", "/:memory:"}:
        return InMemoryStore(clock)
    if not rest.startswith("/"):
        raise SettingsError(
            f"{url!r} has a host: write sqlite:///{rest} for a relative path, sqlite:////{rest} for an absolute one."
        )
    path = unquote(rest[1:])
    if "\0" in path:
        raise SettingsError(f"{url!r} names no file: there is a NUL character in it.")
    if await anyio.Path(path).is_dir():
        raise SettingsError(
            f"{path!r} is a directory: name a file in it, such as {str(Path(path, 'pagefile.db'))!r}."
        )
    place = Place(Path(path), options.synchronous)
    return await SqliteStore.open(place, clock=clock, readers=options.readers)


async def _open_postgres(url: str, clock: Clock, options: StoreOptions) -> Store:
    # The extra `postgres`: who keeps everything in a file pays nothing for it.
    from pagefile.stores.postgres.place import Place as PostgresPlace  # noqa: PLC0415
    from pagefile.stores.postgres.store import PostgresStore  # noqa: PLC0415

    return await PostgresStore.open(PostgresPlace.of(url, options.synchronous), clock=clock)


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else url
