"""The official conformance suite of MCP against the service, and the Inspector's command line against `pagefile mcp`.

    npm install --prefix DIR @modelcontextprotocol/conformance @modelcontextprotocol/inspector node@22
    .venv/bin/python scripts/mcp_conformance.py DIR

Prints what docs/explanation/mcp.md shows. A scenario that fails is not ours to pass if its own reason says that it wants something
of the suite's example server, by name, or a feature that this server does not announce. Any other failure fails the script.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from pagefile import Settings
from tests.acceptance.http_server import listening

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: The folder of a scenario's results: its name and a time.
_RESULTS = re.compile(r"server-(?P<name>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
#: What a reason says that wants a part of the suite's example server.
_EXAMPLE = re.compile(r"There is no (?P<kind>tool|resource|prompt) '(?P<name>test(?:_\w+|://[^']+))'")
_UNKNOWN_METHOD = "Method not found"
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "conformance", "version": "1"},
    },
}


def _run(folder: Path, command: str, *arguments: str) -> str:
    """Run a command of an npm package, with the Node that is installed beside it."""
    asked = [str(folder / "node" / "bin" / "node"), str(folder / ".bin" / command), *arguments]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - as the user named it
    return _COLOUR.sub("", done.stdout + done.stderr)


def _version(folder: Path, package: str) -> str:
    about = json.loads(
        (folder / "@modelcontextprotocol" / package / "package.json").read_text(encoding="utf-8")
    )
    return f"@modelcontextprotocol/{package} {about['version']}"


def _capabilities(url: str) -> dict[str, Any]:
    """What the server announces that it offers."""
    answer = httpx.post(
        url, json=_INITIALIZE, headers={"Accept": "application/json, text/event-stream"}, timeout=30
    )
    [told] = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(told.removeprefix("data: "))["result"]["capabilities"]


def _not_ours(scenario: str, reason: str, offered: Collection[str]) -> str | None:
    """Why a scenario does not apply; None if it does."""
    if wanted := _EXAMPLE.search(reason):
        return f"wants the {wanted['kind']} {wanted['name']} of the suite's example server"
    if _UNKNOWN_METHOD in reason and "logging" in scenario and "logging" not in offered:
        return "wants logging, which the server does not announce"
    return None


def _suite(folder: Path) -> bool:
    with (
        tempfile.TemporaryDirectory() as data,
        listening(Settings(url=f"sqlite:///{data}/memory.db")) as url,
    ):
        offered = _capabilities(f"{url}/mcp")
        _run(folder, "conformance", "server", "--url", f"{url}/mcp", "--output-dir", f"{data}/results")
        found = {
            named["name"]: json.loads((one / "checks.json").read_text(encoding="utf-8"))
            for one in sorted(Path(data, "results").glob("*/"))
            if (named := _RESULTS.fullmatch(one.name))
        }
    print(_version(folder, "conformance"))
    other: dict[str, str] = {}
    failed = 0
    for name, checks in found.items():
        reasons = [str(one.get("errorMessage")) for one in checks if one["status"] == "FAILURE"]
        excuses = [_not_ours(name, reason, offered) for reason in reasons]
        if excuses and None not in excuses:
            other[name] = str(excuses[0])
            continue
        failed += bool(reasons)
        passed = sum(one["status"] == "SUCCESS" for one in checks)
        print(f"{'✗' if reasons else '✓'} {name}: {passed} passed, {len(reasons)} failed")
        print("".join(f"    {reason}\n" for reason in reasons), end="")
    for name, why in other.items():
        print(f"– {name}: {why}")
    print(f"{len(found) - len(other) - failed} passed, {failed} failed, {len(other)} do not apply")
    return len(found) > len(other) and not failed


_CALL = ("--method", "tools/call", "--tool-name")
_ASKED = {
    "tools/list": ("--method", "tools/list"),
    "remember": (*_CALL, "remember", "--tool-arg", "text=The user drinks tea"),
    "facts": (*_CALL, "facts"),
    "resources/list": ("--method", "resources/list"),
    "prompts/get": ("--method", "prompts/get", "--prompt-name", "facts"),
}


def _inspector(folder: Path) -> bool:
    print(_version(folder, "inspector"))
    with tempfile.TemporaryDirectory() as data:
        stdio = _inspected(folder, sys.executable, "-m", "pagefile", "mcp", "--db", f"{data}/memory.db")
    for name, answer in stdio.items():
        print(f"{name}: {' '.join(answer.split())[:90]} …")
    with (
        tempfile.TemporaryDirectory() as data,
        listening(Settings(url=f"sqlite:///{data}/memory.db")) as url,
    ):
        http = _inspected(folder, f"{url}/mcp", "--transport", "http")
    lists = [name for name in _ASKED if name.endswith("/list")]
    good = all(http[name] == stdio[name] for name in lists)
    good = good and all(
        "drinks tea" in answers[name] for answers in (stdio, http) for name in ("facts", "prompts/get")
    )
    print(f"over HTTP: {'the same' if good else 'NOT the same'}, but for the id of the fact")
    return good


def _inspected(folder: Path, *server: str) -> dict[str, str]:
    """What the Inspector's command line prints of a server."""
    return {name: _run(folder, "mcp-inspector", "--cli", *server, *more) for name, more in _ASKED.items()}


if __name__ == "__main__":
    modules = Path(sys.argv[1]).resolve() / "node_modules"
    sys.exit(0 if all([_suite(modules), _inspector(modules)]) else 1)
