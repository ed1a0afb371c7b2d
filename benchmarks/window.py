"""`pagefile bench window`: whether what a message needs is in its window, what that costs, and whether the rest stays away."""

import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import numpy as np

from benchmarks import window_everyday, window_evidence, window_facts, window_labels
from benchmarks.recall_vectors import OnDisk, Remembered
from benchmarks.report import machine_facts
from benchmarks.window_data import READERS
from benchmarks.window_parts import RECALL, WINDOW, Bench, Line, Progress, Row, means
from pagefile.errors import NotFoundError
from pagefile.models.embedders import MemoryEncoder
from pagefile.ports import Embedder
from pagefile.records import JsonObject

#: Sets that need no data beside the repository's own.
OWN = (*window_everyday.SETS, "facts", "rules")
#: Sets in files of a folder, by the pattern of the first.
GIVEN = {
    **{name: pattern for name, (pattern, _) in READERS.items()},
    "PrecisionMemBench": "precision-beliefs*.json.gz",
    "PersistBench": "persist-beneficial*.jsonl.gz",
}
SETS = (*GIVEN, *OWN)
#: Figures that are tokens; the others are shares.
IN_TOKENS = frozenset({"tokens", "recall tokens", "packing needs"})
#: Sets whose kinds of messages are told apart.
BY_KIND = frozenset({*OWN, "PrecisionMemBench", "PersistBench"})


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Every message, and the means of each set."""

    lines: Sequence[Line]
    machine: JsonObject
    quick: bool
    seconds: float
    embedder: str
    #: Sets that were not there, and why somebody was not compared.
    left_out: Sequence[str] = ()

    @property
    def rows(self) -> list[Row]:
        """The means, of each kind too where kinds are told apart; a window's with what packing needs for its share."""
        rows = means(line for line in self.lines if line.set not in BY_KIND)
        rows += means((line for line in self.lines if line.set in BY_KIND), kinds=True)
        return [_with_needs(row, rows) for row in rows if _shown(row)]

    def to_json(self) -> JsonObject:
        """The means and where they were measured."""
        return {
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "machine": self.machine,
            "embedder": self.embedder,
            "left out": [*self.left_out],
            "rows": [row.to_json() for row in self.rows],
        }


def _shown(row: Row) -> bool:
    """Budgets that nobody has a window for are only there to compare with."""
    return row.way != RECALL or row.budget in window_evidence.BUDGETS


def _with_needs(row: Row, rows: Sequence[Row]) -> Row:
    """How many tokens packing takes for the share that a window holds, between the budgets that were tried."""
    packs = sorted(
        (one for one in rows if one.set == row.set and one.way == RECALL), key=lambda one: one.budget
    )
    if not packs or not row.way.startswith(WINDOW) or row.set in BY_KIND:
        return row
    shares = [one.figures["share"] for one in packs]
    needs = float(np.interp(row.figures["share"], shares, [one.figures["tokens"] for one in packs]))
    return Row(row.set, row.way, row.budget, row.kind, row.count, {**row.figures, "packing needs": needs})


def run(
    data: Path | None,
    sets: Sequence[str] = (),
    *,
    quick: bool = False,
    peers: bool = False,
    cache: Path | None = None,
    progress: Progress | None = None,
    embedder: Embedder | None = None,
    resume: Path | None = None,
) -> WindowReport:
    """Measure in temporary folders; `data` names the folder of the given sets, which are only read.

    Vectors are kept in the folder `cache` for the next run, if there is one, and in `resume` what was measured: a run of the same
    code, which may have been interrupted, goes on from there.
    """
    if unknown := set(sets) - set(SETS):
        raise NotFoundError(f"There is no set {min(unknown)!r} of windows: choose from {', '.join(SETS)}.")
    began = time.perf_counter()
    maker = embedder or MemoryEncoder()
    vectors = OnDisk(maker, cache) if cache is not None else maker
    left_out: dict[str, None] = {}
    chosen = {name for name in sets or SETS if name in OWN or _there(name, data, left_out)}
    bench = Bench(Remembered(vectors), progress or _noop, quick, kept=resume)
    with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
        place = Path(folder) if peers else None
        made = anyio.run(_measured, _parts(bench, chosen, data or Path(), place, left_out))
    seconds = time.perf_counter() - began
    return WindowReport(made, machine_facts("none"), quick, seconds, vectors.name, tuple(left_out))


def _there(name: str, data: Path | None, left_out: dict[str, None]) -> bool:
    if data is not None and any(data.glob(GIVEN[name])):
        return True
    left_out[f"{name} is left out: name a folder with {GIVEN[name]} with --data or $PAGEFILE_BENCH_DATA."] = (
        None
    )
    return False


_Part = Callable[[], Coroutine[object, object, list[Line]]]


def _parts(
    bench: Bench, chosen: set[str], data: Path, peers: Path | None, left_out: dict[str, None]
) -> list[_Part]:
    """What is measured one after the other."""

    def evidence(name: str) -> _Part:
        return lambda: window_evidence.measured(
            bench, name, data, peers, left_out=lambda why: left_out.update({why: None})
        )

    parts = [evidence(name) for name in READERS if name in chosen]
    if everyday := chosen & window_everyday.SETS.keys():
        parts.append(
            lambda: bench.once("-".join(sorted(everyday)), lambda: window_everyday.measured(bench, everyday))
        )
    others: dict[str, _Part] = {
        "facts": lambda: window_facts.fact_sets(bench),
        "rules": lambda: window_facts.rules(bench),
        "PrecisionMemBench": lambda: window_labels.precision_bench(bench, data),
        "PersistBench": lambda: window_labels.persist_bench(bench, data),
    }
    return parts + [partial(bench.once, name, part) for name, part in others.items() if name in chosen]


async def _measured(parts: Sequence[_Part]) -> list[Line]:
    return [line for part in parts for line in await part()]


def _noop(_: str) -> None:
    return
