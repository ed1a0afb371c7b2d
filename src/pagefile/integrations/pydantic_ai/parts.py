"""PydanticAI's messages as texts, and our turns as PydanticAI's messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_ai import BinaryContent, DeferredToolRequests
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_core import to_json

from pagefile.engine.drafts import result_text
from pagefile.window.candidates import Message


def prompt_text(prompt: str | Sequence[UserContent] | None) -> str | None:
    """What the user said; a file is named, not told."""
    if prompt is None or isinstance(prompt, str):
        return _storable(prompt)
    return _storable("\n".join(_content_text(item) for item in prompt))


def answer_text(output: object) -> str | None:
    """What the run gave, as the assistant's message; None while tools are still to be run elsewhere."""
    if output is None or isinstance(output, DeferredToolRequests):
        return None
    if isinstance(output, BinaryContent):
        return f"[{output.media_type}]"
    return _storable(output if isinstance(output, str) else to_json(output, fallback=str).decode())


def asked_last(messages: Sequence[ModelMessage]) -> str | None:
    """The newest message of a user in a history."""
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, UserPromptPart) and (text := prompt_text(part.content)):
                return text
    return None


def part_text(part: object) -> str:
    """What a part costs tokens for; files are not counted."""
    if isinstance(part, UserPromptPart):
        return prompt_text(part.content) or ""
    if isinstance(part, BaseToolReturnPart):
        return cast("BaseToolReturnPart[Any]", part).model_response_str()
    if isinstance(part, BaseToolCallPart):
        call = cast("BaseToolCallPart[Any]", part)
        return f"{call.tool_name} {call.args_as_json_str()}"
    content: object = getattr(part, "content", None)
    return content if isinstance(content, str) else ""


def earlier_messages(window: Sequence[Message]) -> list[ModelMessage]:
    """Turns of a window as a history: each call with its result, each answer a response of its own."""
    tools: dict[str, str] = {}
    found: list[ModelMessage] = []
    for message in window:
        text = str(message["content"])
        if message["role"] == "user":
            found.append(ModelRequest([UserPromptPart(text)]))
        elif message["role"] == "tool":
            call_id = str(message["tool_call_id"])
            found.append(ModelRequest([ToolReturnPart(tools[call_id], text, call_id)]))
        elif message["role"] == "assistant":
            calls = [_call(call) for call in _mappings(message.get("tool_calls"))]
            tools |= {call.tool_call_id: call.tool_name for call in calls}
            found.append(ModelResponse([*([TextPart(text)] if text else []), *calls]))
    return found


def _call(call: Mapping[str, object]) -> ToolCallPart:
    function = cast("Mapping[str, str]", call["function"])
    given: object = json.loads(function["arguments"])
    arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {"input": given}
    return ToolCallPart(function["name"], arguments, str(call["id"]))


def _mappings(value: object) -> Sequence[Mapping[str, object]]:
    return cast("Sequence[Mapping[str, object]]", value or ())


def _content_text(item: UserContent) -> str:
    if isinstance(item, str):
        return item
    return item.content if isinstance(item, TextContent) else f"[{item.kind}]"


def _storable(text: str | None) -> str | None:
    """Text that every store can hold, None when nothing is left of it."""
    return (result_text(text) if text else None) or None
