"""Puts the commands together, and turns every error of ours into one line and an exit code.

0 all is well · 1 an error · 2 the command was written wrongly · 3 what was asked for is not there · 130 Ctrl-C
"""

import io
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from pagefile._starting import INTERRUPTED
from pagefile.cli import (
    archive,
    bench,
    config,
    context,
    conversations,
    demo,
    doctor,
    explain,
    facts,
    forget,
    keys,
    rebuild,
    recall,
    serve,
    transfer,
    upgrade,
    verify,
    worker,
)
from pagefile.cli.opening import ConfigFile, Db, Place
from pagefile.cli.output import complain, err
from pagefile.errors import NotFoundError, PagefileError

FAILED = 1
NOT_THERE = 3


class _Commands(TyperGroup):
    """Shows an error as a line, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NotFoundError as error:
            complain(str(error))
            raise typer.Exit(NOT_THERE) from error
        except PagefileError as error:
            complain(str(error))
            raise typer.Exit(FAILED) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            err().print(Text(f"Interrupted. {error}".rstrip()), soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    # A traceback with the values of variables would print what people said.
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


for _name, _command in {
    "serve": serve.serve,
    "worker": worker.worker,
    "record": conversations.record,
    "show": conversations.show,
    "context": context.context,
    "calls": explain.calls,
    "explain": explain.explain,
    "replay": explain.replay,
    "recall": recall.recall,
    "remember": facts.remember,
    "export": transfer.export,
    "import": transfer.import_,
    "forget": forget.forget,
    "rebuild": rebuild.rebuild,
    "verify": verify.verify,
    "upgrade": upgrade.upgrade,
    "demo": demo.demo,
    "doctor": doctor.doctor,
    "config": config.config,
}.items():
    app.command(_name)(_command)
app.add_typer(facts.app, name="facts")
app.add_typer(archive.app, name="archive")
app.add_typer(keys.app, name="keys")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # In a terminal that is not UTF-8, a character it does not have becomes "?" instead of a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="pagefile")
