"""`pagefile bench archive` measures, judges, and says when it had nothing to replay."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks import archive
from benchmarks.archive_speed import megabyte
from benchmarks.bulk import KINDS, english_prose
from benchmarks.scenario import WAYS
from pagefile.errors import StoreUnavailableError
from pagefile.settings.sources import bench_data, load

ROWS = [
    "10 turns × 50,000 characters, placeholder",
    "10 turns × 50,000 characters, placeholder, one page loaded",
    *(f"archive 1 MB of {kind}" for kind in KINDS),
]
EXACT = "pages that load byte for byte"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with one run of our own, in which one result is bulky."""
    folder = tmp_path / "data"
    folder.mkdir()
    messages = [
        {"role": "user", "content": "What is known?"},
        {"role": "assistant", "content": '[{"name": "search", "args": {"q": "all"}}]'},
        {"role": "tool", "content": english_prose(12_000), "name": "search"},
        {"role": "assistant", "content": "This."},
        {"role": "user", "content": "Thank you!"},
        {"role": "assistant", "content": "You are welcome."},
    ]
    with gzip.open(folder / "traj-own.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"traj_id": "own", "messages": messages}) + "\n")
    return folder


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch):
    """One round is enough to see what is said."""
    monkeypatch.setattr(archive, "_QUICK", archive._Effort(runs=1, rounds=1))


@pytest.mark.slow
def test_a_quick_run_says_everything(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All rows with their limits, both tables, and nothing left behind; how fast it is, is for the machine to say."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    told: list[str] = []
    report = archive.run(data, quick=True, progress=told.append)
    rows = {row.name: row for row in report.report.rows}
    assert [*ROWS, EXACT] == list(rows)
    assert (0.75, True) == (rows[ROWS[0]].limit, rows[ROWS[0]].ok)
    assert rows[ROWS[1]].limit is None
    assert [3.0] * len(KINDS) == [rows[name].limit for name in ROWS[2:]]
    assert (1.0, True) == (rows[EXACT].ratio, rows[EXACT].ok)
    said = json.loads(json.dumps(report.to_json()))
    assert [way.name for way in WAYS] == [way["name"] for way in said["scenario"]["ways"]]
    assert {"own", "all"} == {line["source"] for line in said["trajectories"]}
    assert {4000, 10_000} == {line["threshold"] for line in said["trajectories"]}
    assert all(line["saved"] > 0 for line in said["trajectories"])
    assert said["skipped"] is None
    assert told
    assert [] == list(here.iterdir())


@pytest.mark.slow
def test_without_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The scenario is measured all the same."""
    monkeypatch.chdir(tmp_path)
    report = archive.run(quick=True)
    said = report.to_json()
    assert (None, archive.NO_DATA) == (said["trajectories"], said["skipped"])
    assert ROWS == [row.name for row in report.report.rows]
    assert report.ok == report.report.ok


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is measured where no database could be."""

    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(StoreUnavailableError, match="current directory cannot be written"):
        archive.run(quick=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_is_about_a_million_bytes(kind: str):
    """Whatever a character takes."""
    assert 950_000 < len(megabyte(kind, 1).encode()) < 1_050_000


def test_the_environment_may_name_the_data():
    """And it is no setting, so that no other command stumbles over it."""
    assert Path("there") == bench_data({"PAGEFILE_BENCH_DATA": "there"})
    assert bench_data({"PAGEFILE_BENCH_DATA": ""}) is None
    assert bench_data({}) is None
    assert load(environ={"PAGEFILE_BENCH_DATA": "there"}).settings == load(environ={}).settings
