"""`bench vendors`: the vendors' own clients against Pagefile's faces, each in an environment of its own, call by call."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import url_of
from pagefile.records import JsonObject, JsonValue

HERE = Path(__file__).parent / "vendor_clients"
#: What pip and npm install; the versions they found are told.
PACKAGES = ("mem0ai", "agent-memory-client", "anthropic", "mcp")
NPM_PACKAGES = ("mem0ai", "@modelcontextprotocol/server-memory")
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Client:
    vendor: str
    client: str
    script: str
    package: str


CLIENTS = (
    Client("mem0", "MemoryClient", "mem0_sync.py", "mem0ai"),
    Client("mem0", "AsyncMemoryClient", "mem0_async.py", "mem0ai"),
    Client("mem0", "npm mem0ai", "mem0_node.mjs", "npm:mem0ai"),
    Client("redis agent-memory-server", "MemoryAPIClient", "agent_memory.py", "agent-memory-client"),
    Client("Anthropic Memory Stores", "Anthropic", "memory_stores.py", "anthropic"),
    Client("MCP reference memory server", "mcp", "reference_memory.py", "mcp"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one client's calls."""

    client: Client
    version: str
    calls: Sequence[str]
    #: By call.
    problems: dict[str, str]

    @property
    def ok(self) -> bool:
        return bool(self.calls) and not self.problems


@dataclass(frozen=True, slots=True)
class VendorsReport:
    outcomes: Sequence[Outcome]
    #: Clients that could not be had here, and why.
    left_out: dict[str, str]

    @property
    def ok(self) -> bool:
        return bool(self.outcomes) and all(one.ok for one in self.outcomes)

    def to_json(self) -> JsonObject:
        rows: list[JsonValue] = [
            {
                "vendor": one.client.vendor,
                "client": one.client.client,
                "version": one.version,
                "calls": list(one.calls),
                "problems": dict(one.problems),
            }
            for one in self.outcomes
        ]
        return {"clients": rows, "left_out": dict(self.left_out)}


def run(folder: Path | None = None, *, progress: Callable[[str], None]) -> VendorsReport:
    """Install the clients below `folder` (kept for the next time) or in a temporary one, and run them all."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        return _run(folder, progress)
    with tempfile.TemporaryDirectory(prefix="pagefile-vendors-") as name:
        return _run(Path(name), progress)


def _run(folder: Path, progress: Callable[[str], None]) -> VendorsReport:
    progress("Installing the vendors' clients…")
    python, left_out = _environment(folder / "venv"), dict[str, str]()
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        left_out["npm mem0ai"] = "node and npm are not installed"
        node = None
    else:
        _installed_by_npm(folder)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="pagefile-vendors-") as data, _Service(Path(data)) as url:
        for client in CLIENTS:
            if client.script.endswith(".mjs") and node is None:
                continue
            progress(f"{client.vendor}: {client.client}…")
            outcomes.append(_outcome(client, folder, python, node, url))
    return VendorsReport(outcomes, left_out)


def _environment(folder: Path) -> str:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    _called([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], folder)
    return str(python)


def _installed_by_npm(folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}')
    _called(["npm", "install", "--silent", "--no-audit", "--no-fund", *NPM_PACKAGES], folder)


def _called(command: Sequence[str], folder: Path) -> str:
    return subprocess.run(  # noqa: S603 - our own command
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=600
    ).stdout


def _outcome(client: Client, folder: Path, python: str, node: str | None, url: str) -> Outcome:
    script = HERE / client.script
    runner = python
    if script.suffix == ".mjs":
        # A module finds packages from where it lies.
        script, runner = Path(shutil.copy(script, folder)), node or "node"
    done = subprocess.run(  # noqa: S603 - our own script
        [runner, str(script), url],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        env={
            **os.environ,
            "MEM0_TELEMETRY": "False",
            "PYTHONPATH": str(HERE),
            "PAGEFILE_PYTHON": sys.executable,
        },
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"call"')]
    problems = {line["call"]: line["problem"] for line in lines if line["problem"] is not None}
    if done.returncode:
        problems["the whole"] = (done.stderr.strip().splitlines() or ["it ended early"])[-1]
    return Outcome(client, _version(client, folder, python), [line["call"] for line in lines], problems)


def _version(client: Client, folder: Path, python: str) -> str:
    name = client.package.removeprefix("npm:")
    if client.package.startswith("npm:"):
        package = folder / "node_modules" / name / "package.json"
        return str(json.loads(package.read_text())["version"])
    asked = f"from importlib.metadata import version; print(version({name!r}))"
    return _called([python, "-c", asked], folder).strip()


class _Service:
    """`pagefile serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        database = url_of(self._folder / "m.db")
        command = [sys.executable, "-m", "pagefile", "serve", "--port", port, "--db", database]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self._folder
        )
        said: list[str] = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append(line)
            if "Ctrl-C" in line:
                return f"http://127.0.0.1:{port}"
        raise RuntimeError(f"The service did not start: {''.join(said)}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()
