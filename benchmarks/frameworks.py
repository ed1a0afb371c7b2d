"""`bench frameworks`: every connection to an agent framework, its vendor's suite and our contract, in the environments of `locks/`."""

import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagefile.errors import SettingsError
from pagefile.records import JsonObject, JsonValue

ROOT = Path(__file__).parents[1]
NEWEST = (".venv-frameworks", ".venv-crewai")
LOWEST = (".venv-frameworks-lowest", ".venv-crewai-lowest")
_TIMEOUT_S = 900
#: What says of a test that it does not apply.
_APART = "not applicable: "
_VERSIONS = "import sys,importlib.metadata as m;[print(n,m.version(n)) for n in sys.argv[1:] if [*m.distributions(name=n)]]"


@dataclass(frozen=True, slots=True)
class Framework:
    name: str
    package: str
    #: The file of its contract in tests/frameworks; None if only its vendor's suite applies.
    contract: str | None
    #: Whose cases the vendor's suite is, and its file in tests/vendors with the pattern of its tests.
    suites: tuple[tuple[str, str, str], ...] = ()


FRAMEWORKS = (
    Framework(
        "LangChain",
        "langchain",
        "test_langchain",
        (
            ("langchain-tests, tools", "test_langchain_standard", r"Test(?!Retriever).*::"),
            ("retriever tests", "test_langchain_standard", r"TestRetriever::"),
            ("documented histories", "test_langchain_standard", r"^test_"),
        ),
    ),
    Framework(
        "LangGraph",
        "langgraph",
        "test_langgraph",
        (
            ("checkpoint-conformance", "test_langgraph_checkpointer", ""),
            ("documented store", "test_langgraph_store", r"pagefile|\[(memory|sqlite)\]$"),
        ),
    ),
    Framework("PydanticAI", "pydantic-ai-slim", "test_pydantic_ai"),
    Framework(
        "Claude Agent SDK",
        "claude-agent-sdk",
        "test_claude",
        (("its testing module", "test_claude_session_store", ""),),
    ),
    Framework(
        "OpenAI Agents SDK",
        "openai-agents",
        "test_openai_agents",
        (("documented sessions", "test_openai_agents_session", ""),),
    ),
    Framework(
        "Google ADK",
        "google-adk",
        "test_adk",
        (("documented services", "test_adk_services", r"pagefile|test_entries"),),
    ),
    Framework("Agent Framework", "agent-framework-core", "test_agent_framework"),
    Framework("LlamaIndex", "llama-index-core", "test_llama_index"),
    Framework("Agno", "agno", "test_agno"),
    Framework("smolagents", "smolagents", "test_smolagents"),
    Framework("Strands Agents", "strands-agents", "test_strands"),
    Framework("CrewAI", "crewai", "test_crewai"),
)


@dataclass(frozen=True, slots=True)
class Count:
    passed: int = 0
    failed: int = 0
    #: What does not apply, with the reasons.
    apart: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def applicable(self) -> int:
        return self.passed + self.failed

    def __str__(self) -> str:
        return f"{self.passed}/{self.applicable}" if self.applicable else "-"


@dataclass(frozen=True, slots=True)
class Row:
    framework: str
    version: str
    suites: tuple[tuple[str, Count], ...]
    contract: Count
    #: Runs beyond the contract: several agents, pictures, faults, runs at once.
    runs: Count = Count()


@dataclass(frozen=True, slots=True)
class FrameworksReport:
    rows: tuple[Row, ...]
    #: Environments that are not there.
    missing: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        counts = [
            count for row in self.rows for count in (row.contract, row.runs, *(one for _, one in row.suites))
        ]
        return bool(self.rows) and not any(count.failed for count in counts)

    def to_json(self) -> JsonObject:
        rows: list[JsonValue] = [
            {
                "framework": row.framework,
                "version": row.version,
                "suites": {name: str(count) for name, count in row.suites},
                "contract": str(row.contract),
                "runs": str(row.runs),
                "not_applicable": dict(row.contract.apart),
            }
            for row in self.rows
        ]
        return {"frameworks": rows, "missing": list(self.missing)}


