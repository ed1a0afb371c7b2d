"""Recorded agent runs as a sequence of events: what the user said, what the agent said and called, what came back.

Two file formats: `traj-*.jsonl.gz` holds chat messages with the tool calls as JSON inside them, `coding-runs*.jsonl.gz` the
events of coding agents.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.trajectories import files_of_runs, plain_call, runs_of_file, split_calls, user_text
from pagefile.records import JsonValue

PATTERNS = ("coding-runs*.jsonl.gz", "traj-*.jsonl.gz")

Kind = Literal["user", "agent", "call", "result"]
_KINDS: dict[str, Kind] = {"assistant": "agent", "tool": "result"}


@dataclass(frozen=True, slots=True)
class Event:
    kind: Kind
    #: What the ruler counts and compares.
    text: str
    tool: str = ""
    input: JsonValue = None
    #: The calls in a message of the agent, in runs that record them there, and what it says beside them.
    calls: tuple[tuple[str, JsonValue], ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    events: tuple[Event, ...]


def run_files(folder: Path) -> list[Path]:
    """The files of runs in a folder; an error says so when there are none."""
    return files_of_runs(folder, *PATTERNS)


def read_runs(path: Path) -> Iterator[Run]:
    """The runs of a file, one a line."""
    return runs_of_file(path, _run)


def _run(given: Any, place: str) -> Run:
    name = given.get("run") or given.get("traj_id") or ""
    return Run(f"{place} {name}".strip()[:200], tuple(_events(given)))


def _events(given: Any) -> Iterator[Event]:
    for message in given.get("messages", ()):
        yield _message(message)
    for event in given.get("events", ()):
        if event["type"] == "message":
            text = event["text"] or ""
            yield Event("user" if event["role"] == "user" else "agent", text, said=text)
        elif event["type"] == "operation.started":
            operation = event["operation"]
            value = operation.get("input")
            yield Event("call", call_text(value), str(operation.get("name") or "tool"), value)
        elif event["type"] == "operation.finished":
            output = event.get("output")
            yield Event("result", output if isinstance(output, str) else _dumps(output or ""))


def _message(message: Any) -> Event:
    content = message["content"] or ""
    text = content if isinstance(content, str) else _dumps(content)
    kind = _KINDS.get(message["role"], "user")
    if kind == "agent":
        said, found = split_calls(text)
        # A streamed call comes with fragments that have no name.
        calls = [call for call in map(plain_call, found) if call["name"]]
        named = tuple((str(call["name"]), call["args"]) for call in calls)
        return Event(kind, text, calls=named, said=said if named else text)
    return Event(kind, user_text(text) if message["role"] == "user" else text, message.get("name") or "")


def call_text(value: JsonValue) -> str:
    """The arguments of a call as they are compared with results: JSON without its escapes."""
    text = _dumps(value)
    for escaped, plain in (("\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\\\", "\\")):
        text = text.replace(escaped, plain)
    return text


def _dumps(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
