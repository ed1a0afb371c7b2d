"""Rows, limits and what a report says of them."""

import json

import pytest

from benchmarks.report import Limit, Report, Row, machine_facts


@pytest.mark.parametrize(
    ("limit", "ratio", "kept"),
    [
        (Limit("at most", 1.3), 1.0, True),
        (Limit("at most", 1.3), 1.3, True),
        (Limit("at most", 1.3), 1.31, False),
        (Limit("at least", 5.0), 9.0, True),
        (Limit("at least", 5.0), 5.0, True),
        (Limit("at least", 5.0), 4.9, False),
    ],
)
def test_a_row_is_ok_within_its_limit(limit: Limit, ratio: float, kept: bool):
    """The limit itself is kept; beyond it, on its own side, it is not."""
    row = Row.judged(Row("a thing", 3.0, "ms", ratio, note="beside another"), limit)
    assert Row("a thing", 3.0, "ms", ratio, limit.ratio, limit.bound, kept, "beside another") == row


def test_a_limit_that_says_nothing_here_is_neither_kept_nor_missed():
    """Where its condition does not hold, the row says why and still shows the ratio."""
    shown = Row("64 writers", 700.0, "turns/s", 2.0, note="350 turns/s with one")
    row = Row.judged(shown, Limit("at least", 5.0), unless="an fsync takes 0.3 ms")
    assert (None, 2.0, 5.0) == (row.ok, row.ratio, row.limit)
    assert "not applicable: an fsync takes 0.3 ms; 350 turns/s with one" == row.note


def test_a_row_without_a_limit_is_neither_kept_nor_missed():
    """What is only told cannot fail a run."""
    told = Row("import", 100.0, "ms", 5.0)
    assert told.ok is None
    assert Report([told], {}, quick=True, seconds=1.0).ok


def test_one_missed_limit_is_enough():
    """A report is ok only if all its rows are."""
    kept = Row.judged(Row("a", 1.0, "ms", 1.0), Limit("at most", 2.0))
    missed = Row.judged(Row("b", 9.0, "ms", 9.0), Limit("at most", 2.0))
    assert not Report([kept, missed], {}, quick=True, seconds=1.0).ok


def test_a_report_is_json():
    """Every field of every row is there, as plain JSON."""
    row = Row.judged(Row("a", 1.0, "ms", 1.0, note="beside b"), Limit("at most", 2.0))
    report = Report([row], machine_facts("o200k_base"), quick=False, seconds=12.34)
    said = json.loads(json.dumps(report.to_json()))
    expected = {
        "name": "a",
        "value": 1.0,
        "unit": "ms",
        "ratio": 1.0,
        "limit": 2.0,
        "bound": "at most",
        "ok": True,
        "note": "beside b",
    }
    assert [expected] == said["rows"]
    assert (True, False, 12.3) == (said["ok"], said["quick"], said["seconds"])
    facts = {"pagefile", "python", "sqlite", "system", "cores", "tokenizer"}
    assert facts == said["machine"].keys()
