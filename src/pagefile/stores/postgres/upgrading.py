"""What a database is before it is opened to be used, and how it is copied."""

import shlex
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.driver import translating
from pagefile.stores.postgres.migrating import check_known, head, revision
from pagefile.stores.postgres.place import Place

__all__ = ["dump_command", "head", "revision_of"]


async def revision_of(url: str) -> str | None:
    """The revision of the tables, None where there are none; `SchemaVersionError` when this Pagefile does not know it."""
    place = Place.of(url)
    database = await Database.open(place)
    try:
        with translating(place.shown):
            async with database.raw() as connection:
                found = await revision(connection)
        check_known(found, place.shown)
        return found
    finally:
        await database.close()


def dump_command(url: str, copy: Path) -> str:
    """What a shell runs to copy the database as it is, the rows of all tenants, whatever the role of the URL.

    Of a password it has nothing: pg_dump asks for it, or finds it.
    """
    place = Place.of(url)
    parts = urlsplit(place.dsn)
    user, at, host = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    address = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=urlencode(query))
    only = [] if place.schema is None else [f"--schema={quoted(place.schema)}"]
    dump = [
        "pg_dump",
        "--enable-row-security",
        "--format=custom",
        f"--file={copy}",
        *only,
        urlunsplit(address),
    ]
    return f"PGOPTIONS='-c pagefile.tenants=all' {shlex.join(dump)}"
