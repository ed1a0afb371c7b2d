"""Scores of any scale are brought to 0–1 (C3-2, extra test 12)."""

import math

import pytest

from pagefile.text.scores import UNSCORED, normalised, number


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], []),
        ([0.49, 0.5, 0.92], [0.49, 0.5, 0.92]),
        ([1 / 61, 1 / 62], [1.0, 61 / 62]),
        ([0.4 / 61 + 0.6 / 70], [1.0]),
        ([12.5, 6.25, 0.5], [1.0, 0.5, 0.04]),
        ([-8.0, -2.0], [1.0, 0.25]),
        ([87, 43.5], [1.0, 0.5]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([-0.2, 0.7], [0.0, 0.7]),
        (["0.7", None, "much", math.nan, math.inf, True], [0.7, *[UNSCORED] * 5]),
        ([10.0, None], [1.0, UNSCORED]),
    ],
)
def test_each_scale_is_told_by_its_size(scores, expected):
    """Similarity stays, fused ranks and BM25 are measured against their best, FTS5's minus sign is read right."""
    assert pytest.approx(expected) == normalised(scores)


def test_whoever_knows_the_scale_says_so():
    """Similarity that is low all over stays low; a set out of 100 that nobody filled is measured against its best."""
    assert [0.01] == normalised([0.01], "unit")
    assert [1.0, 0.5] == normalised([0.8, 0.4], "best")
    assert [0.0, 0.0] == normalised([0.0, 0.0], "best")


@pytest.mark.parametrize("value", [None, True, "x", [], {}, math.nan, -math.inf, "nan", 10**400])
def test_what_is_no_number(value):
    """Nothing of it raises."""
    assert number(value) is None
