"""OpenAI's Chat Completions: messages with a role, and tool calls beside the content."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pagefile.content import Media, Message, Part, Role, Text, ToolCall, ToolResult
from pagefile.shapes.filling import Filling
from pagefile.shapes.media import media_block, note, text_block
from pagefile.shapes.reading import Reader, content_blocks
from pagefile.shapes.skeleton import Path, as_list, as_object

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
#: Fields beside the content in which providers give what their model thought.
_REASONING = ("reasoning_content", "reasoning")


def read(reader: Reader) -> Message:
    """One message, taken apart."""
    raw = reader.raw
    role = ROLES.get(str(raw.get("role")))
    if role is None:
        raise reader.refuse(f"has the role {raw.get('role')!r}: known are {', '.join(ROLES)}.")
    if role == "tool":
        reader.result(raw.get("content"), ("content",), call_id=raw.get("tool_call_id"), tool=_named(raw))
        return reader.message(role)
    for name in _REASONING:
        if isinstance(raw.get(name), str) and raw[name]:
            reader.reasoning([(raw[name], (name,))], {})
    content_blocks(
        reader, raw.get("content"), ("content",), lambda block, path: _read_block(reader, block, path)
    )
    _read_refusal(reader)
    _read_calls(reader)
    if not reader.parts and raw.get("parsed") is not None:
        reader.value(raw["parsed"], ("parsed",))
    return reader.message(role)


def _named(raw: Mapping[str, Any]) -> str | None:
    return raw["name"] if isinstance(raw.get("name"), str) else None


def _read_block(reader: Reader, block: Any, path: Path) -> None:
    given = reader.mapping(block)
    for kind in ("text", "refusal"):
        if given.get("type") == kind and isinstance(given.get(kind), str):
            reader.text(given[kind], (*path, kind))
            return
    reader.block(block, path)


def _read_refusal(reader: Reader) -> None:
    refusal = reader.raw.get("refusal")
    if isinstance(refusal, str) and refusal:
        reader.text(refusal, ("refusal",))


def _read_calls(reader: Reader) -> None:
    calls = reader.raw.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise reader.refuse("has tool_calls that are not a list: give a list of calls.")
    for place, call in enumerate(as_list(calls) or ()):
        _read_call(reader, reader.mapping(call), ("tool_calls", place))
    legacy = as_object(reader.raw.get("function_call"))
    if legacy is not None:
        _read_function(reader, legacy, None, ("function_call",))


def _read_call(reader: Reader, call: Mapping[str, Any], path: Path) -> None:
    custom, function = as_object(call.get("custom")), as_object(call.get("function"))
    if custom is not None and isinstance(custom.get("input"), str):
        tool, given = str(custom.get("name") or ""), custom["input"]
        reader.call(tool, given, call.get("id"), (*path, "custom", "input"))
    elif function is not None:
        _read_function(reader, function, call.get("id"), (*path, "function"))
    else:
        reader.other(dict(call), path)


def _read_function(reader: Reader, function: Mapping[str, Any], call_id: object, path: Path) -> None:
    tool, arguments = str(function.get("name") or ""), function.get("arguments")
    if isinstance(arguments, str):
        reader.spelled_call(tool, arguments, call_id, (*path, "arguments"))
    else:
        # Some local servers give the object itself.
        reader.call(tool, arguments, call_id, (*path, "arguments"))


# -- writing --------------------------------------------------------------------------------------------------------


def write(message: Message, filling: Filling) -> list[dict[str, Any]]:
    """The messages that say it: a result is a message of its own."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    said = [part for part in message.parts if not isinstance(part, ToolResult)]
    messages = [_result(part, filling) for part in results]
    if message.role != "tool" and (said or not results):
        messages += _spoken(message, said, filling)
    return messages


def _result(part: ToolResult, filling: Filling) -> dict[str, Any]:
    # A tool's message has no room for pictures.
    notes = [note(media) for media in part.media]
    content = "\n".join([filling.result(part.step), *notes]) if notes else filling.result(part.step)
    return {"role": "tool", "tool_call_id": filling.steps[part.step].call_id, "content": content}


def _spoken(message: Message, parts: Sequence[Part], filling: Filling) -> list[dict[str, Any]]:
    blocks = [block for part in parts if (block := _block(part, message, filling)) is not None]
    calls = [_call(part, filling) for part in parts if isinstance(part, ToolCall)]
    if not blocks and not calls and message.shape not in {"openai", "plain"}:
        return []
    spoken = {"role": message.role, "content": _content(blocks, message.role)}
    return [{**spoken, "tool_calls": calls} if calls else spoken]


def _content(blocks: Sequence[dict[str, Any]], role: str) -> Any:
    """A text where a text will do: what is not the user's has no pictures in it."""
    if role != "user" or len(blocks) < 2:
        texts = [block.get("text") for block in blocks]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(cast("list[str]", texts))
    return list(blocks)


def _block(part: Part, message: Message, filling: Filling) -> dict[str, Any] | None:
    match part:
        case Text(text):
            return text_block(text, "openai") if text or message.shape == "openai" else None
        case Media() if message.role == "user":
            return media_block(part, "openai", filling.blobs)
        case Media():
            return text_block(note(part), "openai")
        case _:
            return None


def _call(part: ToolCall, filling: Filling) -> dict[str, Any]:
    step = filling.steps[part.step]
    function = {"name": step.tool, "arguments": filling.arguments(part.step)}
    return {"id": step.call_id, "type": "function", "function": function}


def joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with what the assistant said and called in one message: a call has to be followed by its result."""
    found: list[dict[str, Any]] = []
    for message in messages:
        last = found[-1] if found else None
        if last is not None and last["role"] == message["role"] == "assistant" and _calls(last, message):
            found[-1] = _joined(last, message)
        else:
            found.append(message)
    return found


def _calls(*messages: dict[str, Any]) -> bool:
    return any(message.get("tool_calls") for message in messages)


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    blocks = [*_as_blocks(one.get("content")), *_as_blocks(other.get("content"))]
    calls = [*(one.get("tool_calls") or ()), *(other.get("tool_calls") or ())]
    return {**one, **other, "content": _content(blocks, "assistant"), "tool_calls": calls}


def _as_blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [text_block(content, "openai")] if content else []
    return content or []
