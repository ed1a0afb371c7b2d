"""Looks for a text in everything that a database or a folder holds, and makes sure of what a test begins with."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import asyncpg

from pagefile import Settings
from pagefile.settings import ArchiveSettings, EmbedderSettings
from pagefile.stores.postgres.address import Place

NO_VECTORS = EmbedderSettings(name="none")
#: Small results become pages, so that a test need not write large ones.
SMALL_PAGES = ArchiveSettings(threshold=400, page_from=200)
PLAIN = Settings(language="en", embedder=NO_VECTORS)


def bulky(text: str) -> list[dict]:
    """A step whose result goes to the archive under `SMALL_PAGES`."""
    return [{"tool": "search", "result": f"{text} " * 60}]


async def tables_with(url: str, text: str) -> list[str]:
    """The tables of a database in which a text stands."""
    if url.startswith("sqlite"):
        return list(_tables_of_sqlite(url.removeprefix("sqlite:///"), text))
    return await _tables_of_postgres(url, text)


def _tables_of_sqlite(path: str, text: str) -> Iterator[str]:
    connection = apsw.Connection(path)
    try:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if any(text in str(row) for row in connection.execute(f'SELECT * FROM "{name}"')):
                yield name
    finally:
        connection.close()


async def _tables_of_postgres(url: str, text: str) -> list[str]:
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        tables = await connection.fetch(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = $1",
            # The schemas beside it are those of other tests.
            Place.of(url).schema,
        )
        found = []
        for schema, name in tables:
            query = f'SELECT 1 FROM "{schema}"."{name}" AS kept WHERE kept::text LIKE $1 LIMIT 1'
            if await connection.fetchval(query, f"%{text}%"):
                found.append(name)
        return found
    finally:
        await connection.close()


def files_with(folder: Path, text: str) -> list[str]:
    """The files below a folder in which a text stands."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and text.encode() in path.read_bytes()
    ]


class NotShownError(Exception):
    """A test could not show what it is about; unlike a failed assertion, this is never expected."""


def given(condition: object, what: str) -> None:
    """Make sure of what a test begins with, so that an open finding does not hide a test that has come loose."""
    if not condition:
        raise NotShownError(what)
