"""A recording of Claude Code that remembers over two runs: `python -m tests.integration.claude.remembering`.

The command is the real one, out of the Claude Agent SDK; the model is a script that answers with what it was told.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import claude_agent_sdk

from pagefile import Settings
from tests.acceptance.http_server import listening

from .stub import MessagesStub, last_said

COMMAND = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
PORT = re.compile(r"port (\d{4})")


def script(request):
    """Runs a command if it is asked to; names the port if it was told one; else it does not know."""
    said = last_said(request)
    if any(block.get("type") == "tool_result" for block in said):
        shown = json.dumps(said, ensure_ascii=False)
        return [{"type": "text", "text": "A placeholder came." if "archived" in shown else "All of it came."}]
    text = "\n".join(block.get("text", "") for block in said)
    if "followed by a <summary> block" in text:
        return [{"type": "text", "text": "<summary>They spoke about the project.</summary>"}]
    if "seq" in text:
        call = {"command": "seq 1 6000", "description": "Count"}
        return [
            {"type": "tool_use", "id": f"toolu_{len(request['messages'])}", "name": "Bash", "input": call}
        ]
    if "Which port" in text:
        # What a hook adds is a message beside the prompt.
        known = PORT.search(json.dumps(request["messages"]))
        return [{"type": "text", "text": f"It is {known[1]}." if known else "I do not know."}]
    return [{"type": "text", "text": "Noted."}]


@contextmanager
def wrapped_project(url):
    """A folder in which Claude Code has memory."""
    folder = Path(tempfile.mkdtemp()).resolve()
    command = [
        sys.executable,
        "-m",
        "pagefile",
        "wrap",
        "claude",
        "--project",
        str(folder),
        "--url",
        url,
        "--deadline",
        "4",
        "--yes",
    ]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def said_to(folder, stub, prompt):
    """One run of Claude Code, as a user would start it."""
    return ran(folder, stub.url, "-p", prompt, "--allowedTools", "Bash")


def ran(folder, url, *arguments, **more):
    """What the command prints that is given these arguments, and these variables of the environment."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "stub",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **more,
    }
    done = subprocess.run(
        [str(COMMAND), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return (done.stdout + done.stderr).strip()


SAID = "Remember for this project: the test database listens on port 5544."
LONG = "Please run seq 1 6000."
ASKED = "Which port does the test database listen on?"


def recorded():
    """What is typed and printed: two runs, a compaction, another project, and after `unwrap`."""
    with (
        MessagesStub(script) as stub,
        tempfile.TemporaryDirectory() as data,
        listening(Settings(url=f"sqlite:///{data}/memory.db")) as url,
        wrapped_project(url) as shop,
        wrapped_project(url) as other,
    ):
        for prompt in (SAID, LONG, ASKED):
            yield f'❯ claude -p "{prompt}"\n{said_to(shop, stub, prompt)}\n'
        ran(shop, stub.url, "-c", "-p", "/compact")
        again = ran(shop, stub.url, "-c", "-p", ASKED)
        assert "5544" not in json.dumps(stub.requests[-1]["messages"][0]), "the history was not compacted"
        yield f'❯ claude -c -p /compact\n❯ claude -c -p "{ASKED}"\n{again}\n'
        yield f'❯ cd ../other && claude -p "{ASKED}"\n{said_to(other, stub, ASKED)}\n'
        unwrap = [sys.executable, "-m", "pagefile", "unwrap", "claude", "--project", str(shop), "--yes"]
        subprocess.run(unwrap, check=True, capture_output=True)
        assert [shop / "home"] == [*shop.iterdir()], "unwrap left a trace"
        yield f'❯ pagefile unwrap claude\n❯ claude -p "{ASKED}"\n{said_to(shop, stub, ASKED)}\n'


if __name__ == "__main__":
    for lines in recorded():
        print(lines)
