"""`rebuild`: make anew what recall derives from the log, for instance with another embedder."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from pagefile.cli.opening import loaded, run
from pagefile.cli.options import AsJson, ConfigFile, Db
from pagefile.cli.output import err, plural, print_json, say


def rebuild(
    ctx: typer.Context,
    *,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's turns, else everybody's.")] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Make everything again, even what is there.")] = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Make the terms and vectors that turns lack, with the embedder of today; then remove what others made.

    Reads and writes go on meanwhile. What is interrupted is continued by the next run.
    """
    settings = loaded(ctx, db, config).settings
    with _progress() as told:
        counts = run(settings, lambda memory: memory.rebuild(tenant=tenant, anew=anew, progress=told))
    if as_json:
        print_json(counts)
        return
    made = f"Made the terms of {plural(counts['terms'], 'turn')} and {plural(counts['vectors'], 'vector')}"
    dropped = (
        f", removed {plural(counts['dropped'], 'vector')} of other embedders" if counts["dropped"] else ""
    )
    say(f"{made}{dropped}." if any(counts.values()) else "Everything is there already.")


class _Speed(ProgressColumn):
    """How many entries of the log are read in a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """A bar on stderr; nothing when nobody watches."""
    console = err()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Reading the log", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
