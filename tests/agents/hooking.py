"""Hooks as an agent runs them: the script in a process of its own, its input on standard input."""

import json
import subprocess
import sys
import time
from pathlib import Path

from pagefile.agents import hook

SCRIPT = Path(hook.__file__)


def run_hook(url, given, *, project="/srv/shop", agent="claude", deadline=30):
    """What the script printed, as JSON, and the seconds it took with its start."""
    began = time.perf_counter()
    raw = (
        given
        if isinstance(given, bytes)
        else json.dumps({"session_id": "s1", "cwd": project, **given}).encode()
    )
    asked = [sys.executable, "-I", "-S", str(SCRIPT), url, agent, project]
    done = subprocess.run(
        [*asked, *([] if deadline is None else [str(deadline)])], input=raw, capture_output=True, check=False
    )
    assert (0, b"") == (done.returncode, done.stderr)
    return json.loads(done.stdout) if done.stdout else None, time.perf_counter() - began


def prompt(text, **more):
    return {"hook_event_name": "UserPromptSubmit", "prompt": text, **more}


def bash_output(text, **more):
    response = {"stdout": text, "stderr": "", "interrupted": False}
    given = {
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_response": response,
        "tool_use_id": "t1",
    }
    return {"hook_event_name": "PostToolUse", **given, **more}


def stop(text, **more):
    return {"hook_event_name": "Stop", "last_assistant_message": text, **more}
