"""Puts the commands together, and turns each of our errors into one line and an exit code.

0 success · 1 an error · 2 wrong usage · 3 not found · 130 Ctrl-C
"""

import io
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from pagefile.cli import INTERRUPTED
from pagefile.cli.options import ConfigFile, Db, Place
from pagefile.cli.output import complain, err
from pagefile.errors import NotFoundError, PagefileError

FAILED = 1
NOT_THERE = 3

#: The module of each command, imported only when the command or its help is requested.
COMMANDS = {
    "serve": "serve:serve",
    "gateway": "serve:gateway",
    "quickstart": "quickstart:quickstart",
    "worker": "serve:worker",
    "record": "conversations:record",
    "show": "conversations:show",
    "context": "windows:context",
    "calls": "windows:calls",
    "explain": "windows:explain",
    "replay": "windows:replay",
    "recall": "conversations:recall",
    "remember": "facts:remember",
    "export": "transfer:export",
    "import": "transfer:import_",
    "forget": "conversations:forget",
    "rebuild": "maintenance:rebuild",
    "verify": "maintenance:verify",
    "backup": "maintenance:backup",
    "upgrade": "maintenance:upgrade",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "config": "doctor:config",
    "facts": "facts:app",
    "archive": "archive:app",
    "keys": "keys:app",
    "mcp": "mcp:app",
    "wrap": "wrap:wrap",
    "unwrap": "wrap:unwrap",
    "bench": "bench:app",
}


class _Commands(TyperGroup):
    """Imports a command on demand, and shows an error as a line, never as a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        place = COMMANDS.get(cmd_name)
        return None if place is None else _imported(cmd_name, place)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
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
        alone.command(name)(found)
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
    """Virtual memory for LLM agents: everything stays on disk, every model call gets the window that fits."""
    ctx.obj = Place(db, config_file)


def run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # On a terminal that is not UTF-8, an unsupported character becomes "?" instead of a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="pagefile")
