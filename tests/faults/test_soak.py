"""The verdict of `make soak`, on made-up measurements; the load itself is not part of the default run."""

from collections import Counter
from dataclasses import replace

import pytest

from .soak import Sample, complaints

STEADY = Sample(0.0, 150_000, 30, 12, 25, 5_000)


def run(**drift):
    """An hour of samples; each drift is how much a number grows from one to the next."""
    return [
        replace(
            STEADY, at=float(at), **{name: getattr(STEADY, name) + int(by * at) for name, by in drift.items()}
        )
        for at in range(120)
    ]


def test_what_is_flat_is_called_flat():
    """A little up and down is nothing, nor is a database that grows with what people say."""
    assert complaints(run(database_kb=50, rss_kb=30), Counter()) == []


@pytest.mark.parametrize(
    ("drift", "word"),
    [
        ({"rss_kb": 400}, "memory"),
        ({"files": 0.2}, "files"),
        ({"threads": 0.2}, "threads"),
        ({"tasks": 0.3}, "tasks"),
    ],
)
def test_what_grows_is_named(drift, word):
    """Each on its own."""
    (found,) = complaints(run(**drift), Counter())
    assert word in found


def test_warming_up_is_no_leak():
    """Only the second half counts."""
    warming = [replace(STEADY, rss_kb=50_000 + min(at, 40) * 3_000) for at in range(120)]
    assert complaints(warming, Counter()) == []


def test_a_failure_is_no_verdict():
    """A service that is flat because it refuses is not well."""
    assert complaints(run(), Counter({"record 503": 2})) == ["2 answers were record 503"]
