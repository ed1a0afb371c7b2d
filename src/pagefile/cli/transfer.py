"""`export` and `import`: a memory as JSON lines."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Mapping
from json import loads
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
from typer import Argument, BadParameter, Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.measures import number, plural
from pagefile.cli.options import UserId, in_conversation, of_user
from pagefile.cli.output import complain, visible
from pagefile.cli.progress import counting, moving
from pagefile.compat.imports import TAKES
from pagefile.damage import damage_mark, damage_since
from pagefile.engine import Memory
from pagefile.errors import NotFoundError, TransferError
from pagefile.integrations.imports import CONVERSATIONS, read_dump, take_over
from pagefile.integrations.spans import take_spans
from pagefile.integrations.transcripts import FOLDERS
from pagefile.records import DEFAULT_TENANT
from pagefile.shapes.skeleton import as_object

Source = Literal[
    "pagefile",
    "mem0",
    "redis-agent-memory",
    "langchain",
    "ai-message",
    "messages",
    "episodes",
    "sessions",
    "claude-code",
    "codex",
    "chatgpt",
    "claude",
    "gemini",
    "letta",
    "zep",
    "reference-memory",
    "memory-tool",
    "otel",
]

_TAKES = {**TAKES, "otel": take_spans}
_MARK = b'"pagefile-export"'
_MOST_HEADER_BYTES = 10_000
_SAY_WHOSE = (
    "If it is a dump of another memory, say of which: --from " + " | ".join(get_args(Source)[1:]) + "."
)


@command()
def export(
    cli: Invocation,
    file: Annotated[Path, Argument(help="The file to write; an earlier export is replaced.")],
    *,
    conversation: Annotated[str | None, in_conversation(help="Only this conversation.")] = None,
    user_id: UserId = None,
) -> None:
    """Write everything of a tenant, except API keys, to a file of JSON lines.

    Examples:
        pagefile export everything.jsonl
        pagefile export clinic.jsonl --tenant clinic
        pagefile export ada.jsonl --user ada
    """
    if str(file) == "-":
        raise BadParameter("an export is written to a file, whole or not at all: name one")
    head = _head(file) if file.is_file() else b""
    if head and _MARK not in head[:64]:
        # It may be a database.
        raise TransferError(f"{str(file)!r} exists and is not an export: choose another name.")
    scope = {"user_id": user_id, "conversation_id": conversation, "tenant": cli.tenant}
    mark = damage_mark()
    with moving(f"Exporting to {file.name}"):

        async def work(memory: Memory) -> tuple[Mapping[str, int], str]:
            counts = await memory.export(file, **scope)
            chosen = user_id is not None or conversation is not None
            return counts, "" if counts or chosen else f" {await cli.nothing_here(memory)}"

        counts, missing = cli.run(work)
    missing = f"There was nothing to export, and the file has no records.{missing}"
    cli.answer(counts, _counted("Exported", counts), found=counts, missing=missing)
    if damage := damage_since(mark):
        # The rest is in the file: a backup with a gap is better than none.
        for one in damage:
            complain(f"damaged, and exported as far as it can be read: {visible(one)}")
        raise typer.Exit(1)


@command()
def import_(
    cli: Invocation,
    file: Annotated[
        Path | None,
        Argument(
            help="An export, or with --from a dump of another memory; for claude-code, codex and gemini a folder, or nothing: "
            "then it is where they keep their sessions."
        ),
    ] = None,
    *,
    source: Annotated[
        Source,
        Option(
            "--from", metavar="SOURCE", help=f"Which memory the dump is from: {', '.join(get_args(Source))}."
        ),
    ] = "pagefile",
    conversation: Annotated[
        str | None, in_conversation(help="The conversation for messages that name none.")
    ] = None,
    user_id: Annotated[str | None, of_user(help="The user, where the dump does not name one.")] = None,
) -> None:
    """Read an export, or a dump of another memory; existing records are left unchanged. Nothing leaves this machine.

    Without --tenant, an export goes to the tenant that it is from.

    Examples:
        pagefile import everything.jsonl
        pagefile import clinic.jsonl --tenant other
        pagefile import --from claude-code
        pagefile import dump.json --from mem0 --user ada
    """
    if source in _TAKES:
        _take_files(cli, file, source, user_id)
        return
    if source != "pagefile":
        _take_over(cli, _files(file, source), source, user_id=user_id, conversation_id=conversation)
        return
    if file is None:
        raise BadParameter("say which file to import")
    if not file.is_file():
        raise NotFoundError(f"There is no file {str(file)!r} to import.")
    if conversation is not None or user_id is not None:
        raise TransferError(
            "An export already names its owner: use --conversation and --user only with --from."
        )
    tenant = cli.tenant or _tenant_of(file)
    with moving(f"Importing {file.name}"):
        try:
            counts = cli.run(lambda memory: memory.import_(file, tenant=tenant), must_exist=False)
        except TransferError as error:
            if _may_be_a_dump(file):
                raise TransferError(f"{error} {_SAY_WHOSE}") from error
            raise
    into = "" if tenant in {None, DEFAULT_TENANT} else f" into tenant {visible(tenant or '')!r}"
    cli.answer(counts, _counted("Imported", counts, into))


def _take_files(cli: Invocation, file: Path | None, source: str, user_id: str | None) -> None:
    if file is None:
        raise BadParameter("say which file or folder to import")
    whose = user_id or cli.settings.mcp.user_id
    with moving(f"Importing {file.name}"):
        counts = cli.run(lambda memory: _TAKES[source](memory, file, whose, cli.tenant), must_exist=False)
    if not counts:
        raise TransferError(f"There is nothing in {file.name!r} that could be imported.")
    told = {kind: counts[kind] for kind in ("turn", "fact", "file", "known", "rejected") if counts[kind]}
    cli.answer(
        dict(counts),
        _counted("Imported", {k: v for k, v in told.items() if k in {"turn", "fact", "file"}})
        + _not_imported(told),
    )


def _not_imported(counts: Mapping[str, int]) -> str:
    others = {"there already": counts.get("known", 0), "rejected": counts.get("rejected", 0)}
    left = [f"{what} ({number(count)})" for what, count in others.items() if count]
    return f"\nNot imported: {', '.join(left)}." if left else ""


def _files(given: Path | None, source: str) -> list[Path]:
    """The files to read: one, or those of a folder, oldest first."""
    folder, pattern = FOLDERS.get(source, ("", "*.af" if source == "letta" else "*.json"))
    place = given
    if place is None:
        if not folder:
            raise BadParameter(f"say which file to import: {source} has no folder of its own here")
        place = Path.home() / folder
    if place.is_file():
        return [place]
    found = [file for file in place.rglob(pattern) if file.is_file()] if place.is_dir() else []
    if not found:
        raise NotFoundError(f"There is nothing to import at {str(place)!r}: there is no {pattern} in it.")
    return sorted(found, key=lambda file: (file.stat().st_mtime, str(file)))


def _take_over(cli: Invocation, files: list[Path], source: str, **whose: str | None) -> None:
    user = whose["user_id"]
    if source in CONVERSATIONS:
        # The user of the MCP server, unless one is named: what is imported can be recalled there.
        whose["user_id"] = user or cli.settings.mcp.user_id
    counts, left_out, seen = Counter[str](), Counter[str](), set[str]()
    named = files[0].name if len(files) == 1 else f"{number(len(files))} files"

    async def taken(memory: Memory, told: Callable[[int, int], None]) -> None:
        for place, file in enumerate(files):
            try:
                brought = (await read_dump(file, source)).without(seen)
            except TransferError:
                if len(files) == 1:
                    raise
                left_out["files that cannot be read"] += 1
                continue
            brought = brought.of_user(user) if user and source in FOLDERS else brought
            progress = told if len(files) == 1 else None
            counts.update(await take_over(memory, brought, tenant=cli.tenant, progress=progress, **whose))
            left_out.update(brought.left_out)
            if progress is None:
                told(place + 1, len(files))

    with counting(f"Importing {named}") as told:
        cli.run(lambda memory: taken(memory, told), must_exist=False)
    done = {**dict.fromkeys(("turn", "fact", "session", "known", "rejected", "left_out"), 0), **counts}
    done["left_out"] = sum(left_out.values())
    cli.answer({**done, "left_out": dict(left_out)}, _import_summary(done, left_out))
    if not any(done[kind] for kind in ("turn", "fact", "session", "known")):
        raise TransferError(f"There is nothing in {named!r} that could be imported.")


def _may_be_a_dump(file: Path) -> bool:
    """Whether a file is JSON but does not begin like an export."""
    head = _head(file).removeprefix(BOM_UTF8).lstrip()
    return head.startswith((b"{", b"[")) and _MARK not in head


def _tenant_of(file: Path) -> str | None:
    """The tenant that an export says it is from; None if it says none, as that of the default tenant, or cannot be read."""
    try:
        with file.open("rb") as opened:
            tenant = (as_object(loads(opened.readline(_MOST_HEADER_BYTES))) or {}).get("tenant")
    except (OSError, ValueError, RecursionError):
        return None
    return tenant if isinstance(tenant, str) else None


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(256)


def _import_summary(counts: Mapping[str, int], left_out: Mapping[str, int]) -> str:
    sessions = f", {plural(counts['session'], 'session')}" if counts["session"] else ""
    told = f"Imported {plural(counts['turn'], 'turn')}{sessions} and {plural(counts['fact'], 'fact')}."
    others = {"there already": counts["known"], "rejected": counts["rejected"], **left_out}
    left = [f"{what} ({number(count)})" for what, count in others.items() if count]
    return f"{told}\nNot imported: {', '.join(left)}." if left else told


def _counted(verb: str, counts: Mapping[str, int], into: str = "") -> str:
    named = [plural(count, kind) for kind, count in counts.items() if kind != "missing"]
    told = f"{verb} {', '.join(named) or 'nothing new'}{into}."
    if missing := counts.get("missing"):
        told += (
            f"\nWithout the bytes of {plural(missing, 'attachment')}, which are not here: the file says which (`missing`), and so "
            "does `pagefile verify`."
        )
    return told
