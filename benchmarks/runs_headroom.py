"""Headroom in `bench runs`: it wants an `openai` of its own, so it lives in an environment of its own, as a child process.

python -m venv headroom && headroom/bin/pip install headroom-ai
PAGEFILE_BENCH_HEADROOM=headroom/bin/python pagefile bench runs --data FOLDER
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.runs_data import Event, Run
from benchmarks.runs_messages import Chat, text_of
from benchmarks.runs_ruler import Prompt
from benchmarks.runs_ways import Way

#: Names the interpreter of that environment.
INTERPRETER = "PAGEFILE_BENCH_HEADROOM"
#: Runs there: messages come in and go out as lines of JSON. What the library prints goes elsewhere.
_CHILD = """
import json, os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from headroom import compress
for line in sys.stdin:
    asked = json.loads(line)
    made = compress(asked["messages"], model="gpt-4o", model_limit=asked["limit"])
    print(json.dumps(made.messages), file=out, flush=True)
"""


def interpreter() -> str | None:
    """The Python that has Headroom; None if none is named."""
    return os.environ.get(INTERPRETER)


class Headroom(Way):
    """`headroom.compress` over all messages, before every call."""

    def __init__(self, python: str, limit: int) -> None:
        super().__init__(f"Headroom, {limit:,}")
        self._limit = limit
        self._child = subprocess.Popen(  # noqa: S603 - the interpreter that was named
            [str(Path(python).absolute()), "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._messages: list[dict[str, Any]] = []
        self._chat = Chat()

    async def begin(self, run: Run) -> None:
        self._messages, self._chat = [], Chat()

    async def add(self, event: Event) -> None:
        self._messages += self._chat.messages(event)

    async def prompt(self) -> Prompt:
        if not self._messages:
            return []
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(
            json.dumps({"messages": self._messages, "limit": self._limit}), file=self._child.stdin, flush=True
        )
        return [text_of(message) for message in json.loads(self._child.stdout.readline())]

    async def close(self) -> None:
        self._child.terminate()
        self._child.wait()
