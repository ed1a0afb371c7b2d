"""Looks up tests by their node ids in the source, without importing them: pytest's own collection takes long."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .scans import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed file of a source tree."""

    root: Path
    path: Path
    tree: ast.Module

    def definition(self, name: str) -> ast.stmt | None:
        """The last function or class of this name at the top of the file."""
        return _defined(self.tree.body, name)

    def found_class(self, name: str) -> "tuple[Module, ast.ClassDef] | None":
        """A class by its dotted name, defined here or imported from the same tree."""
        head, _, rest = name.partition(".")
        found = self.definition(head)
        if isinstance(found, ast.ClassDef):
            return None if rest else (self, found)
        for module, origin in self._imported(head):
            inner = f"{origin}.{rest}".strip(".")
            if inner and (found := module.found_class(inner)):
                return found
        return None

    def _imported(self, name: str) -> Iterator["tuple[Module, str]"]:
        """Where an imported name may come from: the module itself, or a name inside one."""
        for node in self.tree.body:
            if not isinstance(node, ast.ImportFrom):
                continue
            package = self._package(node)
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    if whole := _module(self.root, (*package, alias.name)):
                        yield whole, ""
                    if origin := _module(self.root, tuple(package)):
                        yield origin, alias.name

    def _package(self, node: ast.ImportFrom) -> list[str]:
        named = (node.module or "").split(".") if node.module else []
        if not node.level:
            return named
        here = self.path.relative_to(self.root).parts[: -node.level]
        return [*here, *named]


@cache
def parsed(root: Path, path: Path) -> Module:
    """A file, read once."""
    return Module(root, path, ast.parse(path.read_text(encoding="utf-8")))


def complaint(node_id: str, root: Path = ROOT) -> str | None:
    """What is wrong with a node id: not there, or never run; None when nothing is."""
    file, *names = node_id.split("::")
    path = root / file
    if not path.is_file() or not path.name.startswith("test_") or path.suffix != ".py":
        return f"{node_id}: no such file of tests"
    module = parsed(root, path)
    owners: list[ast.ClassDef] = []
    match names:
        case [name]:
            found = module.definition(name)
        case [owner, name] if owner.startswith("Test"):
            found = _method(module, owner, name, owners)
        case _:
            found = None
    if not isinstance(found, Function) or not found.name.startswith("test"):
        return f"{node_id}: no such test"
    if _never_runs(found) or any(map(_marked_off, [module.tree, *owners])):
        return f"{node_id}: is always skipped"
    return None


def _method(module: Module, owner: str, name: str, owners: list[ast.ClassDef]) -> ast.stmt | None:
    """A method of a class or of one of its bases, in their order; `owners` gets the classes on the way."""
    found = module.found_class(owner)
    if found is None:
        return None
    home, definition = found
    owners.append(definition)
    if method := _defined(definition.body, name):
        return method
    for base in definition.bases:
        if method := _method(home, ast.unparse(base), name, owners):
            return method
    owners.remove(definition)
    return None


@cache
def _module(root: Path, package: tuple[str, ...]) -> Module | None:
    for top in (root, root / "src"):
        folder = top.joinpath(*package)
        # A package that imports its names on first use lists them in its stub.
        for path in (folder.with_suffix(".py"), folder / "__init__.pyi", folder / "__init__.py"):
            if package and path.is_file():
                return parsed(top, path)
    return None


def _defined(body: list[ast.stmt], name: str) -> ast.stmt | None:
    named = [node for node in body if isinstance(node, Function | ast.ClassDef) and node.name == name]
    return named[-1] if named else None


def _never_runs(test: Function) -> bool:
    """Marked as skipped or expected to fail, or skipping itself before anything else."""
    if any(_skips(decorator) for decorator in test.decorator_list):
        return True
    return any(isinstance(node, ast.Expr) and _skips(node.value) for node in test.body)


def _marked_off(home: ast.Module | ast.ClassDef) -> bool:
    """A whole file or class that is never run."""
    if isinstance(home, ast.ClassDef) and any(map(_skips, home.decorator_list)):
        return True
    for node in home.body:
        match node:
            case ast.Expr(value=called) if _skips(called):
                return True
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                if any(map(_skips, marks)):
                    return True
            case ast.Assign(targets=[ast.Name(id="__test__")], value=ast.Constant(value=False)):
                return True
    return False


def _skips(expression: ast.expr) -> bool:
    """`pytest.skip(…)`, `pytest.mark.skip`, `pytest.mark.xfail`, or a `skipif` of something constant and true."""
    match expression:
        case ast.Call(func=ast.Attribute(attr="skipif" | "xfail"), args=[ast.Constant(value=condition), *_]):
            return bool(condition)
        case ast.Call(func=ast.Attribute(attr="xfail"), args=[_, *_]):
            return False
        case ast.Call(func=function):
            return _skips(function)
        case ast.Attribute(attr="skip" | "xfail", value=ast.Name(id="pytest") | ast.Attribute(attr="mark")):
            return True
        case _:
            return False
