"""The result formats of Claude Code's tools: the text the model reads, and how to replace it.

Claude Code silently ignores a replacement that does not have the tool's own format, and the model gets the raw output.
So nothing is constructed here: the result is copied, and only its text is replaced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

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


def told(answer: object) -> str | None:
    """The text of a result; None if it has none in a known place."""
    if isinstance(answer, str):
        return answer
    if _is_list(answer):
        texts = [block["text"] for block in answer if _is_text(block)]
        return "\n".join(texts) if texts else None
    if _is_object(answer):
        place = _place(answer)
        return None if place is None else told(_at(answer, place))
    return None


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
    if _is_object(answer):
        place = _place(answer)
        if place is not None:
            return _with(answer, place, lambda found: retold(found, text))
    return answer


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


def _place(answer: Mapping[str, Any]) -> _Path | None:
    return next((place for place in _PLACES if told(_at(answer, place))), None)


def _at(answer: object, place: _Path) -> object:
    for key in place:
        answer = cast("Mapping[str, object]", answer).get(key) if _is_object(answer) else None
    return answer


def _with(answer: Mapping[str, Any], place: _Path, change: Callable[[object], object]) -> dict[str, Any]:
    key, rest = place[0], place[1:]
    return {**answer, key: _with(answer[key], rest, change) if rest else change(answer[key])}


def _is_list(answer: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(answer, list | tuple)


def _is_object(answer: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(answer, Mapping)


def _is_text(block: object) -> TypeGuard[Mapping[str, Any]]:
    return _is_object(block) and block.get("type") == "text" and isinstance(block.get("text"), str)
