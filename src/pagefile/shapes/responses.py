"""OpenAI's Responses: a list of items, of which messages are one kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from pagefile.content import Media, Message, Other, Part, Reasoning, Role, Text, ToolCall, ToolResult
from pagefile.shapes import openai
from pagefile.shapes.media import media_block, said_block, text_block
from pagefile.shapes.message_reader import Reader
from pagefile.shapes.skeleton import Filling, Path, as_list, as_object
from pagefile.shapes.tool_arguments import compact

_ROLES: Mapping[str, Role] = {name: role for name, role in openai.ROLES.items() if role != "tool"}
_TEXTS = {**openai.TEXTS, "input_text": "text", "output_text": "text"}
# What is looked for may have no hash: a message is what a caller sent.
_RESULTS = ("function_call_output", "custom_tool_call_output")


def read(reader: Reader) -> Message:
    raw = reader.raw
    kind = raw.get("type") or ("message" if "role" in raw else "item_reference")
    if kind == "message":
        role = reader.role(_ROLES)
        reader.content(_TEXTS)
        return reader.message(role)
    tool, call_id = raw["name"] if isinstance(raw.get("name"), str) else None, raw.get("call_id")
    if kind in _RESULTS:
        reader.result(raw.get("output"), ("output",), call_id=call_id, tool=tool)
        return reader.message("tool")
    if kind == "reasoning":
        _read_reasoning(reader)
    elif kind == "function_call" and isinstance(raw.get("arguments"), str):
        reader.spelled_call(tool or "", raw["arguments"], call_id, ("arguments",))
    elif kind == "custom_tool_call" and isinstance(raw.get("input"), str):
        reader.call(tool or "", raw["input"], call_id, ("input",))
    else:
        reader.other(dict(raw), ())
    return reader.message("assistant")


def _read_reasoning(reader: Reader) -> None:
    """Its summary and its text are one piece of reasoning in several parts; the rest of the item signs it."""
    raw = reader.raw
    texts: list[tuple[str, Path]] = []
    for name in ("summary", "content"):
        for place, piece in enumerate(as_list(raw.get(name)) or ()):
            if isinstance(text := (as_object(piece) or {}).get("text"), str):
                texts.append((text, (name, place, "text")))
    sealed = {key: value for key, value in raw.items() if key not in {"summary", "content", "type"}}
    reader.reasoning(texts, sealed)
    for key in sealed:
        reader.sealed(key, (key,))


# -- writing ----------------------------------------------------------------------------------------------------------


def write(message: Message, filling: Filling) -> list[dict[str, Any]]:
    """The items for it: consecutive texts are one message, each call and each result a separate item."""
    items: list[dict[str, Any]] = []
    said: list[Part] = []
    for part in message.parts:
        if isinstance(part, (Text, Media)) or (isinstance(part, Other) and message.role == "user"):
            said.append(part)
            continue
        items += _message(message, said, filling)
        items += _item(part, message, filling)
        said = []
    if not message.parts and message.shape == "responses":
        return [{"role": message.role, "content": ""}]
    return [*items, *_message(message, said, filling)]


def _message(message: Message, parts: Sequence[Part], filling: Filling) -> list[dict[str, Any]]:
    found = [said_block(part, message, "responses", filling.blobs) for part in parts]
    blocks = [block for block in found if block is not None]
    if not blocks:
        return []
    only = blocks[0].get("text") if len(blocks) == 1 else None
    content = blocks if only is None else only
    if message.role == "assistant" and only is None:
        content = "\n".join(str(block.get("text", "")) for block in blocks)
    return [{"role": message.role, "content": content}]


def _item(part: Part, message: Message, filling: Filling) -> list[dict[str, Any]]:
    match part:
        case ToolCall(number):
            step = filling.steps[number]
            call = {"call_id": step.call_id, "name": step.tool, "arguments": compact(step.input)}
            return [{"type": "function_call", **call}]
        case ToolResult(number, media):
            step = filling.steps[number]
            output: Any = step.result
            if media:
                said = [text_block(step.result, "responses")] if step.result else []
                output = [*said, *(media_block(one, "responses", filling.blobs) for one in media)]
            return [{"type": "function_call_output", "call_id": step.call_id, "output": output}]
        case Reasoning(text, sealed) if message.shape == "responses":
            summary = [{"type": "summary_text", "text": text}] if text else []
            return [{**sealed, "type": "reasoning", "summary": summary}]
        case Other(dict(value)) if message.shape == "responses" and len(message.parts) == 1:
            return [dict(value)]
        case _:
            return []
