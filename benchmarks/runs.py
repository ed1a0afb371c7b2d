"""`pagefile bench runs`: recorded runs of agents, replayed call by call, beside LangChain's middlewares and the simplest rules."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import anyio

from benchmarks.runs_data import Run, read_runs, run_files
from benchmarks.runs_ruler import Moment, Ruler, Score, moments
from benchmarks.runs_ways import (
    ContextEditing,
    Pagefile,
    Simple,
    Summarization,
    Way,
    last_whole,
    nothing,
    oldest_out,
)
from pagefile.errors import NotFoundError
from pagefile.records import JsonObject

#: The windows at which Pagefile and others are compared, in tokens.
WINDOWS = (32_000, 16_000, 8_000)
NO_DATA = "Name a folder of recorded runs with --data or $PAGEFILE_BENCH_DATA."

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Line:
    """One way on the runs of one file."""

    source: str
    way: str
    runs: int
    score: Score

    def to_json(self) -> JsonObject:
        score = self.score
        return {
            "source": self.source,
            "way": self.way,
            "runs": self.runs,
            "calls": score.calls,
            "saved": round(score.saved, 4),
            "in_view": round(score.in_view, 4),
            "prefix": round(score.prefix, 4),
            "spans": score.spans,
            "tokens": round(score.sent),
            "tokens_whole": round(score.whole),
        }


@dataclass(frozen=True, slots=True)
class RunsReport:
    lines: Sequence[Line]
    #: What could not be measured, and why.
    left_out: Sequence[str]
    seconds: float
    quick: bool

    def to_json(self) -> JsonObject:
        return {
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "left_out": list(self.left_out),
            "lines": [line.to_json() for line in self.lines],
        }


def run(data: Path | None, *, quick: bool, progress: Progress) -> RunsReport:
    """Every way on every file of runs; with `quick`, on the first five runs of each."""
    if data is None:
        raise NotFoundError(NO_DATA)
    started = time.perf_counter()
    lines: list[Line] = []
    left_out = [] if find_spec("langchain") else ["LangChain is not installed: pip install langchain"]
    for path in run_files(data):
        runs = list(islice(read_runs(path), 5 if quick else None))
        played = [(one, moments(one)) for one in runs]
        source = path.name.partition(".")[0]
        with tempfile.TemporaryDirectory() as folder:
            for way in _ways(Path(folder), has_langchain=not left_out):
                progress(f"{source}: {way.name}")
                lines.append(Line(source, way.name, len(runs), anyio.run(_score, way, played)))
    return RunsReport(lines, left_out, time.perf_counter() - started, quick)


def _ways(folder: Path, *, has_langchain: bool) -> list[Way]:
    simple: list[Way] = [
        Simple("everything", nothing),
        *(Simple(f"{limit:,}, down to {limit // 2:,}", oldest_out(limit, limit // 2)) for limit in WINDOWS),
        Simple("last 5 results whole, 5 at a time", last_whole(5, 5)),
    ]
    langchain: list[Way] = [
        *(ContextEditing(limit, 3) for limit in WINDOWS),
        *(Summarization(limit, limit // 2) for limit in WINDOWS),
    ]
    ours = [Pagefile(folder, tokens) for tokens in WINDOWS]
    return [*simple, *(langchain if has_langchain else ()), *ours]


async def _score(way: Way, played: Sequence[tuple[Run, Sequence[Moment]]]) -> Score:
    score = Score()
    try:
        for one, happened in played:
            await way.begin(one)
            ruler = Ruler(score)
            for moment in happened:
                if moment.is_called_for:
                    ruler.prompt(await way.prompt())
                ruler.happened(moment)
                await way.add(moment.event)
    finally:
        await way.close()
    return score
