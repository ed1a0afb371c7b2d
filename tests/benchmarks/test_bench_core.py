"""`pagefile bench core` runs, says everything it promises, and leaves nothing behind."""

import json
import platform
from pathlib import Path

import pytest

from benchmarks import core, windows, writes
from benchmarks.report import Limit
from pagefile.errors import StoreUnavailableError

ROWS = [
    "import pagefile, fresh interpreter",
    "context() of a long conversation",
    "context() with short turns",
    "window from stored counts",
    "the same, beside the turns in the window only",
    "recall(), warm",
    "recall(), first time",
    "record(), synchronous=FULL",
    "record(), synchronous=NORMAL",
    "fsync of a page on this disk",
    "64 writers",
    "64 writers, each commit 1 ms longer",
    "peak memory, 100 turns",
    "peak memory, 1,000 turns",
]
LIMITS = {
    "context() of a long conversation": ("at most", 1.3),
    "window from stored counts": ("at least", 20.0),
    "record(), synchronous=FULL": ("at most", 2.0),
    "record(), synchronous=NORMAL": ("at most", 2.0),
    "64 writers": ("at least", 5.0),
    "64 writers, each commit 1 ms longer": ("at least", 5.0),
    "peak memory, 1,000 turns": ("at most", 1.5),
}
#: Enough to see what is said.
LITTLE = core._Effort(
    imports=1,
    windows=windows.Effort(turns=200, rounds=2, calls=1),
    writing=writes.Effort(rounds=5, calls=2, group_rounds=1, calls_each=1),
    sizes=(100, 1_000),
    everything=None,
)


@pytest.mark.slow
def test_a_quick_run_says_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every row is there with its limit, and judged by it; whether a limit is kept is for the machine to say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(core, "_QUICK", LITTLE)
    told: list[str] = []
    report = core.run(quick=True, progress=told.append)
    assert ROWS == [row.name for row in report.rows]
    assert LIMITS == {row.name: (row.bound, row.limit) for row in report.rows if row.limit is not None}
    for row in report.rows:
        assert row.value > 0
        if row.limit is not None and row.bound is not None and row.ratio is not None:
            kept = Limit(row.bound, row.limit).keeps(row.ratio)
            assert row.ok == (None if row.note.startswith("not applicable") else kept)
    said = json.dumps(report.to_json())
    assert ROWS == [row["name"] for row in json.loads(said)["rows"]]
    assert str(tmp_path) not in said
    assert platform.node() not in said
    assert told
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is measured where no database could be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.mkdtemp", _refuse)
    with pytest.raises(StoreUnavailableError, match="current directory cannot be written"):
        core.run(quick=True)


def _refuse(*_: object) -> str:
    raise PermissionError(13, "Permission denied")
