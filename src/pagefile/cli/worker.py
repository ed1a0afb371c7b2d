"""`worker`: background work in a separate process."""

import sys

import anyio

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.opening import existing_file
from pagefile.cli.output import say
from pagefile.engine.background import dedicated, look_after
from pagefile.settings.sources import shown


@command(tenant=False, json=False)
def worker(cli: Invocation) -> None:
    """Do the background work of processes that run with `worker = "apart"`: indexes, checkpoints, facts. Ctrl-C stops it.

    It makes no database: the service does, so start that first.
    """
    settings = dedicated(cli.loaded(patient=False).settings)
    existing_file(settings.url, otherwise=", or start the service first, which makes it")

    def ready() -> None:
        say(f"Pagefile looks after {shown(settings.url)}. Ctrl-C stops it.")
        sys.stdout.flush()

    anyio.run(look_after, settings, ready)
    say("Stopped.")
