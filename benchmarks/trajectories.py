"""Recorded runs of agents, read as what happened: a system text, a question, something said, a tool's result.

A run stores a model's tool calls as JSON inside its messages. Here a call becomes the input of the result that answers it;
whatever no result answers stays text, so that nothing a model wrote is left out.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pagefile.errors import NotFoundError, TransferError
from pagefile.records import JsonObject, JsonValue

PATTERN = "traj-*.jsonl.gz"

R = TypeVar("R")

Role = Literal["system", "user", "assistant", "tool"]
_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a run, as it was recorded."""

    role: Role
    content: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run of an agent."""

    id: str
    messages: Sequence[Message]


def trajectory_files(folder: Path) -> list[Path]:
    """The files of runs in a folder; an error says so when there are none."""
    return files_of_runs(folder, PATTERN)


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """The runs of a file, one a line."""
    return runs_of_file(path, _trajectory)


def files_of_runs(folder: Path, *patterns: str) -> list[Path]:
    """The files that match one of the patterns."""
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    if not found:
        raise NotFoundError(
            f"There are no runs in {str(folder)!r}: --data must name a folder with {' or '.join(patterns)} files."
        )
    return found


def runs_of_file(path: Path, make: Callable[[Any, str], R]) -> Iterator[R]:
    """What is made of each line, given its JSON and its place in the file."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield make(json.loads(line), f"{path.stem}/{number}")
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise TransferError(
            f"{path.name}: this is not a file of runs ({type(error).__name__}: {error})."
        ) from error


def _trajectory(given: Any, place: str) -> Trajectory:
    messages = [_message(message) for message in given["messages"]]
    return Trajectory(f"{place} {given.get('traj_id', '')}".strip()[:200], messages)


def _message(given: Any) -> Message:
    role, content = given["role"], given["content"]
    if role not in _ROLES:
        raise ValueError(f"a message of the role {role!r}")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return Message(role, user_text(text) if role == "user" else text, given.get("name"))


def user_text(content: str) -> str:
    """What a user wrote; a list of content parts is read as its texts, and a part that is not text stays JSON."""
    parts = _json_list(content)
    if not parts:
        return content
    texts = [
        part["text"]
        if part.get("type") == "text" and isinstance(part.get("text"), str)
        else json.dumps(part, ensure_ascii=False)
        for part in cast("list[Any]", parts)
    ]
    return "\n".join(texts)


@dataclass(slots=True)
class Draft:
    """What a model said and called that is not stored yet."""

    said: list[str] = field(default_factory=list[str])
    calls: list[JsonObject] = field(default_factory=list[JsonObject])

    def hear(self, content: str) -> None:
        """A message of the model."""
        text, found = split_calls(content)
        # A streamed call comes with fragments that have no name and no arguments.
        calls = [call for call in map(plain_call, found) if call["name"] or call["args"]]
        if calls:
            self.said += self._unanswered()
            self.calls = calls
        if text:
            self.said.append(text)

    def answered(self, name: str | None) -> tuple[str, JsonValue]:
        """A result came: the tool, and what it was asked, with everything that was said on the way to it."""
        call = self._call(name)
        tool = str((call or {}).get("name") or name or "tool")
        asked = None if call is None else call.get("args")
        if not self.said:
            return tool, asked
        return tool, {"said": self.take_said(), "args": asked}

    def take_said(self) -> str | None:
        """Everything said so far, which is from now on stored elsewhere."""
        text = "\n".join(self.said)
        self.said.clear()
        return text or None

    def take(self) -> str | None:
        """Everything said and every unanswered call."""
        self.said += self._unanswered()
        return self.take_said()

    def texts(self) -> list[str]:
        """What a model must see of it, beside the window."""
        return [*self.said, *([_dumps(self.calls)] if self.calls else [])]

    def _unanswered(self) -> list[str]:
        left = [_dumps(self.calls)] if self.calls else []
        self.calls = []
        return left

    def _call(self, name: str | None) -> JsonObject | None:
        """The call of that name, else the first."""
        if not self.calls:
            return None
        number = next((n for n, call in enumerate(self.calls) if call.get("name") == name), 0)
        return self.calls.pop(number)


def split_calls(content: str) -> tuple[str, list[JsonObject]]:
    """The text of a model's message and the tool calls behind it, in either of the shapes the runs have."""
    stripped = content.strip()
    start = 0 if stripped.startswith("[{") else stripped.rfind("\n[{") + 1
    calls = _json_list(stripped[start:]) if start or stripped.startswith("[{") else None
    if calls is None or not all("name" in call or "function" in call for call in calls):
        return stripped, []
    return stripped[:start].strip(), calls


def plain_call(call: JsonObject) -> JsonObject:
    """The call as name and arguments."""
    function = call.get("function")
    given = cast("JsonObject", function) if isinstance(function, dict) else call
    arguments = given.get("args", given.get("arguments"))
    return {"name": given.get("name"), "args": _parsed(arguments)}


def _parsed(arguments: JsonValue) -> JsonValue:
    if not isinstance(arguments, str):
        return arguments
    try:
        return cast("JsonValue", json.loads(arguments))
    except ValueError:
        return arguments


def _json_list(text: str) -> list[JsonObject] | None:
    """A list of JSON objects, None when the text is anything else."""
    if not text.lstrip().startswith("[{"):
        return None
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None
    objects = cast("Iterable[object]", found)
    return cast("list[JsonObject]", found) if all(isinstance(one, dict) for one in objects) else None


def _dumps(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
