"""Run the findings of tests/findings with their loads, then say what was counted and what is still open.

Each folder of tests/findings holds the findings of one file, listed in its index.toml. Run by `make findings`; the exit code is
pytest's.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FINDINGS = ROOT / "tests" / "findings"


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of an index.toml."""

    file: str
    number: str
    title: str
    reason: str

    @property
    def name(self) -> str:
        """File and number, as the marks of tests name it."""
        return f"{self.file}-{self.number}"


@dataclass(frozen=True, slots=True)
class Marked:
    """A test that reproduces a finding."""

    name: str
    test: str
    still_open: bool
    load: bool


class Counts:
    """A plugin of pytest that keeps what each load counted."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.by_test: dict[str, dict[str, int]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Properties come with every phase of a test; the last one has them all."""
        for key, told in report.user_properties:
            if key == "counted":
                self.by_test[report.nodeid] = dict(told)


def listed(folder: Path = FINDINGS) -> Iterator[Finding]:
    """The findings of every index.toml, in its order."""
    for index in sorted(folder.glob("*/index.toml")):
        file = index.parent.name.replace("_", "-")
        for number, row in tomllib.loads(index.read_text(encoding="utf-8")).items():
            yield Finding(file, number, row.get("title", ""), row.get("reason", ""))


def marked(folder: Path = FINDINGS) -> Iterator[Marked]:
    """The tests with a mark, read from the source: pytest's own collection takes long."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                yield from _marks(f"{path.relative_to(folder)}::{node.name}", node.decorator_list)


def _marks(test: str, decorators: Sequence[ast.expr]) -> Iterator[Marked]:
    load = any(_called(decorator) == "load" for decorator in decorators)
    for decorator in decorators:
        match decorator:
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _called(decorator) in _FINDING_MARKS:
                yield Marked(name, test, _called(decorator) == "still_open", load)
            case _:
                pass


_FINDING_MARKS = ("finding", "still_open")


def _called(decorator: ast.expr) -> str:
    """The name of a decorator, however it was imported."""
    match decorator:
        case ast.Call(func=function):
            return _called(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def report(findings: Sequence[Finding], tests: Sequence[Marked], counts: Counts) -> Iterator[str]:
    """What `make findings` prints after pytest."""
    yield from _section("Counted", _told_counts(counts))
    opened = {test.name for test in tests if test.still_open}
    yield from _section("Still open", [_titled(row) for row in findings if row.name in opened])
    untested = [f"{_titled(row)}: {row.reason}" for row in findings if row.reason]
    yield from _section("Without a test", untested)
    yield from _section("Totals", _totals(findings, tests, opened))


def _section(heading: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"\n{heading}"
    yield from (f"  {line}" for line in lines or ["nothing"])


def _titled(row: Finding) -> str:
    return f"{row.name}  {row.title}"


def _told_counts(counts: Counts) -> list[str]:
    return [
        f"{test}: " + ", ".join(f"{number} {what}" for what, number in told.items())
        for test, told in sorted(counts.by_test.items())
    ]


def _totals(findings: Sequence[Finding], tests: Sequence[Marked], opened: set[str]) -> list[str]:
    """A row for each file; a finding that only loads reproduce is neither open nor mended: its count tells."""
    lines = [f"{'':16}{'findings':>10}{'with tests':>12}{'open':>6}{'mended':>8}{'loads':>7}"]
    for file in dict.fromkeys(row.file for row in findings):
        names = {row.name for row in findings if row.file == file}
        mine = [test for test in tests if test.name in names]
        with_tests = {test.name for test in mine}
        mended = {test.name for test in mine if not test.load} - opened
        loads = sum(test.load for test in mine)
        still = len(with_tests & opened)
        lines.append(f"{file:16}{len(names):>10}{len(with_tests):>12}{still:>6}{len(mended):>8}{loads:>7}")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run pytest, then print the rest."""
    counts = Counts()
    code = pytest.main([str(FINDINGS), "--loads", *arguments], plugins=[counts])
    print("\n".join(report(list(listed()), list(marked()), counts)), flush=True)
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
