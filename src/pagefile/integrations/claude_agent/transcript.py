"""What only Claude Code's transcript holds and no hook is given: text beside tool calls, and thoughts with their signatures."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagefile.integrations.recorder import THINKING, Called, Said, Shown, Thought
from pagefile.shapes.skeleton import as_list, as_object


@dataclass(slots=True)
class Transcript:
    """The transcript of a session, from one prompt on."""

    prompt_id: str
    offset: int = 0
    #: What the model has said since, block by block as in the transcript.
    said: list[Said] = field(default_factory=list[Said])
    _begun: bool = False

    def read(self, path: str) -> None:
        """Read what was written since the last call; an incomplete line is left for the next."""
        try:
            with Path(path).open("rb") as file:
                file.seek(self.offset)
                data = file.read()
        except OSError:
            return
        end = data.rfind(b"\n") + 1
        self.offset += end
        for line in data[:end].splitlines():
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            given = as_object(json.loads(line)) or {}
        except (ValueError, RecursionError):
            return
        if given.get("type") == "user" and given.get("promptId") == self.prompt_id:
            self._begun = True
        elif self._begun and given.get("type") == "assistant" and not given.get("isSidechain"):
            content = as_list((as_object(given.get("message")) or {}).get("content")) or ()
            self.said += [Said((block,)) for block in map(_block, content) if block is not None]


def _block(block: Any) -> str | Thought | Called | Shown | None:
    given = as_object(block) or {}
    kind = given.get("type")
    if kind == "text":
        return str(given.get("text") or "")
    if kind == "tool_use":
        return Called(str(given.get("name")), given.get("input"), given.get("id"))
    if str(kind) in THINKING:
        return Thought.of_block(given)
    return given if kind else None
