"""What somebody gets who installs Pagefile: all of the package, nothing else, and it works from there.

`make wheel` also installs it with its dependencies into an empty environment, tries extras alone, and prints sizes and times.
"""

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .scans import ROOT, SOURCE

_FOUND = importlib.util.spec_from_file_location("wheel_script", ROOT / "scripts" / "wheel.py")
assert _FOUND is not None
wheel_script = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(wheel_script)  # type: ignore[union-attr]

#: Files that are no Python and without which something fails at once, or only for some.
MUST = [
    "py.typed",
    "models/prompts/facts.zh.md",
    "models/prompts/summarize.en.md",
    "inspector/words.toml",
    "standalone/tools.toml",
    "stores/sql/plain/log.sql",
    "stores/sql/statements/log.sql",
    "stores/sqlite/migrations/0001_turn_log.sql",
    "stores/redis/put.lua",
    "service/templates/examples.json",
    "wire/examples.json",
]
#: Run from the unpacked wheel, with nothing of the working tree in sight.
STORY = """
import sys
sys.path.insert(0, sys.argv[1])
import anyio, pagefile
assert pagefile.__file__.startswith(sys.argv[1]), pagefile.__file__
from pagefile.models.prompts import prompt
assert prompt("facts", "zh") and prompt("summarize", "en")
from pagefile.inspector.page_request import words
async def story():
    async with pagefile.Memory.open("sqlite:///" + sys.argv[2]) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("我住在上海。", "好的。")
        print(len((await chat.context("我住在哪里？")).messages))
anyio.run(story)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the source distribution, with nothing fetched for it."""
    return wheel_script.build(tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_the_package_and_nothing_else(built):
    """Every file of the source, the metadata and the licence; no tests, no caches, no scripts of ours."""
    found = wheel_script.names(built[0])
    inside = {name.removeprefix("pagefile/") for name in found if name.startswith("pagefile/")}
    wanted = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert set(MUST) <= inside
    # Somebody may be writing while this runs: what is missing counts, and what nobody has tracked does not.
    tracked = subprocess.run(
        ["git", "ls-files", "src/pagefile"], capture_output=True, text=True, check=False, cwd=ROOT
    ).stdout.split()
    assert [] == [
        name
        for name in tracked
        if (ROOT / name).exists() and name.removeprefix("src/pagefile/") not in inside
    ]
    assert inside <= wanted
    rest = {name.partition("/")[0] for name in found if not name.startswith("pagefile/")}
    assert 1 == len(rest)
    assert re.fullmatch(r"pagefile-[\w.]+\.dist-info", rest.pop())
    assert {"LICENSE", "NOTICE"} <= {name.rpartition("licenses/")[2] for name in found}


def test_neither_holds_what_is_only_ours(built):
    """Caches, databases, environments, downloads."""
    for archive in built:
        odd = re.compile(r"__pycache__|\.pyc$|\.db$|\.venv|\.hypothesis|\.git/|\.partial$|node_modules|\.so$")
        assert [] == [name for name in wheel_script.names(archive) if odd.search(name)]
        # The encoder has 32 MB.
        assert archive.stat().st_size < 37_000_000


def test_the_source_can_be_built_again(built):
    """It brings what building needs, the licence, and what it says on its first page."""
    names = {name.partition("/")[2] for name in wheel_script.names(built[1])}
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "src/pagefile/py.typed"} <= names


def test_the_metadata_names_the_extras_and_the_pythons(built):
    """As pyproject.toml has them."""
    with zipfile.ZipFile(built[0]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        text = wheel.read(name).decode()
    for extra in wheel_script.EXTRAS:
        assert f"Provides-Extra: {extra}\n" in text
    for version in ("3.11", "3.12", "3.13"):
        assert f"Classifier: Programming Language :: Python :: {version}\n" in text
    assert "Requires-Python: >=3.11\n" in text


def test_it_works_from_the_wheel(built, tmp_path):
    """Prompts, words and migrations are found where the wheel has them."""
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    arguments = [sys.executable, "-I", "-c", STORY, str(tmp_path / "site"), str(tmp_path / "x.db")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert int(done.stdout) >= 1


def test_every_supported_python_is_checked():
    """By the workflow, each with all that a change has to pass."""
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert 'python: ["3.11", "3.12", "3.13"]' in text
    assert "run: bash .ci/run\n        env:\n          PYTHON: python${{ matrix.python }}\n" in text
