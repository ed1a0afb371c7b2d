"""`--forks` runs every test once and says of each what became of it, also of one that takes its process with it."""

import os
import re
import subprocess
import sys

import pytest

from .scans import ROOT

#: Tests as somebody might write them.
FIRST = """
import os, pathlib, random, sys, warnings
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="session")
def opened():
    yield
    (HERE / f"torn-{os.getpid()}").touch()

def test_good(opened, tmp_path): (HERE / "luck-first").write_text(f"{os.getpid()} {random.random()}")

def test_bad():
    print("said aloud")
    assert 1 == 2

def test_dying():
    os._exit(7)

def test_after(): ...

def test_warning():
    warnings.warn("careful")

@pytest.mark.skip(reason="not today")
def test_skipped(): ...
"""
SECOND = """
import os, pathlib, random
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("it never opened")

def test_good(): (pathlib.Path(__file__).parent / "luck-second").write_text(f"{os.getpid()} {random.random()}")

@pytest.mark.parametrize("n", range(20))
def test_many(n): print("only", n)

def test_broken(broken): ...
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forks")
    (folder / "test_first.py").write_text(FIRST, encoding="utf-8")
    (folder / "test_second.py").write_text(SECOND, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return folder


def ran(folder, *arguments):
    settings = [
        "-c",
        str(folder / "pytest.ini"),
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.forks",
        "--forks",
        "2",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *arguments, str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def whole(folder):
    return ran(folder, "-rA")


def test_every_test_runs_and_is_counted(whole):
    """Passed, failed, skipped, not set up, warned: as without forks."""
    assert 1 == whole.returncode, whole.stdout
    assert "2 failed, 24 passed, 1 skipped, 1 warning, 1 error in " in whole.stdout
    named = re.findall(r"^(?:PASSED|FAILED|ERROR) \S*(test_\w+\.py::\S+)", whole.stdout, re.MULTILINE)
    assert len(named) == len(set(named)) == 27
    assert "it never opened" in whole.stdout


def test_what_a_test_printed_is_shown_with_it(whole):
    """And nothing of what others printed meanwhile."""
    failure = whole.stdout.partition("___ test_bad ___")[2].partition("\n___")[0]
    assert "assert 1 == 2" in failure
    assert "said aloud" in failure
    assert "only" not in failure


def test_a_test_that_ends_its_process_has_failed(whole):
    """The rest of its file runs all the same."""
    assert "The process that ran this test ended with 7." in whole.stdout
    assert re.search(r"^PASSED \S*test_first\.py::test_after$", whole.stdout, re.MULTILINE)


def test_processes_share_nothing(whole, folder):
    """Each file has one of its own, which rolls its own dice."""
    process, luck = (folder / "luck-first").read_text(encoding="utf-8").split()
    other_process, other_luck = (folder / "luck-second").read_text(encoding="utf-8").split()
    assert process != other_process
    assert luck != other_luck


def test_fixtures_are_torn_down_when_the_run_is_broken_off(folder):
    """`-x` ends it after the first failure."""
    done = ran(folder, "-x", "-k", "test_first")
    assert 1 == done.returncode, done.stdout
    assert "stopping after 1 failures" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert 1 == len(list(folder.glob("torn-*")))
