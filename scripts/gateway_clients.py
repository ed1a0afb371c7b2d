"""Real clients through the gateway: `python scripts/gateway_clients.py --node DIR --claude FILE` prints a table of what each exchanged.

The clients are in no lock because only this script uses them: `npm install --prefix DIR openai @anthropic-ai/sdk @openai/codex
opencode-ai`; `pip install openai anthropic langchain-openai langchain-anthropic 'pydantic-ai-slim[openai,anthropic]' openai-agents` into an
environment of its own, and `pip install litellm`, which holds `openai` back, into another one; the command line of Claude Code comes with
`claude-agent-sdk`. Behind the gateway is a provider that speaks the real protocols and follows a script: it has a tool called once where it
is offered `read`, and otherwise answers. A client counts as working if it printed the answer, and every request of it is in the log with the
memory in it.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from pagefile.inspector import urls
from tests.gateway.behind import Behind, behind
from tests.gateway.upstream import Said

ANSWER = "There are 2 rows."
_QUESTION = "How many rows does the table have?"
_SCRIPTS = Path(__file__).parent / "clients"
_PACKAGES = (
    "openai", "anthropic", "langchain-openai", "langchain-anthropic", "litellm", "pydantic-ai-slim", "openai-agents",
)  # fmt: skip
#: The clients get nothing else of this shell.
_PATH = f"{Path(shutil.which('node') or '/usr/bin/node').parent}:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    version: str
    command: list[str]
    environment: dict[str, str]
    #: Files that it reads, below its home.
    files: dict[str, str]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--node", type=Path, help="the folder with node_modules")
    python = "a Python interpreter that has some of the Python clients; may be given several times"
    given.add_argument("--python", type=Path, action="append", default=[], help=python)
    given.add_argument("--claude", type=Path, help="the command line of Claude Code")
    options = given.parse_args()
    print("| client | version | requests | streamed | protocols | turns in the log | answer |")
    print("|---|---|---|---|---|---|---|")
    failed = False
    for make in _clients(options.node, options.python, options.claude):
        row, ok = _tried(make)
        failed = failed or not ok
        print(row, flush=True)
    sys.exit(failed)


def _clients(
    node: Path | None, pythons: Sequence[Path], claude: Path | None
) -> Iterator[Callable[[str], Client]]:
    if node is not None:
        node = node.resolve()
        yield lambda url: _npm(
            node, "openai", "openai.mjs", {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-x"}
        )
        yield lambda url: _npm(
            node,
            "@anthropic-ai/sdk",
            "anthropic.mjs",
            {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-x"},
        )
        yield lambda url: _codex(node, url)
        yield lambda url: _opencode(node, url)
    # Not resolved: an interpreter knows its environment by the link it was called by.
    homes = [(one.absolute(), _packages(one.absolute())) for one in pythons]
    for package in _PACKAGES:
        for python, versions in homes:
            if package in versions:
                yield partial(_python, python, package, versions[package])
                break
    if claude is not None:
        yield lambda url: _claude(claude.resolve(), url)


def _npm(node: Path, package: str, script: str, environment: dict[str, str]) -> Client:
    # Packages are looked for beside the script.
    text = (_SCRIPTS / script).read_text("utf-8")
    place = node / f"pagefile-{script}"
    place.write_text(text, "utf-8")
    return Client(f"npm `{package}`", _package(node, package), ["node", str(place)], environment, {})


def _packages(python: Path) -> dict[str, str]:
    """The packages of an environment, with their versions."""
    ask = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    return json.loads(_ran([str(python), "-c", ask], python.parent, {}).stdout)


def _python(python: Path, package: str, version: str, url: str) -> Client:
    keys = {"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-x"}
    urls_of = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_URL": url,
    }
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    # The scripts are named after the packages, and must not be imported instead of them: hence `-P`.
    script = _SCRIPTS / f"{package.replace('-', '_')}.py"
    return Client(
        f"PyPI `{package}`", version, [str(python), "-P", str(script)], {**keys, **urls_of, **quiet}, {}
    )


def _codex(node: Path, url: str) -> Client:
    config = (
        'model = "gpt-5"\nmodel_provider = "pagefile"\n[model_providers.pagefile]\nname = "Pagefile"\n'
        f'base_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    )
    command = [
        str(node / "node_modules/.bin/codex"),
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "read-only",
        _QUESTION,
    ]
    return Client(
        "Codex CLI",
        _package(node, "@openai/codex"),
        command,
        {"OPENAI_API_KEY": "sk-x"},
        {".codex/config.toml": config},
    )


def _opencode(node: Path, url: str) -> Client:
    provider = {"options": {"baseURL": f"{url}/v1", "apiKey": "sk-x"}}
    config = {"provider": {"anthropic": provider}, "share": "disabled", "autoupdate": False}
    command = [
        str(node / "node_modules/.bin/opencode"),
        "run",
        "--model",
        "anthropic/claude-sonnet-4-5",
        _QUESTION,
    ]
    files = {".config/opencode/opencode.json": json.dumps(config)}
    return Client("opencode", _package(node, "opencode-ai"), command, {}, files)


def _claude(path: Path, url: str) -> Client:
    version = _ran([str(path), "--version"], path.parent, {}).stdout.split()[0]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return Client("Claude Code", version, [str(path), "-p", _QUESTION], environment, {})


def _package(node: Path, name: str) -> str:
    return json.loads((node / "node_modules" / name / "package.json").read_text("utf-8"))["version"]


def _script(body: dict[str, Any]) -> Said:
    """A model that reads where it can, and then answers."""
    told = json.dumps(body.get("messages", body.get("input")))
    names = [
        str(tool.get("name") or tool.get("function", {}).get("name")) for tool in body.get("tools") or ()
    ]
    waits = "Read the table" in told and "row 1: 7" not in told
    return Said(calls=(("read", {}),)) if waits and "read" in names else Said(ANSWER)


def _tried(make: Callable[[str], Client]) -> tuple[str, bool]:
    with (
        tempfile.TemporaryDirectory() as folder,
        behind(_script, Path(folder), gateway={"user_id": "ada"}) as here,
    ):
        client = make(here.url)
        home = Path(folder) / "home"
        work = home / "work"
        work.mkdir(parents=True)
        for name, text in client.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, "utf-8")
        environment = {"PATH": _PATH, "HOME": str(home), **client.environment}
        run = _ran(client.command, work, environment)
        return _row(client, run, here)


def _ran(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the clients that were named
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _row(client: Client, run: subprocess.CompletedProcess[str], here: Behind) -> tuple[str, bool]:
    passed = httpx.get(here.url + urls.twin(urls.GATEWAY)).json()["requests"]
    streamed = sum(bool(body.get("stream")) for body in here.upstream.bodies)
    turns = [turn for talk in here.talks() for turn in talk]
    statuses = {(one["status"], one["code"]) for one in passed}
    # Results of tools that are sent alone, because the provider holds the history, are recorded.
    ok = run.returncode == 0 and ANSWER in run.stdout and statuses <= {("memory", 200), ("recorded", 200)}
    ok = ok and bool(passed) and all(status == "done" for *_, status in turns)
    told = "yes" if ok else f"no: {statuses or ''} {(run.stderr or run.stdout).strip()[-300:]!r}"
    protocols = ", ".join(sorted({one["protocol"] for one in passed}))
    cells = (client.name, client.version, len(here.upstream.requests), streamed, protocols, len(turns), told)
    return f"| {' | '.join(map(str, cells))} |", ok


if __name__ == "__main__":
    main()
