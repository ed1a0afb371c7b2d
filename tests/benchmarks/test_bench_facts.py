"""`pagefile bench facts` measures what it says, and says when it cannot compare."""

import pytest

from benchmarks import facts


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(facts, "_QUICK", facts._Effort((40,), 15, 1))


def test_both_rankings_choose_alike_and_no_budget_is_broken():
    """The limits are kept on forty facts as on a hundred thousand."""
    report = facts.run(quick=True)
    rows = {row.name: row for row in report.report.rows}
    assert (report.ok, report.instead) == (True, None)
    assert rows["facts chosen alike"].ratio == 1.0
    assert rows["injections over their budget"].value == 0
    assert report.to_json()["skipped"] is None


def test_what_document_004_allows_is_judged():
    """10 ms for a hundred facts, 20 ms for the hook; exact counts are slower than a guess, and it is told."""
    rows = {row.name: row for row in facts.run(quick=True).report.rows}
    for name, allowed, unit in (
        ("standalone ranking, 100 facts", 10, "ms"),
        ("standalone hook, 100 facts", 20, "ms"),
        ("count the tokens of a fact", 100, "µs"),
    ):
        row = rows[name]
        assert (1.0, "at most", unit) == (row.limit, row.bound, row.unit)
        assert row.value / allowed == pytest.approx(row.ratio)
        assert row.ok
    assert rows["exact counts beside a guess"].value > 1


def test_without_scikit_learn_the_rest_is_measured(monkeypatch):
    """And the report says what is missing and how to get it."""

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(facts, "import_module", missing)
    report = facts.run(quick=True)
    assert "pip install" in (report.instead or "")
    assert {"rank 40 facts", "injections over their budget"} <= {row.name for row in report.report.rows}
