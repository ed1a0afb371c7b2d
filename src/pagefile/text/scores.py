"""Normalises relevance scores of any scale to 0–1.

Cosine similarity is already in range. Reciprocal-rank fusion gives at most 1/61 per list, BM25 gives any
number, and SQLite's FTS5 negates it: such sets are recognised by their magnitude and scaled by their own
maximum.
"""

import math
from collections.abc import Sequence
from typing import Literal

Scale = Literal["auto", "unit", "best"]

#: A set whose maximum is no higher holds fused ranks: three lists give at most 3/61.
FUSED_MOST = 3 / 61 + 1e-9
#: The score of a hit without one: a search engine found it, but did not say how well it fits.
UNSCORED = 0.5


def normalised(scores: Sequence[object], scale: Scale = "auto") -> list[float]:
    """One score in [0, 1] for each, preserving their order; anything that is not a number gets `UNSCORED`.

    "unit" takes them as they are, "best" scales them by the best of the set, "auto" decides. Idempotent.
    """
    numbers = [number(score) for score in scores]
    known = [score for score in numbers if score is not None]
    flipped = bool(known) and max(known) <= 0 and min(known) < 0
    if flipped:
        # FTS5 and negated distances: smaller is better.
        numbers = [None if score is None else -score for score in numbers]
        known = [-score for score in known]
    best = max(known, default=0.0)
    scaled = scale == "best" or (scale == "auto" and best > 0 and (best > 1 or best <= FUSED_MOST))
    unit = best if scaled else 1.0
    # With "best", a set without a positive score has none above 0.
    shares = [None if score is None else score / unit if unit > 0 else 0.0 for score in numbers]
    return [UNSCORED if share is None else min(1.0, max(0.0, share)) for share in shares]


def number(value: object) -> float | None:
    """A finite number, including one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
