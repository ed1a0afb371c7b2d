"""What a newcomer runs is what CI runs first; what that leaves out is named, and run afterwards."""

import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod

import pytest

from tests.conftest import pytest_pycollect_makeitem
from tests.heavy import MODES, PARTS, heavy, told

from .scans import ROOT

CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: A part that nobody has and one that is everywhere; and tests as somebody might write them.
CONFTEST = """
pytest_plugins = ["tests.forks", "tests.heavy"]

def pytest_configure():
    from tests import heavy

    heavy.PARTS["moon"] = heavy.Part("the moon", lambda: False, "`make moon`")
    heavy.PARTS["air"] = heavy.Part("air", lambda: True, "breathe")
"""
TESTS = """
import pytest
from tests.heavy import heavy

def test_light(): ...

@heavy("moon")
@pytest.mark.parametrize("n", [1, 2])
def test_far(n): ...

@heavy("air")
def test_near(): ...
"""


def recipe(target: str) -> str:
    """The commands of a target."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Pytest on these tests: how it ended and what it said."""
    folder = tmp_path_factory.mktemp("making")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_some.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = heavy(part)\n", encoding="utf-8")
    # Plugins that these tests do not need take longer than the tests.
    settings = ["-c", str(folder / "pytest.ini"), "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", *settings, *arguments, str(folder)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_ci_begins_as_a_newcomer():
    """`make test`, which the README names, without `CI`, before anything is installed; then `make check`."""
    lines = [line for line in CI.splitlines() if line and not line.startswith("#")]
    steps = [line for line in lines if re.search(r"\bmake\b|apt-get install", line)]
    assert "\nmake test " in README
    assert steps[0].startswith("env -u CI make test ")
    assert "apt-get install" in steps[1]
    assert steps[2].startswith("make check ")
    assert 3 == len(steps)


def test_a_venv_that_is_there_is_not_used():
    """Where .venv is there already, a clean clone is made before anything else."""
    assert 0 < CI.index("if [ -e .venv ]") < CI.index("git clone") < CI.index("make test")


def test_no_test_runs_twice_and_none_is_forgotten():
    """`make test` leaves out what is heavy, and `make check` runs it and requires it."""
    assert "--heavy left-out $(ARGS)" in recipe("test")
    assert "--heavy required -m heavy $(ARGS)" in recipe("check")
    assert {"left-out", "required"} < set(MODES)
    for tool in ("ruff format --check", "ruff check", "pyright", "lint-imports"):
        assert tool in recipe("check")


def test_serving_needs_less_and_comes_in_any_order(tmp_path):
    """`make serve` sets up the small lock; where everything is set up it uses that; `make test` after it adds the rest, and does so once."""

    def would(*arguments: str) -> str:
        command = ["make", "--dry-run", f"VENV={tmp_path}", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    def mark(name: str) -> None:
        (tmp_path / name).touch()

    (tmp_path / "bin").mkdir()
    mark("bin/python")
    mark("bin/uv")
    assert "requirements-serve.lock &&" in would("serve")
    assert "requirements.lock &&" not in would("serve")
    mark(".ready-to-serve")
    assert "sync" not in would("serve")
    assert "requirements.lock &&" in would("test")
    # What a sync that was interrupted leaves is not taken for what serving needs.
    assert would("test").index(f"rm -f {tmp_path}/.ready-to-serve") < would("test").index("pip sync")
    (tmp_path / ".ready-to-serve").unlink()
    mark(".ready")
    assert "sync" not in would("serve") + would("test")


def test_what_is_left_out_is_named(run):
    """Each part, how many tests, how to get it where it is missing, and who runs them."""
    code, said = run("--heavy", "left-out", "--forks", "2")
    assert 0 == code, said
    assert "1 passed, 3 skipped" in said
    assert "left out" in said
    assert "1 test that needs air\n" in said
    assert "2 tests that need the moon, which is missing: `make moon`\n" in said
    assert "`make check` runs them" in said


def test_what_is_there_runs_where_nobody_says_anything(run):
    """Plain pytest."""
    code, said = run()
    assert 0 == code, said
    assert "2 passed, 2 skipped" in said
    assert "2 tests that need the moon, which is missing: `make moon`\n" in said
    assert "air" not in said


def test_what_is_required_and_missing_fails(run):
    """As in `make check`: nothing light runs, and nothing heavy is left out."""
    code, said = run("--heavy", "required", "-m", "heavy")
    assert 1 == code, said
    assert "1 passed, 1 deselected, 2 errors" in said
    assert "the moon is missing: `make moon`" in said


def test_a_part_nobody_knows_is_refused():
    """A slip of the pen would leave a test out for ever."""
    assert set(PARTS) == {"axe", "chromium", "claude", "helm", "milvus"}
    with pytest.raises(AssertionError, match="there is no part 'chromum'"):
        heavy("chromum")


def test_nothing_left_out_says_nothing():
    """No section without something in it."""
    assert [] == told([])


def test_a_class_that_runs_nothing_is_refused():
    """A contract whose fixtures are not all there is passed over by pytest; here it is an error."""

    class Contract(ABC):
        @abstractmethod
        def store(self): ...

    class Whole(Contract):
        def store(self): ...

    with pytest.raises(pytest.UsageError, match="TestOpen runs no test: it lacks store"):
        pytest_pycollect_makeitem("TestOpen", Contract)
    assert pytest_pycollect_makeitem("TestWhole", Whole) is None
    assert pytest_pycollect_makeitem("Contract", Contract) is None
