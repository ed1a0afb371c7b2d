"""The formats of Claude Code: the results of its tools, with the text the model reads, and its transcript.

Claude Code silently ignores a replacement that does not have the tool's own format, and the model gets the raw output.
So no result is constructed here: it is copied, and only its text is replaced. The transcript has what no hook is given: text beside
tool calls, and thoughts with their signatures.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

from pagefile.integrations.recorder import THINKING, Called, Said, Shown, Thought
from pagefile.shapes.skeleton import as_list, as_object

#: A path into a result: object keys in order.
_Path: TypeAlias = tuple[str, ...]

#: Where built-in tools keep what the model reads: Bash, Read, Grep, WebFetch, agents and others.
_PLACES: tuple[_Path, ...] = (
    ("stdout",),
    ("file", "content"),
    ("content",),
    ("result",),
    ("output",),
    ("text",),
)


def result_text(answer: object) -> str | None:
    """The text of a result; None if it has none in a known place."""
    if isinstance(answer, str):
        return answer
    if _is_list(answer):
        texts = [block["text"] for block in answer if _is_text(block)]
        return "\n".join(texts) if texts else None
    place = _place(answer)
    return None if place is None else result_text(_at(answer, place))


def pictured(answer: object) -> list[dict[str, Any]]:
    """The images of a result: those of Read and of MCP tools."""
    if _is_list(answer):
        return [block for one in answer if _is_object(one) for block in _picture(one)]
    if not _is_object(answer):
        return []
    file, content = answer.get("file"), answer.get("content")
    if answer.get("type") == "image" and _is_object(file):
        return list(_picture({"data": file.get("base64"), "mimeType": file.get("type"), "type": "image"}))
    return pictured(content) if _is_list(content) else []


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
    if _is_list(answer):
        return _retold_blocks(answer, text)
    place = _place(answer)
    return answer if place is None else _retold_at(answer, place, text)


def _retold_blocks(blocks: Sequence[object], text: str) -> list[object]:
    """Puts the text into the first text block and drops the others."""
    kept: list[object] = []
    said = False
    for block in blocks:
        if not _is_text(block):
            kept.append(block)
        elif not said:
            kept.append({**block, "text": text})
            said = True
    return kept


def _place(answer: object) -> _Path | None:
    """Where an object has its text; None if it has none there, or is something else."""
    places = _PLACES if _is_object(answer) else ()
    return next((place for place in places if result_text(_at(answer, place))), None)


def _at(answer: object, place: _Path) -> object:
    for key in place:
        answer = cast("Mapping[str, object]", answer).get(key) if _is_object(answer) else None
    return answer


def _retold_at(answer: Any, place: _Path, text: str) -> object:
    if not place:
        return retold(answer, text)
    key, *rest = place
    return {**answer, key: _retold_at(answer[key], tuple(rest), text)}


def _is_list(answer: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(answer, list | tuple)


def _is_object(answer: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(answer, Mapping)


def _is_text(block: object) -> TypeGuard[Mapping[str, Any]]:
    return _is_object(block) and block.get("type") == "text" and isinstance(block.get("text"), str)


# -- the transcript ---------------------------------------------------------------------------------------------------


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
