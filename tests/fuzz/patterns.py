"""Every regular expression of the package, found by looking: nobody has to list a new one."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

from tests.architecture.scans import sources

#: Not read by anybody but us: benchmarks, and what only tests use.
_ELSEWHERE = ("bench/", "testing/", "inspector/demo/")
_INLINE = {"match", "search", "sub", "split", "finditer", "findall", "fullmatch", "subn"}


def patterns() -> dict[str, re.Pattern[str]]:
    """By where it stands, each once."""
    found: dict[str, re.Pattern[str]] = {}
    for module in _compiling():
        for name, value in vars(importlib.import_module(f"pagefile.{module}")).items():
            for number, pattern in enumerate(_inside(value, 0)):
                if isinstance(pattern.pattern, str) and pattern not in found.values():
                    found[f"{module}:{name}:{number}"] = pattern
    return found | _inline()


def _compiling() -> Iterator[str]:
    """The modules that compile one: importing all the others would take longer than the test."""
    for source in sources():
        text = ast.dump(source.tree)
        if "attr='compile'" in text and not source.path.startswith(_ELSEWHERE):
            yield source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _inside(value: object, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 4 or isinstance(value, type | str | bytes):
        return
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _inside(inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _inside(inner, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _inside(getattr(value, field.name, None), depth + 1)


def _inline() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for source in sources():
        for node, function in source.nodes:
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=name),
                    args=[ast.Constant(value=str(text)), *_],
                ) if name in _INLINE and not source.path.startswith(_ELSEWHERE):
                    found[f"{source.path}:{function}:{name}"] = re.compile(text)
    return found


#: What nearly matches many things.
_COMMON = (
    " ",
    "\n",
    "a",
    "1",
    "中",
    ".",
    "<",
    "[",
    "(",
    '"',
    "#",
    "|",
    "-",
    "`",
    "我",
    "https://",
    "\\",
    "*",
)


def attacks(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Texts that make a careless expression try again and again: runs of what it looks for, without the end."""
    atoms = list(dict.fromkeys([*_COMMON, *_literals(parser.parse(pattern.pattern, pattern.flags))]))[:30]
    for atom in atoms:
        run = atom * (size // len(atom))
        yield run
        yield f"{run}\0"
    own = atoms[len(_COMMON) :][:4] or atoms[:3]
    for left in own:
        for right in (*own, " ", "a", "1", "中"):
            yield (left + right) * (size // (len(left) + len(right)))


def _literals(tree: object) -> Iterator[str]:
    """Short runs of characters that an expression is made of."""
    run = ""
    for op, value in tree:  # type: ignore[attr-defined]
        if op is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run[:12]
            run = ""
        if op is sre.IN:
            kinds = [chr(each) for kind, each in value if kind is sre.LITERAL]
            yield from kinds[:3]
        elif isinstance(value, tuple):
            for part in value:
                if isinstance(part, parser.SubPattern):
                    yield from _literals(part)
                elif isinstance(part, list):
                    for inner in part:
                        if isinstance(inner, parser.SubPattern):
                            yield from _literals(inner)
        elif isinstance(value, parser.SubPattern):
            yield from _literals(value)
    if run:
        yield run[:12]
