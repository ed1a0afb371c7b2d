"""Servers of npm and PyPI that `scripts/mcp_clients.py` asks, each with calls of it."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

Json = dict[str, Any]
#: Of the server that is asked over HTTP.
PORT = 8797
LINES = "".join(
    f"Row {number}: the value of item {number * 7} is {number * 13}.\n" for number in range(3_000)
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server of npm or PyPI, and calls of it: a short one, and one whose result is long."""

    package: str
    version: str
    command: list[str]
    short: tuple[str, Json]
    #: None where no result of it is long.
    long: tuple[str, Json] | None = None
    #: What has to be there before.
    before: Sequence[tuple[str, Json]] = ()
    #: Whether it asks the client as well: sampling, elicitation, roots.
    asks: bool = False
    #: Where it is asked over HTTP.
    url: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def servers(folder: Path, data: Path, page: str) -> list[Server]:
    modules, node = folder / "node_modules", shutil.which("node") or "node"

    def npm(name: str, *arguments: str, **more: Any) -> Server:
        package = f"@modelcontextprotocol/server-{name}"
        command = [node, str(modules / ".bin" / f"mcp-server-{name}"), *arguments]
        return Server(f"{package} (npm)", npm_version(modules, package), command, **more)

    def pypi(name: str, *arguments: str, where: str = "venv", **more: Any) -> Server:
        package, programs = f"mcp-server-{name}", folder / where / "bin"
        command = [str(programs / package), *arguments]
        return Server(f"{package} (PyPI)", _pip_version(programs, package), command, **more)

    rows, repository = data / "rows.txt", data / "repository"
    rows.write_text(LINES, encoding="utf-8")
    _repository(repository)
    entities = [
        {"name": f"item {n}", "entityType": "thing", "observations": [f"is worth {n * 13}"]}
        for n in range(200)
    ]
    thought = {"thought": "First look.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    insert = ", ".join(f"({n}, 'item {n * 7}', {n * 13})" for n in range(600))
    return [
        npm("filesystem", str(data), short=("list_directory", {"path": str(data)}), long=("read_text_file", {"path": str(rows)})),
        npm("memory", short=("search_nodes", {"query": "item 77"}), long=("read_graph", {}), before=[("create_entities", {"entities": entities})], environment={"MEMORY_FILE_PATH": str(data / "graph.json")}),
        npm("everything", short=("echo", {"message": "hello"}), asks=True),
        npm("everything", "streamableHttp", short=("echo", {"message": "hello"}), asks=True, url=f"http://127.0.0.1:{PORT}/mcp", environment={"PORT": str(PORT)}),
        npm("sequential-thinking", short=("sequentialthinking", thought)),
        pypi("git", "--repository", str(repository), short=("git_status", {"repo_path": str(repository)}), long=("git_log", {"repo_path": str(repository), "max_count": 60})),
        pypi("fetch", "--ignore-robots-txt", "--allow-private-ips", short=("fetch", {"url": page, "max_length": 200}), long=("fetch", {"url": page, "max_length": 60_000})),
        pypi("sqlite", "--db-path", str(data / "table.db"), where="older", short=("list_tables", {}), long=("read_query", {"query": "SELECT * FROM things"}), before=[("create_table", {"query": "CREATE TABLE things (n INTEGER, name TEXT, worth INTEGER)"}), ("write_query", {"query": f"INSERT INTO things VALUES {insert}"})]),  # noqa: S608 - of this script
        pypi("time", short=("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"})),
    ]  # fmt: skip


def _repository(folder: Path) -> None:
    folder.mkdir()
    git = partial(subprocess.run, cwd=folder, check=True, capture_output=True)
    named = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    git([*named, "init", "--quiet"])
    for number in range(60):
        git([*named, "commit", "--quiet", "--allow-empty", "-m", f"Change {number} of the parser"])


def npm_version(modules: Path, package: str) -> str:
    return json.loads((modules / package / "package.json").read_text(encoding="utf-8"))["version"]


def _pip_version(programs: Path, package: str) -> str:
    asked = [
        str(programs / "python"),
        "-c",
        f"from importlib.metadata import version; print(version({package!r}))",
    ]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - of this script
