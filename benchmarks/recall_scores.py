"""How well a ranking answers a question: figures that are means over questions, the same for every ranker."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.recall_data import Asked

_SEED = 5
_RESAMPLES = 2000

#: Ranked turn ids and, in the order of their best turn, the sessions they are in.
Figure = Callable[[Asked, Sequence[str], Sequence[str]], float]


def share(gold: Collection[str], ranked: Sequence[str], first: int) -> float:
    """How much of what answers is among the first."""
    return len(set(gold) & set(ranked[:first])) / len(gold)


def first_rank(gold: Collection[str], ranked: Sequence[str]) -> float:
    """One divided by the place of the first that answers, 0 when none does."""
    return next((1 / place for place, one in enumerate(ranked, 1) if one in gold), 0.0)


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one ranker does than another, on the same questions, and between which bounds 95 % of resamples lie."""

    mean: float
    low: float
    high: float


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """The mean of what each question gains; bounds by drawing questions again, always in the same way."""
    gains = np.subtract(ours, theirs)
    drawn = np.random.default_rng(_SEED).integers(0, len(gains), (_RESAMPLES, len(gains)))
    low, high = np.percentile(gains[drawn].mean(axis=1), (2.5, 97.5))
    return Difference(float(gains.mean()), float(low), float(high))


def _turn_share(first: int) -> Figure:
    return lambda asked, turns, _: share(asked.turns, turns, first)


def _session_share(first: int) -> Figure:
    return lambda asked, _, sessions: share(asked.sessions, sessions, first)


def _any_turn(first: int) -> Figure:
    return lambda asked, turns, _: float(share(asked.turns, turns, first) > 0)


def _any_session(first: int) -> Figure:
    return lambda asked, _, sessions: float(share(asked.sessions, sessions, first) > 0)


def _all_sessions(first: int) -> Figure:
    return lambda asked, _, sessions: float(share(asked.sessions, sessions, first) == 1)


#: The figures of each set.
FIGURES: dict[str, dict[str, Figure]] = {
    "LoCoMo": {
        "turn share@5": _turn_share(5),
        "turn share@10": _turn_share(10),
        "turn any@10": _any_turn(10),
        "turn MRR": lambda asked, turns, _: first_rank(asked.turns, turns),
        "session share@5": _session_share(5),
        "session share@10": _session_share(10),
    },
    "LongMemEval-S": {"all@5": _all_sessions(5), "all@10": _all_sessions(10), "any@5": _any_session(5)},
    "LifeBench-zh": {"any@10": _any_turn(10), "share@20": _turn_share(20)},
    "REALTALK": {"turn share@5": _turn_share(5), "turn share@10": _turn_share(10)},
    "BEAM-100K": {"turn share@5": _turn_share(5), "turn share@10": _turn_share(10)},
    "RealMem": {"session share@5": _session_share(5), "session share@10": _session_share(10)},
}
#: What others published, on all of a set where these files are a part of it: to see where one stands, not to compare.
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "LoCoMo": {
        "turn share@10": {"text-embedding-3-small": 0.694},
        "session share@10": {"bge-large": 0.941},
    },
    "LongMemEval-S": {"all@5": {"best published hybrid": 0.852}, "all@10": {"best published hybrid": 0.948}},
    "REALTALK": {"turn share@10": {"best of 89 embedders": 0.630}},
}
#: The figure that is told apart by the kind of question.
MAIN = {
    "LoCoMo": "turn share@10",
    "LongMemEval-S": "all@5",
    "LifeBench-zh": "any@10",
    "REALTALK": "turn share@10",
    "BEAM-100K": "turn share@10",
    "RealMem": "session share@10",
}
#: How many turns are asked for: enough for ten sessions of them, where sessions are ranked or later turns are left out.
DEPTH = {
    "LoCoMo": 200,
    "LongMemEval-S": 200,
    "LifeBench-zh": 20,
    "REALTALK": 10,
    "BEAM-100K": 10,
    "RealMem": 800,
}
