"""`rebuild`: recreate what recall derives from the log, for instance with another embedder."""

from typing import Annotated

import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import plural
from pagefile.cli.progress import counting


@command(tenant=False)
def rebuild(
    cli: Invocation,
    *,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's turns, else everybody's.")] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Make everything again, even what is there.")] = False,
) -> None:
    """Make the terms and vectors that turns lack, with the embedder of today; then remove what others made.

    Reads and writes go on meanwhile. What is interrupted is continued by the next run.
    """
    with counting("Reading the log", speed=True) as told:
        counts = cli.run(lambda memory: memory.rebuild(tenant=tenant, anew=anew, progress=told))
    made = f"Made the terms of {plural(counts['terms'], 'turn')} and {plural(counts['vectors'], 'vector')}"
    dropped = (
        f", removed {plural(counts['dropped'], 'vector')} of other embedders" if counts["dropped"] else ""
    )
    cli.answer(counts, f"{made}{dropped}." if any(counts.values()) else "Everything is there already.")
