"""`pagefile bench recall`: how much of what answers a question is found, on public sets, beside plain BM25 and others' stores."""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import anyio

from benchmarks.corpus import url_of
from benchmarks.recall_data import Asked, Corpus, read_set, set_files
from benchmarks.recall_peers import open_peers
from benchmarks.recall_rankers import DenseRanker, PagefileRanker, PlainRanker, Ranker
from benchmarks.recall_scores import DEPTH, FIGURES, MAIN, Difference, difference
from benchmarks.recall_vectors import OnDisk, Remembered
from benchmarks.report import machine_facts
from pagefile.engine import Memory
from pagefile.errors import NotFoundError
from pagefile.models.embedders import MemoryEncoder
from pagefile.ports import Embedder
from pagefile.records import JsonObject
from pagefile.settings import Settings

#: Whom the others are measured against, and the same without vectors.
OURS = "pagefile"
WORDS_ONLY = "words only"

NO_DATA = "There is nothing to measure recall on: name a folder of data with --data or $PAGEFILE_BENCH_DATA."

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """How one ranker did on one question."""

    set: str
    ranker: str
    asked: Asked
    figures: dict[str, float]
    #: The first ten, to look at.
    top: Sequence[str]
    seconds: float

    def to_json(self) -> JsonObject:
        """A line of the file of results."""
        return {
            "set": self.set,
            "ranker": self.ranker,
            "id": self.asked.id,
            "kind": self.asked.kind,
            "question": self.asked.text,
            "gold": [*sorted(self.asked.turns or self.asked.sessions)],
            "top": [*self.top],
            "figures": {**self.figures},
            "ms": round(1000 * self.seconds, 2),
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """One set: the mean of each figure for each ranker."""

    set: str
    turns: int
    answered: Sequence[Answered] = field(repr=False)

    @property
    def rankers(self) -> list[str]:
        """Who was measured, Pagefile first."""
        return list(dict.fromkeys(one.ranker for one in self.answered))

    @property
    def questions(self) -> int:
        """How many questions were asked of each."""
        return len(self.answered) // len(self.rankers)

    def mean(self, figure: str, ranker: str, kind: str | None = None) -> float:
        """A figure's mean over all questions, or over those of one kind."""
        return fmean(
            one.figures[figure]
            for one in self.answered
            if one.ranker == ranker and kind in {None, one.asked.kind}
        )

    def ahead(self, figure: str, of: str) -> Difference:
        """How far Pagefile is ahead of another ranker."""
        ours, theirs = (
            [one.figures[figure] for one in self.answered if one.ranker == ranker] for ranker in (OURS, of)
        )
        return difference(ours, theirs)

    def milliseconds(self, ranker: str) -> float:
        """What a question takes, p50, once the index is built; it grows with how many turns are asked for."""
        return 1000 * median(one.seconds for one in self.answered if one.ranker == ranker)

    def to_json(self) -> JsonObject:
        """The set as plain JSON."""
        kinds = sorted({one.asked.kind for one in self.answered})
        main = MAIN[self.set]
        return {
            "set": self.set,
            "questions": self.questions,
            "turns": self.turns,
            "figures": {
                ranker: {figure: round(self.mean(figure, ranker), 4) for figure in FIGURES[self.set]}
                for ranker in self.rankers
            },
            "ahead of": {
                ranker: {figure: _bounds(self.ahead(figure, ranker)) for figure in FIGURES[self.set]}
                for ranker in self.rankers
                if ranker != OURS
            },
            "by kind": {
                "figure": main,
                **{
                    ranker: {kind: round(self.mean(main, ranker, kind), 4) for kind in kinds}
                    for ranker in self.rankers
                },
            },
            "p50 ms": {ranker: round(self.milliseconds(ranker), 2) for ranker in self.rankers},
        }


def _bounds(ahead: Difference) -> JsonObject:
    return {"mean": round(ahead.mean, 4), "low": round(ahead.low, 4), "high": round(ahead.high, 4)}


@dataclass(frozen=True, slots=True)
class RecallReport:
    """Every set that was there."""

    sets: Sequence[Measured]
    machine: JsonObject
    quick: bool
    seconds: float
    embedder: str
    #: Why somebody who was to be compared was not.
    left_out: Sequence[str] = ()

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "machine": self.machine,
            "embedder": self.embedder,
            "left out": [*self.left_out],
            "sets": [one.to_json() for one in self.sets],
        }

    def write(self, path: Path) -> None:
        """Every answer of every ranker, a line of JSON each."""
        lines = [json.dumps(one.to_json(), ensure_ascii=False) for kept in self.sets for one in kept.answered]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Effort:
    """How much of a set is measured, None for all."""

    users: int | None = None
    questions: int | None = None


