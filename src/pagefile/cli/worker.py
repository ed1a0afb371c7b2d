"""`worker`: background work in a process of its own."""

import sys

import anyio
import typer

from pagefile.cli.opening import ConfigFile, Db, loaded
from pagefile.cli.output import say
from pagefile.engine.background import dedicated, look_after
from pagefile.settings.sources import shown


def worker(ctx: typer.Context, *, db: Db = None, config: ConfigFile = None) -> None:
    """Do the background work of processes that run with `worker = "apart"`: indexes, checkpoints, facts. Ctrl-C stops it."""
    settings = dedicated(loaded(ctx, db, config, patient=False).settings)

    def ready() -> None:
        say(f"Pagefile looks after {shown(settings.url)}. Ctrl-C stops it.")
        sys.stdout.flush()

    anyio.run(look_after, settings, ready)
    say("Stopped.")
