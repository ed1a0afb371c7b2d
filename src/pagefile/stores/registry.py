"""Opens the store or vector index that a URL names, and checks the schema of a database before anything is changed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import anyio
import anyio.to_thread

from pagefile.errors import SettingsError
from pagefile.ports import Clock, Store, VectorIndex
from pagefile.stores.inmemory import InMemoryStore
from pagefile.stores.sqlite import SqliteStore
from pagefile.stores.sqlite.database import Place, copied, migrations, version_of

_LEAST_KEY_CHARS = 16
_RAW_KEY = re.compile("[0-9A-Fa-f]{64}")
_KNOWN = "sqlite:///relative.db, sqlite:////absolute/path.db, sqlite://, memory://, postgresql://user:password@host/database"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    #: `full`: what was acknowledged survives a power cut. `normal`: it survives the death of the process, and a power
    #: cut may take the last moments.
    synchronous: Literal["full", "normal"] = "full"
    #: How many reads run at once.
    readers: int = 2
    #: What a SQLite database is encrypted with: see `read_key`.
    key: str | None = field(default=None, repr=False)

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
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
        raise SettingsError(f"A store is named by a URL, one of {_KNOWN}, not by {type(url).__name__!r}.")
    clock, options = clock or SystemClock(), options or StoreOptions()
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"postgresql", "postgres"}:
        # The extra `postgres`: a user of SQLite pays nothing for it.
        from pagefile.stores.postgres.address import Place as PostgresPlace  # noqa: PLC0415
        from pagefile.stores.postgres.store import PostgresStore  # noqa: PLC0415

        return await PostgresStore.open(PostgresPlace.of(url, options.synchronous), clock=clock)
    if not separator or scheme not in {"sqlite", "memory"}:
        raise SettingsError(f"No store is known for {_masked_url(url)!r}: use one of {_KNOWN}.")
    if scheme == "memory" or rest in {"", "/", "/:memory:"}:
        return InMemoryStore(clock)
    if not rest.startswith("/"):
        raise SettingsError(
            f"{url!r} has a host: write sqlite:///{rest} for a relative path, sqlite:////{rest} for an absolute one."
        )
    path = unquote(rest[1:])
    if "\0" in path:
        raise SettingsError(f"{url!r} is not a file name: it contains a NUL character.")
    if await anyio.Path(path).is_dir():
        raise SettingsError(
            f"{path!r} is a directory: name a file in it, such as {str(Path(path, 'pagefile.db'))!r}."
        )
    place = Place(Path(path), options.synchronous, options.key)
    return await SqliteStore.open(place, clock=clock, readers=options.readers)


def read_key(file: str | None) -> str | None:
    """The key in a file: 64 hexadecimal digits, as `openssl rand -hex 32` makes them, or a passphrase."""
    if file is None:
        return None
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The key in {file!r} (`encryption_key_file`) cannot be read: {error}."
        ) from error
    if len(key) < _LEAST_KEY_CHARS:
        raise SettingsError(
            f"The key in {file!r} (`encryption_key_file`) has {len(key)} characters, and {_LEAST_KEY_CHARS} are the least: "
            "`openssl rand -hex 32` makes one."
        )
    # A passphrase is stretched first, which takes a tenth of a second for each connection.
    return f"raw:{key}" if _RAW_KEY.fullmatch(key) else key


def _masked_url(url: str) -> str:
    """The URL without anything that may be a password."""
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else url


_KNOWN_VECTORS = (
    "milvus://host:19530, milvus://host:19530/database, milvus:///relative.db, milvus:////absolute/path.db, "
    "'none' for no vectors at all, or nothing for the index in the store's own database"
)


def open_vectors(url: str | None, store: Store, *, cache_bytes: int | None = None) -> VectorIndex | None:
    """The index of this URL, which connects when it is first used; close it after use.

    None means the index in the store's own database, if it has one; "none" means no vectors. `cache_bytes` limits what an
    index keeps in memory.
    """
    if url is None:
        return store.vectors(cache_bytes=cache_bytes)
    if url == "none":
        return None
    scheme, separator, _ = url.partition("://")
    if not separator or scheme != "milvus":
        # Text that was meant as a URL may contain a password.
        raise SettingsError(f"No vector index is known for this URL: use one of {_KNOWN_VECTORS}.")
    from pagefile.stores.milvus import MilvusVectors, Place  # noqa: PLC0415 - the extra milvus

    return MilvusVectors(Place.of(url))


class SystemClock:
    """The system clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema version of a database, None where there is none yet, and the one this version of Pagefile needs."""

    found: str | None
    newest: str
    #: The command that copies it into a file, where Pagefile does not do that itself.
    dump: Callable[[Path], str] | None = None

    @property
    def behind(self) -> bool:
        """Whether opening it would change its tables."""
        return self.found is not None and self.found != self.newest


async def file_schema(path: Path, key: str | None = None) -> Schema:
    """The schema of a SQLite file, which is not changed; `SchemaVersionError` when it is newer than this Pagefile."""
    found = await anyio.to_thread.run_sync(version_of, Place(path, key=key))
    return Schema(str(found) if found else None, str(len(migrations())))


async def back_up_file(path: Path, copy: Path, key: str | None = None) -> None:
    """Make a consistent copy of a SQLite file, even while it is written to; `StoreUnavailableError` when that fails."""
    await anyio.to_thread.run_sync(copied, Place(path, key=key), copy)


async def server_schema(url: str) -> Schema:
    from pagefile.stores.postgres.migration import dump_command, head, revision_of  # noqa: PLC0415 - the extra postgres, which others do not have

    return Schema(await revision_of(url), head(), partial(dump_command, url))
