"""`bench`: measures Pagefile on this machine; the benchmarks themselves are in `pagefile.bench`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Protocol, cast

import typer

from pagefile.cli.opening import AsJson
from pagefile.cli.output import err, print_json, print_table, table

app = typer.Typer(help="Measure Pagefile on this machine.", no_args_is_help=True)


class Row(Protocol):
    """One thing measured, and the limit it has to keep."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def limit(self) -> float | str | None: ...
    @property
    def ok(self) -> bool | None: ...
    @property
    def note(self) -> str | None: ...


class Report(Protocol):
    """What a run of benchmarks gives."""

    @property
    def rows(self) -> Sequence[Row]: ...
    def to_json(self) -> object: ...


class _Core(Protocol):
    def run(self, *, quick: bool = False) -> Report: ...


@app.callback()
def bench() -> None:
    """Measure Pagefile on this machine."""


@app.command()
def core(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller numbers, for a first look.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure record, context and recall against the bare database; exit code 1 when a limit is not kept."""
    benchmarks = cast("_Core", import_module("pagefile.bench.core"))
    with err().status("Measuring…"):
        report = benchmarks.run(quick=quick)
    if as_json:
        print_json(report.to_json())
    else:
        _show(report.rows)
    if any(row.ok is False for row in report.rows):
        raise typer.Exit(1)


def _show(rows: Sequence[Row]) -> None:
    made = table("measured", "value", "ratio", "limit", "kept", "note", right=("value", "ratio", "limit"))
    for row in rows:
        kept = {True: "yes", False: "NO", None: ""}[row.ok]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        limit = "" if row.limit is None else str(row.limit)
        made.add_row(row.name, f"{row.value:,.3g} {row.unit}", ratio, limit, kept, row.note or "")
    print_table(made)
