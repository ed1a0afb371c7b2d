"""Habits of the tests."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_module_imports_another():
    """What two share is in a module of its own: a test module can be changed or removed without looking at others."""
    found = {
        f"{path.relative_to(TESTS)} imports {node.module}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1].startswith("test_")
    }
    assert set() == found
