"""Brings a database file up to the schema of this version, one numbered file at a time."""

from functools import cache
from importlib.resources import files

from pagefile.errors import SchemaVersionError
from pagefile.stores.sql.missing_digests import fill_digests
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.player import played
from pagefile.stores.sqlite.queries import sql


@cache
def migrations() -> tuple[str, ...]:
    """The migrations in order; the schema version is how many were applied."""
    folder = files("pagefile.stores.sqlite").joinpath("migrations")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def check_version(connection: Connection, place: str, *, exactly: bool = False) -> int:
    """The schema version of the file, or an error when this version of Pagefile cannot use it."""
    found, known = int(connection.pragma("user_version")), len(migrations())
    if found > known:
        raise SchemaVersionError(
            f"{place!r} has schema version {found}, this version of Pagefile knows {known}: upgrade with "
            "`pip install --upgrade pagefile`. The file was left untouched."
        )
    if exactly and found < known:
        raise SchemaVersionError(
            f"{place!r} has schema version {found} and must be brought to {known}, but cannot be written: "
            "open it once with write permission."
        )
    return found


def migrate(connection: Connection, place: str, application_id: int) -> None:
    """Apply what is missing, each migration in a transaction with its version; others may be doing the same."""
    while check_version(connection, place) < len(migrations()):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster while this one waited for the lock.
            found = check_version(connection, place)
            if found < len(migrations()):
                connection.execute(migrations()[found])
                if found + 1 == len(migrations()):
                    _mend_episodes(connection)
                    played(connection, fill_digests())
                connection.pragma("application_id", application_id)
                connection.pragma("user_version", found + 1)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _mend_episodes(connection: Connection) -> None:
    """The first files of schema 3 had vectors without their owner, and no later migration gave them one."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(conversation_episodes)")}
    if "user_id" not in columns:
        connection.execute(sql("episodes_rebuild"))
