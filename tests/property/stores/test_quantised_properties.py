"""The nearest vectors are those that multiplying everything finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile.stores import quantised
from pagefile.stores.quantised import Rows


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    batches=st.lists(st.integers(1, 400), min_size=1, max_size=3),
    dimension=st.sampled_from([3, 16, 64, 512]),
    spread=st.sampled_from([0.0, 0.1, 1.0]),
    limit=st.integers(1, 300),
    picked=st.booleans(),
)
def test_the_nearest_are_exact(seed, batches, dimension, spread, limit, picked):
    """Whatever their directions, in however many chunks, of all rows or of some: no nearer one is missing, and each similarity is right."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quantised, "_FEW", 8)
        patched.setattr(quantised, "_CHUNK", 256)
        random = np.random.default_rng(seed)
        centre = random.standard_normal(dimension)
        rows, parts = Rows(dimension), []
        for number in batches:
            parts.append(
                unit(centre * (1 - spread) + random.standard_normal((number, dimension))).astype("<f2")
            )
            rows.add(parts[-1])
        every = np.concatenate(parts).astype(np.float32)
        question = unit(centre + random.standard_normal(dimension))
        among = random.random(len(every)) < 0.7 if picked else None
        found, near = rows.view().nearest(question, limit, among)
        similarity = every @ question
        assert pytest.approx(similarity[found], abs=1e-6) == near
        allowed = np.flatnonzero(np.ones(len(every), bool) if among is None else among)
        assert set(found.tolist()) <= set(allowed.tolist())
        wanted = allowed[np.argsort(-similarity[allowed], kind="stable")][:limit]
        assert set(wanted.tolist()) <= set(found.tolist())


def test_a_view_stays_as_it_was():
    """Rows that are added later are not in it, though they may be in the same memory."""
    random = np.random.default_rng(1)
    rows = Rows(8)
    rows.add(unit(random.standard_normal((10, 8))).astype("<f2"))
    view = rows.view()
    rows.add(unit(random.standard_normal((5000, 8))).astype("<f2"))
    assert (10, 5010) == (len(view), len(rows.view()))
    assert 10 == len(view.nearest(unit(np.ones(8)), 100)[0])
