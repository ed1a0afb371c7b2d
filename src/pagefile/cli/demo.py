"""`demo`: long conversations in two languages to look at, and their removal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import anyio
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pagefile.cli.opening import database_file, loaded, run
from pagefile.cli.options import AsJson, ConfigFile, Db
from pagefile.cli.output import err, nothing, number, plural, print_json, print_table, say, table
from pagefile.inspector.demo import DemoReport, fill_demo, remove_demo
from pagefile.settings import Settings
from pagefile.settings.sources import shown


def demo(
    ctx: typer.Context,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Erase the demo again, and nothing else.")] = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Fill the database with long conversations to look at: a shop, a clinic (中文), research, code, travel.

    Their ids begin with `demo-`; nothing else in the database is touched, and a second run adds nothing.
    """
    settings = loaded(ctx, db, config).settings
    if remove:
        _remove(settings, as_json=as_json)
        return
    with _progress() as told:
        try:
            report = anyio.run(fill_demo, settings, told)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Run `pagefile demo` again: it goes on where it stopped.") from None
    if as_json:
        print_json(report)
        return
    _show(report, settings)


def _show(report: DemoReport, settings: Settings) -> None:
    where = database_file(settings.url) or shown(settings.url)
    if not report.added:
        say(f"The demo is in {where} already: nothing was added.")
    else:
        say(
            f"Wrote {plural(report.conversations, 'conversation')}, {plural(report.turns, 'turn')}, "
            f"{plural(report.windows, 'window')} and {plural(report.facts, 'fact')} to {where}."
        )
    say("\npagefile serve               look at them in a browser")
    say("pagefile show                list the conversations")
    say("pagefile calls demo-clinic   list the windows of one, to explain and to replay")
    say("pagefile demo --remove       take them out again")


def _remove(settings: Settings, *, as_json: bool) -> None:
    counts = run(settings, remove_demo)
    total = sum(counts.values())
    if not total:
        raise nothing(
            "There is no demo here to remove.", as_json=as_json, empty={"counts": counts, "total": 0}
        )
    if as_json:
        print_json({"counts": counts, "total": total})
        return
    say("Erased the demo\n")
    made = table("rows", "of", right=("rows",))
    for name, count in counts.items():
        made.add_row(number(count), name)
    made.add_section()
    made.add_row(number(total), "in all")
    print_table(made)


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """A bar on stderr; nothing when nobody watches."""
    console = err()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Writing turns", total=None)

        def told(done: int, total: int) -> None:
            what = "Writing turns" if done < total else "Indexing"
            progress.update(task, completed=done, total=total, description=what)

        yield told
