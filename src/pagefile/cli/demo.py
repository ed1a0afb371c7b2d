"""`demo`: long sample conversations in two languages, and their removal."""

from functools import partial
from typing import Annotated

import anyio
from typer import Option

from pagefile.cli.invocation import Invocation, command, database_file
from pagefile.cli.measures import plural
from pagefile.cli.output import say, show_counts
from pagefile.cli.progress import counting
from pagefile.inspector.demo import DemoReport, fill_demo, remove_demo
from pagefile.settings import Settings
from pagefile.settings.sources import shown


@command(tenant=False)
def demo(
    cli: Invocation,
    *,
    remove: Annotated[bool, Option("--remove", help="Erase the demo again, and nothing else.")] = False,
) -> None:
    """Fill the database with long conversations to look at: a shop, a clinic (中文), research, code, travel.

    Their ids begin with `demo-`; nothing else in the database is touched, and a second run adds nothing.

    Examples:
        pagefile demo
        pagefile demo --remove
    """
    if remove:
        counts = cli.run(remove_demo)
        total, shown_counts = sum(counts.values()), partial(show_counts, counts, "Erased the demo")
        missing = "There is no demo here to remove."
        cli.answer({"counts": counts, "total": total}, shown_counts, found=total, missing=missing)
        return
    with counting("Writing turns", at_end="Indexing") as told:
        try:
            report = anyio.run(fill_demo, cli.settings, told)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Run `pagefile demo` again: it continues where it stopped.") from None
    cli.answer(report, lambda: _show(report, cli.settings))


def _show(report: DemoReport, settings: Settings) -> None:
    where = database_file(settings.url) or shown(settings.url)
    if not report.turns:
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