_QUICK = {
    "LoCoMo": _Effort(users=1, questions=60),
    "LongMemEval-S": _Effort(users=5),
    "LifeBench-zh": _Effort(users=1, questions=40),
    "REALTALK": _Effort(users=1, questions=40),
    "BEAM-100K": _Effort(users=1),
    "RealMem": _Effort(users=1, questions=40),
}


def run(
    data: Path | None,
    quick: bool = False,
    progress: Progress | None = None,
    *,
    peers: bool = False,
    embedder: Embedder | None = None,
    cache: Path | None = None,
    sets: Sequence[str] = (),
) -> RecallReport:
    """Measure in a temporary folder; `data` names the folder of the sets, which are only read.

    Others' stores are compared if `peers` is true; everybody has vectors of the same embedder, the one of Pagefile unless
    another is given. Vectors are kept in `cache` for the next run. Only these `sets`, if any are named.
    """
    if data is None:
        raise NotFoundError(NO_DATA)
    began = time.perf_counter()
    files = {name: path for name, path in set_files(data).items() if not sets or name in sets}
    tell = progress or _noop
    maker = embedder or MemoryEncoder()
    vectors = Remembered(OnDisk(maker, cache) if cache is not None else maker)
    measured: list[Measured] = []
    left_out: dict[str, None] = {}
    for name, path in files.items():
        tell(f"reading {name}")
        effort = _QUICK[name] if quick else _Effort()
        corpora = read_set(name, path)[: effort.users]
        with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
            bench = _Bench(name, effort, Path(folder), vectors, peers, tell, left_out)
            measured.append(anyio.run(bench.measured, corpora))
    seconds = time.perf_counter() - began
    return RecallReport(measured, machine_facts("none"), quick, seconds, vectors.name, tuple(left_out))


@dataclass(frozen=True, slots=True)
class _Bench:
    """One set and everybody who is asked its questions."""

    set: str
    effort: _Effort
    folder: Path
    vectors: Remembered
    peers: bool
    tell: Progress
    left_out: dict[str, None]

    async def measured(self, corpora: Sequence[Corpus]) -> Measured:
        """Each user's memory in turn, for everybody."""
        settings = Settings(synchronous="normal")
        answered: dict[str, list[Answered]] = defaultdict(list)
        async with AsyncExitStack() as opened:
            memories = [
                await opened.enter_async_context(
                    Memory.open(url_of(self.folder / f"{number}.db"), embedder=embedder, settings=settings)
                )
                for number, embedder in enumerate((self.vectors, "none"))
            ]
            rankers: list[Ranker] = [
                PagefileRanker(OURS, memories[0]),
                PagefileRanker(WORDS_ONLY, memories[1]),
                PlainRanker(),
                DenseRanker(self.vectors),
            ]
            if self.peers:
                rankers += open_peers(self.vectors, self.folder, self._leave_out)
            for number, corpus in enumerate(corpora, 1):
                for ranker in rankers:
                    self.tell(f"{self.set}: {ranker.name}, user {number} of {len(corpora)}")
                    await ranker.take(corpus)
                    answered[ranker.name] += await self._answers(ranker, corpus)
        turns = sum(len(corpus.said) for corpus in corpora)
        return Measured(self.set, turns, [one for those in answered.values() for one in those])

    def _leave_out(self, why: str) -> None:
        self.left_out[why] = None

    async def _answers(self, ranker: Ranker, corpus: Corpus) -> list[Answered]:
        session_of = {one.id: one.session for one in corpus.said}
        place = {one.id: number for number, one in enumerate(corpus.said)}
        answered: list[Answered] = []
        for asked in corpus.asked[: self.effort.questions]:
            began = time.perf_counter()
            turns = await ranker.rank(asked, DEPTH[self.set])
            seconds = time.perf_counter() - began
            turns = [turn for turn in turns if asked.before is None or place[turn] < asked.before]
            sessions = list(dict.fromkeys(session_of[turn] for turn in turns))
            figures = {figure: scored(asked, turns, sessions) for figure, scored in FIGURES[self.set].items()}
            answered.append(Answered(self.set, ranker.name, asked, figures, turns[:10], seconds))
        return answered


def _noop(_: str) -> None:
    return
