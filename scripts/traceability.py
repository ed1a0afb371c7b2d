"""Write docs/traceability.md: each requirement, the tests that prove it, and what was measured.

The rows are docs/requirements/*.toml, the numbers docs/benchmarks/*.json. Run by `make traceability`.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "docs" / "requirements"
BENCHMARKS = ROOT / "docs" / "benchmarks"
PAGE = ROOT / "docs" / "traceability.md"

_INTRODUCTION = """\
# Requirements, tests, numbers

<!-- Written by `make traceability` from docs/requirements/*.toml and docs/benchmarks/*.json; do not edit. -->

Each id is something that one of the five design documents asks for, a place where they contradict themselves or
each other, or something that broke elsewhere; the tests beside it fail when it does not hold.
`make test` fails when an id has no test, or when its test is gone.
How a row is written: [docs/requirements](requirements/README.md).
"""


class MissingNumberError(LookupError):
    """The results of a benchmark have no such number."""


@dataclass(frozen=True, slots=True)
class Group:
    """A range of ids with one heading."""

    heading: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Where a number is in the results of a benchmark."""

    bench: str
    at: tuple[str | int, ...]
    unit: str = ""

    def told(self) -> str:
        """The number with its unit; a dash where the benchmark has no results in this repository."""
        file = BENCHMARKS / f"{self.bench}.json"
        if not file.exists():
            return "—"
        return self.found_in(json.loads(file.read_text(encoding="utf-8")))

    def found_in(self, results: Any) -> str:
        """The number with its unit, out of the JSON of a report."""
        for step in self.at:
            results = _down(results, step, self)
        if isinstance(results, dict) and {"value", "unit"} <= results.keys():
            return _shown(results["value"], results["unit"])
        if isinstance(results, bool) or not isinstance(results, int | float) or not self.unit:
            raise MissingNumberError(f"{self} ends neither at a number with a unit nor at a row of a report")
        return _shown(results, self.unit)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One id: what it asks, what proves it, where it was measured."""

    id: str
    says: str
    tests: tuple[str, ...]
    measured: tuple[Measured, ...] = ()

    @classmethod
    def of(cls, id_: str, row: dict[str, Any]) -> "Requirement":
        """The row of a file; a key that nobody reads is an error."""
        unknown = row.keys() - {"says", "tests", "measured"}
        if unknown:
            raise ValueError(f"{id_}: nobody reads {sorted(unknown)}")
        measured = [
            Measured(one["bench"], tuple(one["at"]), one.get("unit", "")) for one in row.get("measured", [])
        ]
        return cls(id_, row["says"], tuple(row["tests"]), tuple(measured))


def groups(text: str) -> list[Group]:
    """The ranges of ids.txt, each written out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [_group(line) for line in lines]


def known_groups() -> list[Group]:
    """The groups of the repository."""
    return groups((REQUIREMENTS / "ids.txt").read_text(encoding="utf-8"))


def written_rows() -> Iterator[Requirement]:
    """Every row of every file; claims are told elsewhere."""
    for file in sorted(set(REQUIREMENTS.glob("*.toml")) - set(REQUIREMENTS.glob("claims-*.toml"))):
        for id_, row in tomllib.loads(file.read_text(encoding="utf-8")).items():
            yield Requirement.of(id_, row)


def page(known: Sequence[Group], rows: Sequence[Requirement]) -> str:
    """The whole page; an id without a row is told as such."""
    by_id = {row.id: row for row in rows}
    return "\n".join([_INTRODUCTION, *(_section(group, by_id) for group in known)])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(known_groups(), list(written_rows())), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


def _group(line: str) -> Group:
    first, last, heading = line.split(maxsplit=2)
    family, lowest = first.rsplit("-", 1)
    if family != last.rsplit("-", 1)[0]:
        raise ValueError(f"not a range of one family: {line!r}")
    numbers = range(int(lowest), int(last.rsplit("-", 1)[1]) + 1)
    return Group(heading, tuple(f"{family}-{number:0{len(lowest)}}" for number in numbers))


def _down(results: Any, step: str | int, sought: Measured) -> Any:
    """One step down: a key, an index, or the name of an entry of a list."""
    try:
        if isinstance(results, list) and isinstance(step, str):
            return next(entry for entry in results if entry["name"] == step)
        return results[step]
    except (LookupError, TypeError, StopIteration):
        raise MissingNumberError(f"no {step!r} on the way to {sought}") from None


def _shown(value: float, unit: str) -> str:
    """Three digits are enough to tell."""
    number = f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"
    return f"{number}{'' if unit.startswith('%') else ' '}{unit}"


def _section(group: Group, rows: dict[str, Requirement]) -> str:
    lines = [f"## {group.heading}", "", "| id | what | tests | measured |", "|---|---|---|---|"]
    lines += [_line(rows[id_]) if id_ in rows else f"| {id_} | | **no test** | |" for id_ in group.ids]
    return "\n".join([*lines, ""])


def _line(row: Requirement) -> str:
    tests = "<br>".join(map(_link, row.tests))
    measured = "<br>".join(f"{_cell(one.told())} (`bench {one.bench}`)" for one in row.measured)
    return f"| {row.id} | {_cell(row.says)} | {tests} | {measured} |"


def _link(test: str) -> str:
    path, name = test.split("::", 1)
    return f"[{name}](../{path})"


def _cell(text: str) -> str:
    """Text that stays within its cell: a bar would end it, and `<` would begin a tag outside of code."""
    pieces = re.split(r"(`[^`]*`)", text.replace("|", r"\|"))
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


if __name__ == "__main__":
    main()
