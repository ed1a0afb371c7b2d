"""A base install has no MCP: everything else works, and the command says how to get it."""

import subprocess
import sys

import pytest

WITHOUT = """
import importlib.util as util, sys
found = util.find_spec
util.find_spec = lambda name, *more: None if name == "mcp" else found(name, *more)
from pagefile.cli.app import run
sys.argv = ["pagefile", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["--help"], 0, "mcp"),
        (["mcp", "--help"], 0, "wrap"),
        (["mcp", "install", "--help"], 0, "cursor"),
        (["mcp"], 1, "pagefile[mcp]"),
        (["mcp", "wrap", "--", "server"], 1, "pagefile[mcp]"),
    ],
)
def test_only_what_needs_the_extra_asks_for_it(asked, code, said, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *asked], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (code, True) == (done.returncode, said in done.stdout + done.stderr), done.stderr
