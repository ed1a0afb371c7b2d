"""The official conformance suite of MCP against the service, and the Inspector's command line against `pagefile mcp`.

    npm install --prefix DIR @modelcontextprotocol/conformance @modelcontextprotocol/inspector node@22
    .venv/bin/python scripts/mcp_conformance.py DIR

Prints what docs/explanation/mcp.md shows, and fails if a scenario that applies does not pass. The others call tools, resources and
prompts of the suite's own example server by their names, or ask for logging, which this server does not offer.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pagefile import Settings
from tests.acceptance.http_server import listening

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"[✓✗] (?P<name>[\w-]+): (?P<passed>\d+) passed, (?P<failed>\d+) failed")
#: What the scenarios need that are of the suite's example server.
_EXAMPLES = re.compile(
    r"logging-set-level|tools-call-.*|elicitation-.*|resources-read-.*|resources-templates-read|prompts-get-.*"
)


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


def _suite(folder: Path) -> bool:
    with tempfile.TemporaryDirectory() as data, listening(Settings(url=f"sqlite:///{data}/memory.db")) as url:
        said = _run(folder, "conformance", "server", "--url", f"{url}/mcp")
    found = {one["name"]: one for one in _LINE.finditer(said)}
    applies = {name: one for name, one in found.items() if not _EXAMPLES.fullmatch(name)}
    print(_version(folder, "conformance"))
    for name, one in applies.items():
        print(
            f"{'✓' if one['failed'] == '0' else '✗'} {name}: {one['passed']} passed, {one['failed']} failed"
        )
    print(f"{len(found) - len(applies)} scenarios are about the suite's example server")
    return bool(applies) and all(one["failed"] == "0" for one in applies.values())


def _inspector(folder: Path) -> bool:
    print(_version(folder, "inspector"))
    with tempfile.TemporaryDirectory() as data:
        server = [sys.executable, "-m", "pagefile", "mcp", "--db", f"{data}/memory.db"]
        call = ["--method", "tools/call", "--tool-name"]
        asked = {
            "tools/list": ["--method", "tools/list"],
            "remember": [*call, "remember", "--tool-arg", "text=The user drinks tea"],
            "facts": [*call, "facts"],
            "resources/list": ["--method", "resources/list"],
            "prompts/get": ["--method", "prompts/get", "--prompt-name", "facts"],
        }
        answers = {
            name: _run(folder, "mcp-inspector", "--cli", *server, *more) for name, more in asked.items()
        }
    for name, answer in answers.items():
        print(f"{name}: {' '.join(answer.split())[:90]} …")
    return "drinks tea" in answers["facts"]


if __name__ == "__main__":
    modules = Path(sys.argv[1]).resolve() / "node_modules"
    sys.exit(0 if all([_suite(modules), _inspector(modules)]) else 1)
