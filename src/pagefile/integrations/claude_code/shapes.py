"""The formats of Claude Code: the results of its tools, with the text the model reads, and its transcript.

Claude Code silently ignores a replacement that is not in the tool's own format: so results are copied, and only their text replaced.
The transcript has what no hook is given: images beside a prompt, text beside tool calls, and thoughts with their signatures.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagefile.edge.recorder import THINKING, Called, Said, Shown, Thought
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.shapes.tool_arguments import compact

#: Where built-in tools keep what the model reads: Bash, Read (the content of a file), Grep, WebFetch, agents and others.
_PLACES = ("stdout", "file", "content", "result", "output", "text")

#: What a prompt shows beside its words, as blocks of these types.
ATTACHED = frozenset({"image", "document"})

#: How much of a transcript is read at a time; hooks come often enough for the rest.
_MAX_READ_BYTES = 64_000_000


def result_text(answer: object) -> str | None:
    """The text of a result; None if it has none in a known place."""
    if isinstance(answer, str):
        return answer
    if (fields := as_object(answer)) is not None:
        return next(filter(None, (result_text(fields.get(place)) for place in _PLACES)), None)
    texts = [block["text"] for block in objects_in(answer) if _is_text(block)]
    return "\n".join(texts) if texts else None


def started_text(answer: object) -> str | None:
    """What is known of a call that started something in the background; None if it did not."""
    fields = as_object(answer) or {}
    told = {
        name: fields[name]
        for name in ("status", "agentId", "description")
        if isinstance(fields.get(name), str)
    }
    return compact(told) if fields.get("isAsync") and told else None


def pictured(answer: object) -> list[dict[str, Any]]:
    """The images of a result: those of Read and of MCP tools."""
    fields = as_object(answer)
    if fields is None:
        return [block for one in objects_in(answer) for block in _picture(one)]
    if fields.get("type") == "image" and (file := as_object(fields.get("file"))) is not None:
        return list(_picture({"data": file.get("base64"), "mimeType": file.get("type"), "type": "image"}))
    return [block for one in objects_in(fields.get("content")) for block in _picture(one)]


def _picture(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block.get("type") != "image":
        return
    if isinstance(block.get("source"), dict):
        yield dict(block)
    elif isinstance(block.get("data"), str):
        source = {"type": "base64", "media_type": str(block.get("mimeType")), "data": block["data"]}
        yield {"type": "image", "source": source}


def retold(answer: object, text: str) -> object:
    """The same result with its text replaced; everything else (images, numbers, flags) stays."""
    if isinstance(answer, str):
        return text
    if (blocks := as_list(answer)) is not None:
        # The text goes into the first text block, and the others are dropped.
        texts = [place for place, block in enumerate(blocks) if _is_text(block)]
        kept = ((place, block) for place, block in enumerate(blocks) if place not in texts[1:])
        return [{**block, "text": text} if place in texts else block for place, block in kept]
    fields = as_object(answer) or {}
    place = next((place for place in _PLACES if result_text(fields.get(place))), None)
    return answer if place is None else {**fields, place: retold(fields[place], text)}


def _is_text(block: object) -> bool:
    given = as_object(block) or {}
    return given.get("type") == "text" and isinstance(given.get("text"), str)


# -- the transcript ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Transcript:
    """The transcript of a session, from one prompt on."""

    #: None if the agent does not say it, and then the transcript tells nothing.
    prompt_id: str | None
    offset: int = 0
    #: What the model has said since, block by block as in the transcript.
    said: list[Said] = field(default_factory=list[Said])
    #: Images and files of the prompt that are not in the log yet.
    attached: list[Shown] = field(default_factory=list[Shown])
    _begun: bool = False

    def read(self, path: str) -> None:
        """Read what was written since the last call; an incomplete line is left for the next.

        The path is the agent's word: what is not a plain file might never end.
        """
        try:
            if not Path(path).is_file():
                return
            with Path(path).open("rb") as file:
                file.seek(self.offset)
                data = file.read(_MAX_READ_BYTES)
        except OSError:
            return
        end = data.rfind(b"\n") + 1
        self.offset += end
        for line in data[:end].splitlines():
            self._take(line)

    def has(self, call_id: str | None) -> bool:
        """Whether the call, or without one the prompt, was read; where the prompt has no id, no prompt is to be expected."""
        if call_id is None:
            return self._begun or self.prompt_id is None
        return any(call.call_id == call_id for one in self.said for call in one.calls)

    def _take(self, line: bytes) -> None:
        try:
            given = as_object(json.loads(line)) or {}
        except (ValueError, RecursionError):
            return
        content = as_list((as_object(given.get("message")) or {}).get("content")) or ()
        is_known = self.prompt_id is not None and given.get("promptId") == self.prompt_id
        if given.get("type") == "user" and is_known:
            if not self._begun:
                # Later lines of the prompt are results of tools, and notes of the program.
                self.attached += [one for one in objects_in(content) if one.get("type") in ATTACHED]
            self._begun = True
        elif self._begun and given.get("type") == "assistant" and not given.get("isSidechain"):
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
