"""`pagefile bench runs`: recorded runs of agents, replayed call by call, beside LangChain's middlewares, Headroom and the
simplest rules."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import anyio

from benchmarks.runs_data import Run, read_runs, run_files
from benchmarks.runs_headroom import INTERPRETER, Headroom, interpreter
from benchmarks.runs_pagefile import Pagefile, Point
from benchmarks.runs_ruler import Moment, Ruler, Score, is_lost, moments
from benchmarks.runs_ways import (
    ContextEditing,
    Simple,
    Summarization,
    Way,
    last_whole,
    nothing,
    oldest_out,
)
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.records import JsonObject

#: The windows at which others are compared, in tokens.
WINDOWS = (32_000, 16_000, 8_000)
#: Those of Pagefile, by how the names of the files begin: it keeps to them, whatever they have to hold, while the rules of others let
#: calls and speech exceed theirs.
POINTS: Mapping[str, Sequence[Point]] = {
    "coding": (
        Point(30_000, 0.5),
        Point(26_000, 0.3),
        Point(17_850, 0.16, recent_turns=30, threshold=0.9),
    ),
    "traj": (Point(10_200, 0.7, inputs_from=400), Point(9_200, 1.0, inputs_from=400)),
}
NO_DATA = "Name a folder of recorded runs with --data or $PAGEFILE_BENCH_DATA."

Progress = Callable[[str], None]


class Part(NamedTuple):
    """Every so many of the runs, from one on: what was tuned on the one part is measured on the other."""

    first: int = 0
    every: int = 1

    @classmethod
    def of(cls, text: str) -> "Part":
        """`2/3`: of three parts, the second."""
        number, _, parts = text.partition("/")
        if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
            raise InvalidArgumentError(f"--part is {text!r}: write it as 1/2, the first of two parts.")
        return cls(int(number) - 1, int(parts))


EVERY_RUN = Part()


@dataclass(frozen=True, slots=True)
class Line:
    """One way on the runs of one file."""

    source: str
    way: str
    #: One a run, in the order of the file.
    scores: Sequence[Score]

    @property
    def score(self) -> Score:
        return Score.of(self.scores)

    @property
    def halves(self) -> tuple[Score, Score]:
        """Every other run, and the others: how much chance there is in the figures."""
        return Score.of(self.scores[::2]), Score.of(self.scores[1::2])

    def to_json(self) -> JsonObject:
        score = self.score
        return {
            "source": self.source,
            "way": self.way,
            "runs": len(self.scores),
            "calls": score.calls,
            "saved": round(score.saved, 4),
            "in_view": round(score.in_view, 4),
            "prefix": round(score.prefix, 4),
            "spans": score.spans,
            "leads_back": score.leads_back,
            "found_first": score.finds,
            "halves": [
                [round(half.saved, 4), round(half.in_view, 4), round(half.prefix, 4)] for half in self.halves
            ],
            "largest_prompt": round(score.largest),
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


def run(
    data: Path | None, *, quick: bool, progress: Progress, ways: str = "", part: Part = EVERY_RUN
) -> RunsReport:
    """Every way on every file of runs; with `quick`, on the first five runs of each.

    `ways` leaves only those whose names contain it, `part` only some of the runs.
    """
    if data is None:
        raise NotFoundError(NO_DATA)
    started = time.perf_counter()
    lines: list[Line] = []
    left_out = _left_out()
    for path in run_files(data):
        runs = list(islice(read_runs(path), part.first, 5 if quick else None, part.every))
        played = [(one, moments(one)) for one in runs]
        source = path.name.partition(".")[0]
        with tempfile.TemporaryDirectory() as folder:
            for way in (one for one in _ways(Path(folder), source) if ways.casefold() in one.name.casefold()):
                progress(f"{source}: {way.name}")
                lines.append(Line(source, way.name, anyio.run(_scores, way, played)))
    return RunsReport(lines, left_out, time.perf_counter() - started, quick)


def _left_out() -> list[str]:
    """Who is not there to be compared."""
    missing = [] if find_spec("langchain") else ["LangChain is not installed: pip install langchain"]
    if interpreter() is None:
        missing.append(
            f"Headroom needs an environment of its own: install headroom-ai there and name its Python in ${INTERPRETER}"
        )
    return missing


def _ways(folder: Path, source: str) -> Iterator[Way]:
    yield Simple("everything", nothing)
    for limit in WINDOWS:
        yield Simple(f"{limit:,}, down to {limit // 2:,}", oldest_out(limit, limit // 2))
    yield Simple("last 5 results whole, 5 at a time", last_whole(5, 5))
    if find_spec("langchain"):
        yield from (ContextEditing(limit, 3) for limit in WINDOWS)
        yield from (Summarization(limit, limit // 2) for limit in WINDOWS)
    if python := interpreter():
        yield from (Headroom(python, limit) for limit in WINDOWS)
    for begins, points in POINTS.items():
        if source.startswith(begins):
            yield from (Pagefile(folder, point) for point in points)


async def _scores(way: Way, played: Sequence[tuple[Run, Sequence[Moment]]]) -> list[Score]:
    scores: list[Score] = []
    try:
        for one, happened in played:
            scores.append(score := Score())
            await way.begin(one)
            ruler = Ruler(score)
            for moment in happened:
                if moment.is_called_for:
                    ruler.prompt(await way.prompt())
                missed = ruler.happened(moment)
                if isinstance(way, Pagefile):
                    for span in (one for one in missed if is_lost(one, ruler.last)):
                        named, found = await way.leads_back(span, ruler.last)
                        score.lost += 1
                        score.named += named
                        score.found += found
                await way.add(moment.event)
    finally:
        await way.close()
    return scores
