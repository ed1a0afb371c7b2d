"""`verify`, `rebuild`, `backup` and `upgrade`: prove that everything recorded is there, recreate derived data, copy, migrate the schema."""

import os
import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import anyio
import typer
from typer import Argument, Option

from pagefile.cli.invocation import Invocation, command, existing_file
from pagefile.cli.measures import plural
from pagefile.cli.output import chosen, say, show_table, visible
from pagefile.cli.progress import counting, moving
from pagefile.engine.verification import Finding, Report
from pagefile.engine.verification import verify as verified
from pagefile.errors import SettingsError, StoreUnavailableError
from pagefile.settings import Settings
from pagefile.stores.registry import Schema, back_up_file, file_schema, read_key, server_schema

#: Notes shown to people; scripts get all of them.
_NOTES_SHOWN = 20
#: What is counted, in display order, with its singular.
_COUNTED = {
    "conversations": "conversation",
    "entries": "entry",
    "turns": "turn",
    "token counts": "token count",
    "terms": "term list",
    "vectors": "vector",
    "watermarks": "watermark",
    "sessions": "session",
    "calls": "recorded window",
    "references": "reference",
    "attachments": "attachment",
    "pages": "page",
    "page bytes": "page byte",
    "passages": "passage",
    "facts": "fact",
    "revisions": "revision",
    "items": "item",
}


# -- verify --------------------------------------------------------------------------------------------------------------


@command(tenant=False)
def verify(
    cli: Invocation,
    *,
    tenant: Annotated[str | None, Option(help="Only this tenant; by default all.")] = None,
    full: Annotated[
        bool, Option("--full", help="Compare every value, not a sample; the database checks itself in full.")
    ] = False,
    repair: Annotated[
        bool, Option("--repair", help="Rebuild derived data that is wrong; never touches what was recorded.")
    ] = False,
) -> None:
    """Prove that everything recorded is still there; exit code 1 when something is wrong.

    Archived pages are proved byte for byte, by their SHA-256. Turns are proved complete, in order and readable; they, the rows of
    pages and facts are compared with the digest stored with them, so that a manual change is noticed.
    Checkpoints, facts, items and all indexes are checked too. Without --repair it only reports.

    Examples:
        pagefile verify
        pagefile verify --full --repair
    """
    with counting("Looking at every row") as told:
        report = cli.run(
            lambda memory: verified(memory.engine, tenant=tenant, full=full, repair=repair, progress=told),
            settings=quiet(cli.settings),
        )
    names = "whole full checked damage derived mended notes other_windows left_out"
    findings = [{**asdict(finding), "advice": finding.advice} for finding in report.findings]
    cli.answer({**chosen(report, names), "findings": findings}, lambda: _show(report, repair=repair))
    if not report.whole:
        raise typer.Exit(1)


def quiet(settings: Settings) -> Settings:
    """Settings that disable background writes: verifying must not change anything."""
    facts = replace(settings.facts, extract="off")
    archive = replace(settings.archive, retention_days=0.0, max_bytes=0)
    return replace(settings, indexing="manual", checkpoints="manual", facts=facts, archive=archive)


def _show(report: Report, *, repair: bool) -> None:
    notes = [finding for finding in report.findings if finding.level == "note"]
    shown = [*(one for one in report.findings if one.level != "note"), *notes[:_NOTES_SHOWN]]
    if shown:
        show_table(("", "what", "found"), map(_finding, shown))
        say()
    left = report.damage + report.derived + report.notes - len(shown)
    if left:
        say(f"{plural(left, 'finding')} more; --json lists up to a thousand of each kind.")
    checked = ", ".join(plural(count, what) for what, count in _counted(report.checked))
    say(f"Looked at {checked or 'an empty database'}{'' if report.full else ' (values: a sample)'}.")
    say(_verdict(report, repair=repair))


def _finding(finding: Finding) -> tuple[str, str, str]:
    named = {**chosen(finding, "tenant user conversation turn"), "place": finding.seq, "page": finding.page}
    where = " · ".join(f"{name} {value}" for name, value in named.items() if value is not None) or "database"
    lines = [where, finding.what, *([] if finding.mended else [f"→ {finding.advice}"])]
    state = "mended" if finding.mended else {"damage": "damaged"}.get(finding.level, finding.level)
    return state, finding.kind, "\n".join(map(visible, lines))


