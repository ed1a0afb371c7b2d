"""`export` and `import`: a memory as JSON lines, out and in again."""

from codecs import BOM_UTF8
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import anyio
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pagefile.cli.opening import loaded, run
from pagefile.cli.options import AsJson, ConfigFile, Db, Tenant, UserId
from pagefile.cli.output import err, nothing, number, plural, print_json, say
from pagefile.errors import NotFoundError, TransferError
from pagefile.integrations.moving import read_dump, take_over

_SAY_WHOSE = "If it is a dump of another memory, say whose: --from mem0 | redis-agent-memory | langchain."


def export(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The file to write; an earlier export is replaced.")],
    *,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="Only this conversation.")
    ] = None,
    user_id: UserId = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Write everything that is kept, except API keys, to a file of JSON lines."""
    settings = loaded(ctx, db, config).settings
    _check_target(file)
    with _progress(f"Exporting to {file.name}"):
        counts = run(
            settings,
            lambda memory: memory.export(file, user_id=user_id, conversation_id=conversation, tenant=tenant),
        )
    if not counts:
        raise nothing(
            "There was nothing to export: the file has a first line and no records.",
            as_json=as_json,
            empty={},
        )
    _print_counts("Exported", counts, as_json=as_json)


def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="An export, or with --from a dump of another memory.")],
    *,
    source: Annotated[
        Literal["pagefile", "mem0", "redis-agent-memory", "langchain"],
        typer.Option("--from", help="Whose dump it is."),
    ] = "pagefile",
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", help="Where messages belong that name no conversation."),
    ] = None,
    user_id: Annotated[
        str | None, typer.Option(help="Whose it is, where the dump does not say so itself.")
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Read an export, or a dump of another memory; what is there already is left as it is."""
    settings = loaded(ctx, db, config).settings
    if not file.is_file():
        raise NotFoundError(f"There is no file {str(file)!r} to import.")
    if source != "pagefile":
        brought = anyio.run(read_dump, file, source)
        with _progress(f"Importing {file.name}"):
            counts = run(
                settings,
                lambda memory: take_over(
                    memory, brought, user_id=user_id, conversation_id=conversation, tenant=tenant
                ),
                must_exist=False,
            )
        _print_taken(counts, brought.left_out, as_json=as_json)
        if not counts["turn"] + counts["fact"] + counts["known"]:
            raise TransferError(f"There is nothing in {file.name!r} that could be taken over.")
        return
    if conversation is not None or user_id is not None:
        raise TransferError("An export says itself whose it is: --conversation and --user-id go with --from.")
    with _progress(f"Importing {file.name}"):
        try:
            counts = run(settings, lambda memory: memory.import_(file, tenant=tenant), must_exist=False)
        except TransferError as error:
            if _may_be_a_dump(file):
                raise TransferError(f"{error} {_SAY_WHOSE}") from error
            raise
    _print_counts("Imported", counts, as_json=as_json)


def _check_target(file: Path) -> None:
    """Never replace a file that is something else: a database, for instance."""
    if not file.exists():
        return
    head = b""
    if file.is_file():
        with file.open("rb") as opened:
            head = opened.read(64)
    if head and b'"pagefile-export"' not in head:
        raise TransferError(f"{str(file)!r} is there and is not an export: choose another name.")


def _may_be_a_dump(file: Path) -> bool:
    """Whether a file is JSON and does not begin as an export does."""
    with file.open("rb") as opened:
        head = opened.read(256).removeprefix(BOM_UTF8).lstrip()
    return head.startswith((b"{", b"[")) and b'"pagefile-export"' not in head


@contextmanager
def _progress(what: str) -> Generator[None]:
    """A moving bar on stderr while it takes its time; nothing when nobody watches."""
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(what, total=None)
        yield


def _print_taken(counts: Mapping[str, int], left_out: Mapping[str, int], *, as_json: bool) -> None:
    """What became of a dump, and in words what has no place here."""
    if as_json:
        print_json({**counts, "left_out": left_out})
        return
    say(f"Imported {plural(counts['turn'], 'turn')} and {plural(counts['fact'], 'fact')}.")
    others = {"there already": counts["known"], "rejected": counts["rejected"], **left_out}
    told = [f"{what} ({number(count)})" for what, count in others.items() if count]
    if told:
        say(f"Not imported: {', '.join(told)}.")


def _print_counts(verb: str, counts: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
    else:
        named = [plural(count, kind) for kind, count in counts.items() if kind != "missing"]
        say(f"{verb} {', '.join(named) or 'nothing new'}.")
        if missing := counts.get("missing"):
            say(
                f"Without the bytes of {plural(missing, 'attachment')}, which are not here: the file says which (`missing`), and so "
                "does `pagefile verify`."
            )
