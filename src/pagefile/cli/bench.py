"""`bench`: measures Pagefile on this machine; the benchmarks themselves are in `pagefile.bench`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from pagefile.bench.core import run
from pagefile.bench.report import Row
from pagefile.cli.opening import AsJson
from pagefile.cli.output import err, print_json, print_table, say, table, visible

app = typer.Typer(no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure Pagefile on this machine."""


@app.command()
def core(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller numbers, for a first look.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the core, each number beside something measured in the same run; exit code 1 when a limit is not kept."""
    with err().status("Measuring…") as status:
        report = run(quick=quick, progress=lambda step: status.update(visible(step)))
    if as_json:
        print_json(report.to_json())
    else:
        _show(report.rows)
        machine = " · ".join(f"{name} {value}" for name, value in report.machine.items())
        say(f"\n{machine} · {report.seconds:.0f} s")
    if not report.ok:
        raise typer.Exit(1)


def _show(rows: Sequence[Row]) -> None:
    made = table("value", "ratio", "limit", "kept", "measured", right=("value", "ratio", "limit"))
    for row in rows:
        kept = {True: "yes", False: "NO", None: ""}[row.ok]
        ratio = "" if row.ratio is None else f"{row.ratio:,.2f}"
        limit = "" if row.limit is None else f"{'≤' if row.bound == 'at most' else '≥'} {row.limit:g}"
        told = f"{row.name}: {row.note}" if row.note else row.name
        made.add_row(f"{row.value:,.4g} {row.unit}", ratio, limit, kept, told)
    print_table(made)