@dataclass(frozen=True, slots=True)
class _Test:
    module: str
    name: str
    #: None: it passed; else why it failed, or that it does not apply.
    told: str | None = None


def run(*, lowest: bool, progress: Callable[[str], None], only: Sequence[str] = ()) -> FrameworksReport:
    """Play the suites in each environment that is there, of all frameworks or `only` of these packages."""
    unknown = {*only} - {one.package for one in FRAMEWORKS}
    if unknown:
        known = ", ".join(one.package for one in FRAMEWORKS)
        raise SettingsError(f"{', '.join(sorted(unknown))} is no framework here: choose among {known}.")
    names = LOWEST if lowest else NEWEST
    there = [name for name in names if (ROOT / name / "bin" / "python").exists()]
    if not there:
        raise SettingsError(f"None of {', '.join(names)} is there: `make frameworks` makes them from locks/.")
    found: dict[str, Row] = {}
    for name in there:
        python = str(ROOT / name / "bin" / "python")
        versions = _versions(python)
        chosen = [one for one in FRAMEWORKS if one.package in versions and one.package in (only or versions)]
        if not chosen:
            continue
        progress(f"playing the suites in {name}")
        tests = _played(python, _files(chosen) if only else ("tests/frameworks", "tests/vendors"))
        for framework in chosen:
            if framework.name not in found:
                row = _row(framework, versions[framework.package], tests)
                if row.contract.applicable or any(count.applicable for _, count in row.suites):
                    found[framework.name] = row
    rows = tuple(found[one.name] for one in FRAMEWORKS if one.name in found)
    return FrameworksReport(rows, tuple(name for name in names if name not in there))


def _versions(python: str) -> dict[str, str]:
    command = [python, "-c", _VERSIONS, *(one.package for one in FRAMEWORKS)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own environment
    return dict(line.split(" ", 1) for line in printed.splitlines())


def _files(chosen: Sequence[Framework]) -> list[str]:
    """The files of these frameworks' tests."""
    named = [f"tests/vendors/{file}.py" for one in chosen for _, file, _ in one.suites]
    for one in chosen:
        named += [f"tests/frameworks/{one.contract}.py", f"tests/frameworks/{one.contract}_runs.py"]
    return [name for name in dict.fromkeys(named) if (ROOT / name).exists()]


def _played(python: str, files: Sequence[str]) -> list[_Test]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tests.xml"
        options = [
            "-q",
            "-p",
            "no:asyncio",
            "-W",
            "ignore",
            "-o",
            "junit_family=xunit2",
            f"--junitxml={file}",
        ]
        command = [python, "-m", "pytest", *options, *files]
        ended = subprocess.run(  # noqa: S603 - our own environment
            command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        # Beyond 1, which says that tests failed, pytest did not play them all.
        if not file.exists() or ended.returncode > 1:
            raise SettingsError(f"The suites did not run: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return [_test(case) for case in ET.parse(file).getroot().iter("testcase")]  # noqa: S314 - pytest wrote it just now


def _test(case: ET.Element) -> _Test:
    _, _, place = case.get("classname", "").partition(".")
    _, _, inside = place.partition(".")
    module, _, group = inside.partition(".")
    name = f"{group}::{case.get('name', '')}" if group else case.get("name", "")
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            return _Test(module, name, found.get("message") or kind)
    return _Test(module, name)


def _row(framework: Framework, version: str, tests: Sequence[_Test]) -> Row:
    contract = _counted([one for one in tests if one.module == framework.contract])
    suites = tuple(
        (label, _counted([one for one in tests if one.module == module and re.search(pattern, one.name)]))
        for label, module, pattern in framework.suites
    )
    runs = _counted([one for one in tests if one.module == f"{framework.contract}_runs"])
    return Row(framework.name, version, suites, contract, runs)


def _counted(tests: Sequence[_Test]) -> Count:
    passed = sum(one.told is None for one in tests)
    apart = {
        one.name.rpartition("test_")[2]: one.told.removeprefix(_APART)
        for one in tests
        if one.told is not None and one.told.startswith(_APART)
    }
    return Count(passed, len(tests) - passed - len(apart), apart)