def _counted(checked: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """What was checked, by its singular name, always in the same order."""
    known = {name: checked.get(name, 0) for name in _COUNTED}
    for name, count in {**known, **checked}.items():
        if count and name != "rows":
            yield _COUNTED.get(name, name.removesuffix("s")), count


def _verdict(report: Report, *, repair: bool) -> str:
    left = report.derived - report.mended
    advice = "try again" if repair else "run it with --repair"
    gone = f"{plural(report.other_windows, 'window')} can no longer be made again, see above"
    said = {
        f"{plural(report.damage, 'thing')} damaged, which nothing here can bring back.": report.damage,
        f"{plural(left, 'derived thing')} wrong: {advice}.": left,
        f"{plural(report.mended, 'derived thing')} mended.": report.mended,
        "Everything recorded is there.": report.whole and not report.other_windows,
        f"Everything recorded is there; {gone}.": report.whole and report.other_windows,
        f"{gone}.": report.other_windows and not report.whole,
    }
    return " ".join(sentence for sentence, holds in said.items() if holds)


# -- rebuild -------------------------------------------------------------------------------------------------------------


@command(tenant=False)
def rebuild(
    cli: Invocation,
    *,
    tenant: Annotated[str | None, Option(help="Only this tenant's turns; by default all.")] = None,
    from_scratch: Annotated[
        bool, Option("--from-scratch", help="Rebuild everything, even what exists.")
    ] = False,
) -> None:
    """Make missing terms and vectors of turns with the current embedder; then remove those of other embedders.

    Reads and writes continue meanwhile. An interrupted run is continued by the next one.

    Examples:
        pagefile rebuild
        pagefile rebuild --from-scratch
    """
    with counting("Reading the log", speed=True) as told:
        counts = cli.run(
            lambda memory: memory.rebuild(tenant=tenant, from_scratch=from_scratch, progress=told)
        )
    made = f"Made the terms of {plural(counts['terms'], 'turn')} and {plural(counts['vectors'], 'vector')}"
    if counts["dropped"]:
        made += f", removed {plural(counts['dropped'], 'vector')} of other embedders"
    cli.answer(counts, f"{made}." if any(counts.values()) else "Everything is there already.")


# -- backup --------------------------------------------------------------------------------------------------------------


@contextmanager
def _private() -> Generator[None]:
    """Files that are made in this context can be read by this user alone, from their first byte on."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@command(tenant=False)
def backup(
    cli: Invocation,
    file: Annotated[Path, Argument(help="Where to put the copy; it must not exist.")],
) -> None:
    """Copy a SQLite database while it is in use, and check the copy.

    The copy holds everything that was recorded when it began, keys and vectors included. To restore it, stop the service and put it
    in the place of the database. PostgreSQL is copied with pg_dump: the command for it is printed.

    Examples:
        pagefile backup /backups/pagefile-today.db
    """
    place = existing_file(cli.settings.url)
    if place is None:
        if not cli.settings.url.startswith(("postgresql://", "postgres://")):
            raise SettingsError("There is nothing to copy: this store ends with its process.")
        dump = anyio.run(server_schema, cli.settings.url).dump
        raise SettingsError(f"Back up PostgreSQL with its own command: {dump(file) if dump else 'pg_dump'}")
    if file.exists():
        raise StoreUnavailableError(f"{str(file)!r} is there already: name another file for the backup.")
    partial = file.with_name(f"{file.name}.partial")
    partial.unlink(missing_ok=True)
    with moving(f"Copying {place.name}"), _private():
        anyio.run(back_up_file, place, partial, read_key(cli.settings.encryption_key_file))
        settings = replace(cli.settings, url=f"sqlite:///{quote(str(partial))}")
        report = cli.run(lambda memory: verified(memory.engine), settings=quiet(settings))
    partial.replace(file)
    # Made when the copy was opened; its name was that of the copy before it was checked.
    partial.with_name(f"{partial.name}-reserve").unlink(missing_ok=True)
    counts = {"file": str(file), "bytes": file.stat().st_size, "whole": report.whole, "damage": report.damage}
    told = "nothing in it is damaged"
    if not report.whole:
        told = f"{plural(report.damage, 'thing')} in it damaged, as in the database: run `pagefile verify`"
    cli.answer(counts, f"Copied {plural(report.checked.get('turns', 0), 'turn')} to {file}: {told}.")
    if not report.whole:
        raise typer.Exit(1)


# -- upgrade -------------------------------------------------------------------------------------------------------------


@command(tenant=False)
def upgrade(
    cli: Invocation,
    *,
    backup: Annotated[
        Path | None, Option(metavar="FILE", help="Where to put the copy; next to the database by default.")
    ] = None,
    no_backup: Annotated[bool, Option("--no-backup", help="Make no copy, because one exists.")] = False,
) -> None:
    """Migrate a database to the schema of this version, after making a copy of it.

    Every command and every program that opens a database does the same, but makes no copy. PostgreSQL is copied with pg_dump:
    the command for it is printed, and nothing is changed until you run this again with --no-backup.

    Examples:
        pagefile upgrade
        pagefile upgrade --backup /backups/before.db
    """
    settings = cli.settings
    file, key = existing_file(settings.url), read_key(settings.encryption_key_file)
    schema = schema_of(settings)
    if schema is None:
        raise SettingsError("There is nothing to upgrade: this store ends with its process.")
    copy = None if no_backup or not schema.behind else _copy(cli, file, backup, schema, key)
    if schema.found != schema.newest:
        # Opening a database upgrades it.
        cli.run(lambda memory: memory.describe())
    told = None if copy is None else str(copy)
    cli.answer({"from": schema.found, "to": schema.newest, "backup": told}, _done(schema, copy))


def schema_of(settings: Settings) -> Schema | None:
    """The schema of a database that is there, which is not changed; None for one that ends with its process."""
    if (file := existing_file(settings.url)) is not None:
        return anyio.run(file_schema, file, read_key(settings.encryption_key_file))
    is_server = settings.url.startswith(("postgresql://", "postgres://"))
    return anyio.run(server_schema, settings.url) if is_server else None


def _copy(cli: Invocation, file: Path | None, backup: Path | None, schema: Schema, key: str | None) -> Path:
    if file is None:
        command = schema.dump(backup or Path("pagefile.dump")) if schema.dump else "pg_dump"
        absent = " (it is one of PostgreSQL's client programs, which are not installed here)"
        raise SettingsError(
            f"The database is at schema {schema.found} and would be brought to {schema.newest}. Copy it first, with "
            f"`{command}`{'' if shutil.which('pg_dump') else absent}, then run `{cli.place.command} upgrade --no-backup`. Nothing was changed."
        )
    copy = backup or file.with_name(f"{file.name}.schema-{schema.found}")
    anyio.run(back_up_file, file, copy, key)
    return copy


def _done(schema: Schema, copy: Path | None) -> str:
    if schema.found == schema.newest:
        return f"The database is at schema {schema.newest} already: nothing to do."
    if copy is None:
        return f"The database is at schema {schema.newest} now (before: {schema.found or 'empty'})."
    return f"The database is at schema {schema.newest} now. When all is well, delete {copy}: it holds what is erased from now on."
