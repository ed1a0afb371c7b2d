"""What a benchmark says: rows, each perhaps with a limit it must keep, and the machine they were measured on."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

import apsw

from pagefile.records import JsonObject, JsonValue

Bound = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a ratio may go."""

    bound: Bound
    ratio: float

    def keeps(self, ratio: float) -> bool:
        """Whether a ratio stays within it; the limit itself does."""
        return ratio <= self.ratio if self.bound == "at most" else ratio >= self.ratio


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without a limit it is there to be known."""

    name: str
    value: float
    unit: str
    #: To what the note names, measured in the same run.
    ratio: float | None = None
    limit: float | None = None
    bound: Bound | None = None
    #: None where there is nothing to keep.
    ok: bool | None = None
    note: str = ""

    @classmethod
    def judged(cls, shown: "Row", limit: Limit, *, unless: str | None = None) -> "Row":
        """The row with its limit; `unless` is the reason why the limit says nothing here, if there is one."""
        assert shown.ratio is not None
        if unless is not None:
            note = f"not applicable: {unless}; {shown.note}"
            return cls(shown.name, shown.value, shown.unit, shown.ratio, limit.ratio, limit.bound, None, note)
        ok = limit.keeps(shown.ratio)
        return cls(shown.name, shown.value, shown.unit, shown.ratio, limit.ratio, limit.bound, ok, shown.note)


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of a run."""

    rows: Sequence[Row]
    machine: JsonObject
    quick: bool
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return all(row.ok is not False for row in self.rows)

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        rows: list[JsonValue] = [asdict(row) for row in self.rows]
        return {
            "ok": self.ok,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "machine": self.machine,
            "rows": rows,
        }


def machine_facts(tokenizer: str) -> JsonObject:
    """What the numbers depend on, and nothing that says whose machine it is."""
    return {
        "pagefile": version("pagefile"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "tokenizer": tokenizer,
    }
