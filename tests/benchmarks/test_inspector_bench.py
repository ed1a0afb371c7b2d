"""`pagefile bench inspector` reads real pages, judges, and leaves nothing behind."""

import json

import pytest

from benchmarks import inspector
from benchmarks.report import Limit


@pytest.mark.slow
def test_every_row_is_there(tmp_path, monkeypatch):
    """Three pages of a long conversation, each beside a short one, within one limit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inspector, "SHORT", 20)
    monkeypatch.setattr(inspector, "_QUICK", inspector._Effort(turns=60, rounds=1, calls=1))
    monkeypatch.setattr(inspector, "LIMIT", Limit("at most", 1e6))
    report = inspector.run(quick=True, progress=lambda step: None)
    assert ["timeline, the end", "timeline, the middle", "calls and their chart"] == [
        row.name for row in report.rows
    ]
    assert [True, True, None] == [row.ok for row in report.rows]
    assert all(row.value > 0 and row.ratio and row.ratio > 0 for row in report.rows)
    json.dumps(report.to_json())
    assert [] == list(tmp_path.iterdir())
