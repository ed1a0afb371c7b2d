"""Looks at the schema of a database before anything is changed, and copies it as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from pagefile.stores.sqlite.upgrading import copied, known, version_of


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database has, None where there is none yet, and what this version of Pagefile would make of it."""

    found: str | None
    newest: str
    #: The command that copies it into a file, where that is for others to do.
    dump: Callable[[Path], str] | None = None

    @property
    def behind(self) -> bool:
        """Whether opening it would change its tables."""
        return self.found is not None and self.found != self.newest


async def file_schema(path: Path) -> Schema:
    """The schema of a SQLite file, which is left as it is; `SchemaVersionError` when it is newer than this Pagefile."""
    found = await anyio.to_thread.run_sync(version_of, path)
    return Schema(str(found) if found else None, str(known()))


async def back_up_file(path: Path, copy: Path) -> None:
    """A consistent copy of a SQLite file, whoever writes to it meanwhile; `StoreUnavailableError` when it cannot be made."""
    await anyio.to_thread.run_sync(copied, path, copy)


async def server_schema(url: str) -> Schema:
    """The schema of a PostgreSQL database, which is left as it is."""
    from pagefile.stores.postgres.upgrading import dump_command, head, revision_of  # noqa: PLC0415 - the extra postgres, which others do not have

    return Schema(await revision_of(url), head(), partial(dump_command, url))
