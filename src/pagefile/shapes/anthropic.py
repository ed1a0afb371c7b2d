"""Anthropic's Messages: content in blocks, results in the user's messages, alternating roles."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pagefile.content import Message, Part, Reasoning, Role, ToolCall, ToolResult
from pagefile.shapes.media import media_block, said_block, text_block
from pagefile.shapes.message_reader import BlockReader, Reader
from pagefile.shapes.skeleton import Filling, Path, as_object

ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
#: The user message inserted if the assistant speaks first.
_OPENING = "…"
#: The text of an error if the tool returned none.
_FAILED = "error"


def read(reader: Reader) -> Message:
    role = reader.role(ROLES)
    foreign = reader.raw.get("reasoning")
    if isinstance(foreign, str) and foreign:
        # Reasoning of another provider's model: it does not become a block, since it lacks a signature.
        reader.reasoning([(foreign, ("reasoning",))], {})
    reader.content({"text": "text"}, _BLOCKS)
    if reader.parts and all(isinstance(part, ToolResult) for part in reader.parts):
        return reader.message("tool")
    return reader.message(role)


def _read_call(reader: Reader, block: Mapping[str, Any], path: Path) -> None:
    reader.call(str(block.get("name") or ""), block.get("input"), block.get("id"), (*path, "input"))


def _read_result(reader: Reader, block: Mapping[str, Any], path: Path) -> None:
    error = block.get("is_error") is True
    reader.result(block.get("content"), (*path, "content"), call_id=block.get("tool_use_id"), error=error)


def _read_thinking(reader: Reader, block: Mapping[str, Any], path: Path) -> None:
    text = block.get("thinking")
    texts = [(text, (*path, "thinking"))] if isinstance(text, str) else []
    sealed = {key: value for key, value in block.items() if key != "thinking" or not texts}
    reader.reasoning(texts, sealed)
    for key in sealed:
        reader.sealed(key, (*path, key))


_BLOCKS: Mapping[str, BlockReader] = {
    "thinking": _read_thinking,
    "redacted_thinking": _read_thinking,
    "tool_use": _read_call,
    "tool_result": _read_result,
}


# -- writing ----------------------------------------------------------------------------------------------------------


def write(message: Message, filling: Filling) -> list[dict[str, Any]]:
    """The message; none if nothing is left of it that Anthropic accepts."""
    blocks = [block for part in message.parts if (block := _block(part, message, filling)) is not None]
    if not blocks and message.shape != "anthropic":
        return []
    role = {"tool": "user", "developer": "system"}.get(message.role, message.role)
    return [{"role": role, "content": blocks}]


def _block(part: Part, message: Message, filling: Filling) -> dict[str, Any] | None:
    match part:
        case Reasoning(text, sealed) if message.shape == "anthropic":
            kind = sealed.get("type", "thinking")
            return {"type": kind, **sealed, **({"thinking": text} if kind == "thinking" else {})}
        case ToolCall(number):
            step = filling.steps[number]
            value = step.input if isinstance(step.input, dict) else {"input": step.input}
            return {"type": "tool_use", "id": step.call_id, "name": step.tool, "input": value}
        case ToolResult():
            return _result(part, filling)
        case _:
            return said_block(part, message, "anthropic", filling.blobs)


def _result(part: ToolResult, filling: Filling) -> dict[str, Any]:
    step = filling.steps[part.step]
    text = step.result
    said = list(_result_blocks(text, part.blocks))
    # The API refuses an error without text.
    content: Any = text if text.strip() else _FAILED if part.error else ""
    if part.media or len(said) > 1 or any(block["type"] != "text" for block in said):
        content = [*said, *(media_block(media, "anthropic", filling.blobs) for media in part.media)]
    result = {"type": "tool_result", "tool_use_id": step.call_id, "content": content}
    return {**result, "is_error": True} if part.error else result


def _result_blocks(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The text of a result, with its embedded blocks as blocks; a single text if it is not the original one."""
    found = [_block_at(text, start, end) for start, end in spans]
    blocks = [block for block in found if block is not None]
    if len(blocks) < len(found):
        spans, blocks = (), []
    starts, ends = [0, *(end + 1 for _, end in spans)], [*(start for start, _ in spans), len(text)]
    for start, end, block in zip_longest(starts, ends, blocks):
        if (between := text[start:end].removesuffix("\n" if block else "")).strip():
            yield text_block(between, "anthropic")
        if block:
            yield block


def _block_at(text: str, start: int, end: int) -> dict[str, Any] | None:
    try:
        return as_object(json.loads(text[start:end]))
    except ValueError:
        return None


def alternating(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in messages:
        if found and found[-1]["role"] == message["role"]:
            found[-1]["content"].extend(message["content"])
        else:
            found.append(message)
    return found


def beginning_with_user(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if messages and messages[0]["role"] != "user":
        return [{"role": "user", "content": [text_block(_OPENING, "anthropic")]}, *messages]
    return messages
