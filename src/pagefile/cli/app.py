"""Puts the commands together, and turns each of our errors into one line and an exit code.

0 success · 1 an error · 2 wrong usage · 3 not found · 130 Ctrl-C
"""

import io
import re
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.text import Text

from pagefile.cli import INTERRUPTED
from pagefile.cli.commands import Command, Group, Listed
from pagefile.cli.options import ConfigFile, Db, Place
from pagefile.cli.output import complain, err
from pagefile.errors import NotFoundError, PagefileError

FAILED = 1
NOT_THERE = 3

#: The module of each command, imported only when the command or its help is requested; in the order and under the titles that
#: `pagefile --help` lists them.
GROUPS = {
    "Get started": {
        "serve": "serve:serve",
        "demo": "demo:demo",
        "chat": "chat:chat",
        "gateway": "serve:gateway",
        "quickstart": "quickstart:quickstart",
        "mcp": "mcp:app",
        "wrap": "wrap:wrap",
        "unwrap": "wrap:unwrap",
    },
    "Inspect": {
        "show": "conversations:show",
        "tail": "tail:tail",
        "recall": "conversations:recall",
        "facts": "facts:app",
        "archive": "archive:app",
        "context": "windows:context",
        "calls": "windows:calls",
        "explain": "windows:explain",
        "replay": "windows:replay",
    },
    "Write and erase": {
        "record": "conversations:record",
        "remember": "facts:remember",
        "import": "transfer:import_",
        "export": "transfer:export",
        "forget": "conversations:forget",
    },
    "Operate": {
        "doctor": "doctor:doctor",
        "config": "doctor:config",
        "keys": "keys:app",
        "worker": "serve:worker",
        "policy": "policy:policy",
        "audit": "audit:audit",
        "backup": "maintenance:backup",
        "verify": "maintenance:verify",
        "rebuild": "maintenance:rebuild",
        "upgrade": "maintenance:upgrade",
        "bench": "bench:app",
    },
}
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}
#: What people type who know other tools, and what does it here.
_ELSEWHERE = {
    "add": "remember",
    "delete": "forget",
    "help": "--help",
    "list": "show",
    "log": "tail",
    "logs": "tail",
    "ls": "show",
    "restore": "backup",
    "run": "quickstart",
    "search": "recall",
    "start": "serve",
    "stats": "doctor",
    "status": "doctor",
    "version": "--version",
}
#: What the parser says of a value, in plainer words.
_PLAINER = (
    (r"^Value error, ", ""),
    (r"Input should be a valid integer.*", "not a whole number"),
    (r"Input should be a valid number.*", "not a number"),
    (r"Input should be greater than or equal to ", "must be at least "),
    (r"Input should be less than or equal to ", "must be at most "),
)


class _Commands(Group):
    """Imports a command on demand, and shows an error as a line, never as a traceback."""

    #: Whether only names and summaries are wanted.
    _listing = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Where Typer looks for the name that a mistyped one is close to; a command itself comes from `get_command`.
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        if self._listing:
            return Listed(
                cmd_name, place, next(title for title, group in GROUPS.items() if cmd_name in group)
            )
        return _imported(cmd_name, place)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if (here := _ELSEWHERE.get(args[0])) is not None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {here!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            for said, plainly in _PLAINER:
                error.message = re.sub(said, plainly, error.message)
            raise
        except PagefileError as error:
            complain(str(error))
            raise typer.Exit(NOT_THERE if isinstance(error, NotFoundError) else FAILED) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            err().print(Text(f"Interrupted. {error}".rstrip()), soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from error


@cache
def _imported(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found: Any = getattr(import_module(f"pagefile.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        # A traceback with the values of variables would print user content.
        alone = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        alone.command(name, cls=Command)(found)
        found = alone
    command: Any = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pagefile {version('pagefile')}")
        raise typer.Exit


@app.callback()
def pagefile(
    ctx: typer.Context,
    *,
    db: Db = None,
    config_file: ConfigFile = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Virtual memory for LLM agents: everything stays on disk, and every model call gets a prompt that fits.

    Examples:
        pagefile demo && pagefile serve
        pagefile chat notes
        pagefile COMMAND --help
    """
    ctx.obj = Place(db, config_file)


def run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # On a terminal that is not UTF-8, an unsupported character becomes "?" instead of a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="pagefile")
