"""What the tests of the source look for in source text: pure functions from source to findings."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "pagefile"

_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
_BROAD = {"Exception", "BaseException"}
_SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT\s+INTO|CREATE\s+\w+|UPDATE\b.*\bSET|DELETE\s+FROM)\b", re.DOTALL
)
_HTML = re.compile(r"<(!doctype|html|head|body|div|table)\b", re.IGNORECASE)
_MAX_FOREIGN_LINES = 3
#: The tags of a window.
_TAGS = re.compile(r"</?(memory|safety|summary|corrections|facts|episodes|loaded|chunks)>")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found: where, inside which function, and what."""

    path: str
    line: int
    function: str
    what: str

    @property
    def place(self) -> str:
        """The stable name that an allow-list uses: lines move, functions seldom do."""
        return f"{self.path}::{self.function}"


@dataclass(frozen=True, slots=True)
class Source:
    """One module, parsed."""

    path: str
    tree: ast.Module
    #: Every node with the qualified name of the function it is in, "" at module level.
    nodes: tuple[tuple[ast.AST, str], ...]

    @classmethod
    def of(cls, text: str, path: str = "sample.py") -> "Source":
        tree = ast.parse(text)
        return cls(path, tree, tuple(_walk(tree, "", inside=False)))

    def finding(self, node: ast.AST, function: str, what: str) -> Finding:
        return Finding(self.path, getattr(node, "lineno", 0), function, what)


@cache
def sources() -> list[Source]:
    """Every module of the package, parsed once for all tests."""
    return [
        Source.of(file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix())
        for file in sorted(SOURCE.rglob("*.py"))
    ]


def environment_reads(source: Source) -> list[Finding]:
    """Where a module touches the process environment."""
    found: list[Finding] = []
    for node, function in source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in _ENVIRONMENT:
                found.append(source.finding(node, function, f"os.{name}"))
            case ast.ImportFrom(module="os", names=names):
                found += [
                    source.finding(node, function, f"os.{alias.name}")
                    for alias in names
                    if alias.name in _ENVIRONMENT
                ]
    return found


def broad_excepts(source: Source) -> list[Finding]:
    """Handlers that catch everything and may swallow it; one that ends by raising again swallows nothing."""
    found: list[Finding] = []
    for node, function in source.nodes:
        match node:
            case ast.ExceptHandler(type=caught, body=[*_, last]) if not _raises(last):
                names = {"everything"} if caught is None else _names(caught) & _BROAD
                found += [source.finding(node, function, f"except {name}") for name in sorted(names)]
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
                names = {name for argument in args for name in _names(argument)} & _BROAD
                found += [source.finding(node, function, f"suppress({name})") for name in sorted(names)]
    return found


def hidden_imports(source: Source) -> list[Finding]:
    """Imports inside functions."""
    found: list[Finding] = []
    for node, function in source.nodes:
        if not function:
            continue
        match node:
            case ast.Import(names=names):
                found += [source.finding(node, function, alias.name) for alias in names]
            case ast.ImportFrom(module=module, level=level):
                found.append(source.finding(node, function, "." * level + (module or "")))
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module")
            ):
                found.append(source.finding(node, function, "import_module"))
    return found


def foreign_strings(source: Source) -> list[Finding]:
    """SQL or HTML over three lines that is in a Python string; docstrings may quote it."""
    prose = _prose(source)
    found: list[Finding] = []
    for node, function in source.nodes:
        text = _text(node)
        if text is None or id(node) in prose or _lines(node, text) <= _MAX_FOREIGN_LINES:
            continue
        if _SQL.search(text):
            found.append(source.finding(node, function, "SQL"))
        elif _HTML.search(text):
            found.append(source.finding(node, function, "HTML"))
    return found


def parsed_renderings(source: Source) -> list[Finding]:
    """Where a module knows how a window is rendered: our own tags in a string, or messages cut where the prefix ends."""
    prose = _prose(source)
    found: list[Finding] = []
    for node, function in source.nodes:
        text = None if id(node) in prose else _text(node)
        if isinstance(node, ast.Constant) and text is not None and _TAGS.search(text):
            found.append(source.finding(node, function, "tags"))
        elif isinstance(node, ast.Slice) and any(_is_prefix(inner) for inner in ast.walk(node)):
            found.append(source.finding(node, function, "prefix_messages"))
    return found


def _is_prefix(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and "prefix_messages" in _names(node)


def _prose(source: Source) -> set[int]:
    """Strings that nothing reads: docstrings."""
    return {
        id(node.value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Expr) and _text(node.value) is not None
    }


def _walk(node: ast.AST, name: str, *, inside: bool) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, name if inside else ""
            yield from _walk(child, f"{name}.{child.name}".lstrip("."), inside=True)
        elif isinstance(child, ast.ClassDef):
            yield child, name if inside else ""
            yield from _walk(child, f"{name}.{child.name}".lstrip("."), inside=inside)
        else:
            yield child, name if inside else ""
            yield from _walk(child, name, inside=inside)


def _raises(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise)


def _names(expression: ast.expr) -> set[str]:
    """The last part of each class named in an `except` clause."""
    match expression:
        case ast.Tuple(elts=elements):
            return {name for element in elements for name in _names(element)}
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case _:
            return set()


def _text(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or "…" for value in values)
        case _:
            return None


def _lines(node: ast.AST, text: str) -> int:
    """Lines of the text, or of the source where many short strings stand for one."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return max(text.strip().count("\n") + 1, last - first + 1)


def grouped(project: dict, name: str) -> list[str]:
    """The requirements of a dependency group, those of the groups that it includes among them."""
    return [
        text
        for one in project["dependency-groups"][name]
        for text in (grouped(project, one["include-group"]) if isinstance(one, dict) else [one])
    ]
