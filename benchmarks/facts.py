"""`pagefile bench facts`: ranking facts beside scikit-learn's refit for each question, and injection within its budget."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any, cast

import numpy as np

from benchmarks.report import Limit, Report, Row, machine_facts
from pagefile.records import JsonObject
from pagefile.standalone import MemoryMiddleware, _count_tokens, format_memory_for_injection  # pyright: ignore[reportPrivateUsage] - the name in its design
from pagefile.text.fact_ranking import FactIndex, Floats, features, scores
from pagefile.text.tokens import open_counter

SIZES = (100, 1_000, 10_000, 100_000)
#: Beside a refit, at ten thousand facts.
FASTER = Limit("at least", 30.0)
SAME = Limit("at least", 1.0)
NONE = Limit("at most", 0.0)
#: What the design of fact injection allows, in seconds: ranking a hundred facts, all of it before a model call, one count of tokens.
RANK_ALLOWED_S = 0.01
CALL_ALLOWED_S = 0.02
COUNT_ALLOWED_S = 0.0001
ALLOWED = Limit("at most", 1.0)
#: Calls of which 19 of 20 must keep to it.
_CALLS = 60
#: As many as the old rule by confidence shows; both rankings must agree on them.
TOP = 15
CONTEXT = "我在做一个 Python 项目 使用 FastAPI 和 SQLAlchemy 怎么写测试？"
NO_SKLEARN = "The comparison with scikit-learn was skipped: it is not installed. Run `pip install 'pagefile[sklearn]'`."

_SUBJECTS = ("用户", "The user", "她的团队", "Their project", "用户的公司")
_VERBS = ("喜欢", "prefers", "uses", "不喜欢", "is migrating to", "负责", "has learnt", "关注")
_THINGS = (
    "Python",
    "测试",
    "pytest",
    "FastAPI",
    "SQLAlchemy",
    "Docker",
    "容器化",
    "Kubernetes",
    "高血压用药",
    "青霉素",
    "type",
    "hints",
    "爬山",
    "摄影",
    "绿茶",
    "PostgreSQL",
    "Redis",
    "向量检索",
    "数据平台",
    "deployment",
    "monitoring",
    "周末",
    "early",
    "mornings",
    "dark",
    "mode",
    "简短的回答",
    "unit",
    "tests",
    "缓存",
    "队列",
)
_RANDOM_PIECES = (
    "<memory>",
    "</memory>",
    "&",
    "青霉素",
    "\n",
    "🙂",
    "a" * 40,
    "不对",
    "0123",
    "   ",
    "pytest",
    "。",
    "\u200b",
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    sizes: Sequence[int]
    sets: int
    rounds: int


_FULL = _Effort(SIZES, 10_000, 7)
_QUICK = _Effort(SIZES[:2], 300, 3)


@dataclass(frozen=True, slots=True)
class FactsReport:
    """The rows, and what could not be measured."""

    report: Report
    #: Why there is no comparison; None when there is one.
    instead: str | None

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {**self.report.to_json(), "skipped": self.instead}


def run(quick: bool = False, progress: Progress | None = None) -> FactsReport:
    """Measure in memory; nothing is written."""
    began = time.perf_counter()
    effort = _QUICK if quick else _FULL
    tell = progress or _noop
    vectorizer = _vectorizer()
    features(CONTEXT)  # the segmenter reads its dictionary once
    rows: list[Row] = []
    for size in effort.sizes:
        tell(f"ranking {size:,} facts")
        rows += _ranking(size, effort.rounds, vectorizer)
    tell("injecting before a model call")
    rows.append(_hook(effort.rounds, vectorizer))
    rows += [*_allowed(), *_counting()]
    tell(f"injecting {effort.sets:,} random sets")
    rows.append(_within_budget(effort.sets))
    report = Report(rows, machine_facts(open_counter().name), quick, time.perf_counter() - began)
    return FactsReport(report, NO_SKLEARN if vectorizer is None else None)


def _ranking(size: int, rounds: int, vectorizer: Any) -> list[Row]:
    texts, confidences = _corpus(size)
    index: FactIndex[int] = FactIndex()
    began = time.perf_counter()
    index.add(enumerate(texts))
    built = time.perf_counter() - began
    keys = range(size)
    ours = _seconds(lambda: scores(index.similarity_array(CONTEXT, keys), confidences), rounds)
    added = _seconds(lambda: _in_and_out(index, size), rounds)
    rows = [
        Row(
            f"add a fact to {size:,} and remove it",
            1e6 * added,
            "µs",
            built / added,
            note=f"times faster than indexing all again ({1e3 * built:.0f} ms)",
        )
    ]
    if vectorizer is None:
        return [Row(f"rank {size:,} facts", 1e3 * ours, "ms", note="nothing to compare with"), *rows]
    theirs = _seconds(lambda: _refitted(vectorizer, texts), 3 if size <= 1_000 else 1)
    ranked = Row(
        f"rank {size:,} facts",
        1e3 * ours,
        "ms",
        theirs / ours,
        note=f"times faster than scikit-learn's refit ({1e3 * theirs:.0f} ms), same analyzer",
    )
    rows.insert(0, Row.judged(ranked, FASTER) if size == 10_000 else ranked)
    rows.append(_agreement(size, scores(_refitted(vectorizer, texts), confidences), index, confidences))
    return rows


def _agreement(size: int, theirs: Floats, index: FactIndex[int], confidences: Sequence[float]) -> Row:
    """Of the best by our scores, how many are among the best by theirs; equal scores are equally good."""
    ours = scores(index.similarity_array(CONTEXT, range(size)), confidences)
    chosen = np.argsort(-ours, kind="stable")[:TOP]
    bar = float(np.sort(theirs)[-TOP])
    agreed = int(np.sum(theirs[chosen] >= bar - 1e-9))
    note = f"of the standalone ranking's best {TOP} of {size:,} facts"
    return Row.judged(Row("facts chosen alike", agreed, "facts", agreed / TOP, note=note), SAME)


def _hook(rounds: int, vectorizer: Any) -> Row:
    texts, confidences = _corpus(100)
    middleware = MemoryMiddleware(_data(texts, confidences))
    state = {"messages": [{"role": "user", "content": CONTEXT}]}
    middleware.before_model(state)
    taken = _seconds(lambda: middleware.before_model(state), 5 * rounds)
    row = Row("memory before a model call, 100 facts", 1e3 * taken, "ms", note="the design allows 20 ms")
    if vectorizer is None:
        return row
    theirs = _seconds(lambda: _refitted(vectorizer, texts), rounds)
    note = f"of scikit-learn's refit alone ({1e3 * theirs:.0f} ms); the design allows 20 ms in all"
    return Row(row.name, row.value, row.unit, taken / theirs, note=note)


def _allowed() -> list[Row]:
    """The limits of the design, at a hundred facts."""
    texts, confidences = _corpus(100)
    index: FactIndex[int] = FactIndex()
    index.add(enumerate(texts))
    middleware = MemoryMiddleware(_data(texts, confidences))
    state = {"messages": [{"role": "user", "content": CONTEXT}]}
    sides: tuple[tuple[str, float, Callable[[], object]], ...] = (
        (
            "standalone ranking, 100 facts",
            RANK_ALLOWED_S,
            lambda: scores(index.similarity_array(CONTEXT, range(100)), confidences),
        ),
        ("standalone hook, 100 facts", CALL_ALLOWED_S, lambda: middleware.before_model(state)),
    )
    rows: list[Row] = []
    for name, allowed, call in sides:
        call()
        taken = sorted(_processor_seconds(call) for _ in range(_CALLS))[_CALLS * 19 // 20]
        note = f"19 of 20 calls, processor time; of the {1e3 * allowed:.0f} ms that it allows"
        rows.append(Row.judged(Row(name, 1e3 * taken, "ms", taken / allowed, note=note), ALLOWED))
    return rows


def _counting() -> list[Row]:
    """The design calls exact counting faster than counting characters; it is not."""
    texts, _ = _corpus(100)
    exact = _seconds(lambda: [_count_tokens(text) for text in texts], _CALLS) / len(texts)
    guessed = _seconds(lambda: [len(text) // 4 for text in texts], _CALLS) / len(texts)
    note = f"of the {1e6 * COUNT_ALLOWED_S:.0f} µs that the design speaks of"
    counted = Row("count the tokens of a fact", 1e6 * exact, "µs", exact / COUNT_ALLOWED_S, note=note)
    slower = Row("exact counts beside a guess", exact / guessed, "times", note="as long as len(text) // 4")
    return [Row.judged(counted, ALLOWED), slower]


def _data(texts: Sequence[str], confidences: Sequence[float]) -> dict[str, Any]:
    return {
        "facts": [
            {"content": text, "confidence": sure} for text, sure in zip(texts, confidences, strict=True)
        ]
    }


def _within_budget(sets: int) -> Row:
    chance = random.Random(4)
    over = 0
    for _ in range(sets):
        facts = [
            {
                "content": "".join(chance.choices(_RANDOM_PIECES, k=chance.randint(0, 12))),
                "confidence": chance.choice((None, float("nan"), -1, 0.3, 0.9, "x")),
                "category": chance.choice((None, "correction", "preference")),
            }
            for _ in range(chance.randint(0, 12))
        ]
        data = {"user": {"workContext": {"summary": "忙 busy " * chance.randint(0, 60)}}, "facts": facts}
        limit = chance.randint(0, 150)
        over += (
            _count_tokens(format_memory_for_injection(data, limit, chance.choice((None, CONTEXT)))) > limit
        )
    shown = Row("injections over their budget", over, "sets", over / sets, note=f"of {sets:,} random sets")
    return Row.judged(shown, NONE)


def _in_and_out(index: FactIndex[int], key: int) -> None:
    index.add([(key, "用户刚刚开始用 pytest 写单元测试")])
    index.remove([key])


def _corpus(size: int) -> tuple[list[str], list[float]]:
    """This many facts, half Chinese, all different; the same every time."""
    chance = random.Random(size)
    texts = [
        f"{chance.choice(_SUBJECTS)} {chance.choice(_VERBS)} {' '.join(chance.sample(_THINGS, 3))} {number}"
        for number in range(size)
    ]
    return texts, [chance.randint(50, 100) / 100 for _ in range(size)]


def _vectorizer() -> Any:
    """A maker of scikit-learn's vectorizers with our analyzer, or None where it is not installed."""
    try:
        module = import_module("sklearn.feature_extraction.text")
    except ImportError:
        return None

    def analyzer(text: str) -> list[str]:
        return list(features(text).elements())

    return lambda: cast("Any", module).TfidfVectorizer(analyzer=analyzer)


def _refitted(vectorizer: Any, texts: Sequence[str]) -> Floats:
    matrix = vectorizer().fit_transform([CONTEXT, *texts])
    return np.asarray((matrix[1:] @ matrix[0].T).toarray(), dtype=np.float64).ravel()


def _seconds(call: Callable[[], object], rounds: int) -> float:
    """Seconds of one call, median."""
    taken: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return median(taken)


def _processor_seconds(call: Callable[[], object]) -> float:
    """What one call takes of the processor: an absolute limit would else judge what the machine does besides."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def _noop(_: str) -> None:
    return
