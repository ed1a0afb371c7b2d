"""`worker`: background work in a process of its own."""

import sys

import anyio
import typer

from pagefile.cli.opening import existing_file, loaded
from pagefile.cli.options import ConfigFile, Db
from pagefile.cli.output import say
from pagefile.engine.background import dedicated, look_after
from pagefile.settings.sources import shown


def worker(ctx: typer.Context, *, db: Db = None, config: ConfigFile = None) -> None:
    """Do the background work of processes that run with `worker = "apart"`: indexes, checkpoints, facts. Ctrl-C stops it.

    It makes no database: the service does, so start that first.
    """
    settings = dedicated(loaded(ctx, db, config, patient=False).settings)
    existing_file(settings.url, otherwise=", or start the service first, which makes it")

    def ready() -> None:
        say(f"Pagefile looks after {shown(settings.url)}. Ctrl-C stops it.")
        sys.stdout.flush()

    anyio.run(look_after, settings, ready)
    say("Stopped.")
