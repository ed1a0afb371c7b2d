"""`pagefile bench archive`: what the archive saves on recorded runs and in the scenario of its design, and what it costs."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio

from benchmarks.archive_speed import archiving
from benchmarks.replay import Replayed, TurnEnd, replay
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.scenario import Scenario, scenario
from benchmarks.trajectories import Trajectory, read_trajectories, trajectory_files
from pagefile.errors import StoreUnavailableError
from pagefile.records import JsonObject
from pagefile.text.tokens import CachedCounter, TokenCounter, open_counter

THRESHOLDS = (4_000, 10_000)
TURN_ENDS: tuple[TurnEnd, ...] = ("next question", "next model call")
NO_DATA = (
    "Recorded runs were skipped: no data was given. Name a folder of traj-*.jsonl.gz files with --data "
    "or $PAGEFILE_BENCH_DATA."
)
EXACT = Limit("at least", 1.0)

Progress = Callable[[str], None]
Sources = Sequence[tuple[str, Sequence[Trajectory]]]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How much is measured."""

    #: Runs of each file, None for all.
    runs: int | None
    rounds: int


_FULL = _Effort(runs=None, rounds=9)
_QUICK = _Effort(runs=5, rounds=3)


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """The rows that have limits, and the two tables they are taken from."""

    report: Report
    #: None when there was no data.
    replayed: Sequence[Replayed] | None
    scenario: Scenario

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        runs = None if self.replayed is None else [line.to_json() for line in self.replayed]
        skipped = NO_DATA if self.replayed is None else None
        return {
            **self.report.to_json(),
            "trajectories": runs,
            "skipped": skipped,
            "scenario": self.scenario.to_json(),
        }


def run(data: Path | None = None, quick: bool = False, progress: Progress | None = None) -> ArchiveReport:
    """Measure in a temporary folder here; `data` names the folder of recorded runs, which are only read."""
    began = time.perf_counter()
    effort = _QUICK if quick else _FULL
    sources = None if data is None else _sources(data, effort.runs)
    with _folder() as folder:
        return anyio.run(_measure, Path(folder), sources, effort, progress or _noop, began)


def _sources(data: Path, runs: int | None) -> Sources:
    return [
        (
            path.name.removeprefix("traj-").removesuffix(".jsonl.gz"),
            list(islice(read_trajectories(path), runs)),
        )
        for path in trajectory_files(data)
    ]


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=".pagefile-bench-", dir=Path.cwd())
    except OSError as error:
        raise StoreUnavailableError(
            f"The current directory cannot be written ({error.strerror}): run the benchmark where a database may be made."
        ) from error


async def _measure(
    folder: Path, sources: Sources | None, effort: _Effort, tell: Progress, began: float
) -> ArchiveReport:
    counter = open_counter()
    tell("walking the scenario")
    measured = await scenario(folder, counter)
    rows = measured.rows()
    tell("archiving a megabyte")
    rows += await archiving(folder, counter, rounds=effort.rounds)
    replayed = None
    if sources is not None:
        replayed = await _replayed(folder, sources, CachedCounter(counter), tell)
        rows.append(_exact(replayed))
    facts = machine_facts(counter.name)
    report = Report(rows, facts, effort is _QUICK, time.perf_counter() - began)
    return ArchiveReport(report, replayed, measured)


async def _replayed(folder: Path, sources: Sources, counter: TokenCounter, tell: Progress) -> list[Replayed]:
    lines: list[Replayed] = []
    for turn_end in TURN_ENDS:
        for threshold in THRESHOLDS:
            tell(f"replaying runs, results over {threshold:,} characters, a turn ends with the {turn_end}")
            database = folder / f"replay-{turn_end.replace(' ', '-')}-{threshold}.db"
            lines += await replay(database, sources, counter, threshold=threshold, turn_end=turn_end)
    return lines


def _exact(replayed: Sequence[Replayed]) -> Row:
    """Every page of every replay, loaded and compared with the result it was made of."""
    pages = sum(line.tally.pages for line in replayed if line.source == "all")
    wrong = sum(line.tally.wrong for line in replayed if line.source == "all")
    share = (pages - wrong) / pages if pages else 1.0
    note = f"of {pages:,} pages of {len(THRESHOLDS) * len(TURN_ENDS)} replays, compared by sha256"
    return Row.judged(Row("pages that load byte for byte", pages - wrong, "pages", share, note=note), EXACT)


def _noop(_: str) -> None:
    return
