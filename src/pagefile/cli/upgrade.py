"""`upgrade`: migrate a database to this version's schema, after a backup."""

import shutil
from pathlib import Path
from typing import Annotated

import anyio
import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.opening import existing_file
from pagefile.errors import SettingsError
from pagefile.settings import Settings
from pagefile.stores.opening import Schema, back_up_file, file_schema, server_schema

_DUMP = Path("pagefile.dump")


@command(tenant=False)
def upgrade(
    cli: Invocation,
    *,
    backup: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the copy goes; beside the database unless given."),
    ] = None,
    no_backup: Annotated[bool, typer.Option("--no-backup", help="Make no copy: there is one.")] = False,
) -> None:
    """Bring a database to the schema of this version, after a copy of it as it was.

    Every command and every program that opens a database does the same, but makes no copy. Of PostgreSQL the copy is pg_dump's
    to make: the command for it is named, and nothing is done before it is answered with --no-backup.
    """
    settings = cli.settings
    file = existing_file(settings.url)
    schema = anyio.run(file_schema, file) if file is not None else anyio.run(server_schema, _server(settings))
    copy = None if no_backup or not schema.behind else _copy(file, backup, schema)
    if schema.found != schema.newest:
        cli.run(_opened)
    told = None if copy is None else str(copy)
    cli.answer({"from": schema.found, "to": schema.newest, "backup": told}, _done(schema, copy))


def _server(settings: Settings) -> str:
    if not settings.url.startswith(("postgresql://", "postgres://")):
        raise SettingsError("There is nothing to upgrade: this store is gone with its process.")
    return settings.url


def _copy(file: Path | None, backup: Path | None, schema: Schema) -> Path:
    if file is None:
        raise SettingsError(_by_hand(schema, backup or _DUMP))
    copy = backup or file.with_name(f"{file.name}.schema-{schema.found}")
    anyio.run(back_up_file, file, copy)
    return copy


def _by_hand(schema: Schema, copy: Path) -> str:
    command = schema.dump(copy) if schema.dump else "pg_dump"
    absent = " (it is one of PostgreSQL's client programs, which are not installed here)"
    return (
        f"The database is at schema {schema.found} and would be brought to {schema.newest}. Copy it first, with "
        f"`{command}`{'' if shutil.which('pg_dump') else absent}, then run `pagefile upgrade --no-backup`. Nothing was changed."
    )


async def _opened(_memory: object) -> None:
    """Nothing to do: opening a database upgrades it."""


def _done(schema: Schema, copy: Path | None) -> str:
    if schema.found == schema.newest:
        return f"The database is at schema {schema.newest} already: nothing to do."
    if copy is None:
        return f"The database is at schema {schema.newest} now (before: {schema.found or 'empty'})."
    return f"The database is at schema {schema.newest} now. When all is well, delete {copy}: it holds what is erased from now on."
