"""Habits of the tests."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported(node: ast.AST) -> list[str]:
    """The modules and names that a statement imports."""
    match node:
        case ast.Import(names):
            return [one.name for one in names]
        case ast.ImportFrom(module, names):
            return [module or "", *(one.name for one in names)]
        case _:
            return []


def test_no_test_module_imports_another():
    """What two share is in a module of its own: a test module can be changed or removed without looking at others."""
    found = {
        f"{path.relative_to(TESTS)} imports {name}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported(node)
        if name.rpartition(".")[2].startswith("test_")
    }
    assert set() == found
