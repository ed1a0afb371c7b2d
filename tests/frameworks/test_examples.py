"""The examples of the frameworks that are installed here, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import NEEDED, is_installed

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = {file.removeprefix("test_").removesuffix(".py"): module for file, module in NEEDED.items()}
#: Those of the main lock are played by tests/docs.
HERE = [
    name
    for name, module in MODULES.items()
    if name not in {"langchain", "langgraph", "pydantic_ai", "claude"} and is_installed(module)
]


@pytest.mark.parametrize("name", HERE)
def test_the_example_runs_offline(name, tmp_path):
    """It prints an answer made with memory, none of which the framework saved, and the turn."""
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}_agent.py")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert 0 == ended.returncode, ended.stderr
    answer, saved, turns = ended.stdout.strip().splitlines()[-3:]
    assert "Not the hazelnut cake!" == answer
    assert saved.endswith(": False")
    assert "['Not the hazelnut cake!']" == turns
