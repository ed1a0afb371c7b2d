"""Converts PydanticAI's messages for the log: text, thoughts, calls, images and files."""

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pydantic_ai import BinaryContent
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    AudioUrl,
    BaseToolCallPart,
    CachePoint,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
)
from pydantic_core import to_jsonable_python

from pagefile.integrations.recorder import Asked, Called, Happened, Returned, Said, Shown, Thought


def asked(prompt: str | Sequence[UserContent] | None, history: Sequence[ModelMessage]) -> Asked | None:
    """What the user said and showed: in the run's prompt, else in the newest message of its history."""
    contents = [prompt] if prompt else []
    for message in reversed(history):
        prompts = [part.content for part in reversed(message.parts) if isinstance(part, UserPromptPart)]
        contents += [content for content in prompts if content]
    blocks = (tuple(_blocks([content] if isinstance(content, str) else content)) for content in contents)
    return next((Asked(found) for found in blocks if found), None)


def happened(messages: Iterable[ModelMessage], run_id: str, apart: Collection[str]) -> list[Happened]:
    """What the model said in a run and what its tools returned; `apart` names tools that are not steps of a turn."""
    found: list[Happened] = []
    calls: dict[str, Called] = {}
    listed = list(messages)
    for message, following in zip_longest(listed, listed[1:]):
        if isinstance(message, ModelResponse):
            said = _said(message, apart)
            calls |= {str(call.call_id): call for call in said.calls}
            said = said if _returns(following, apart) != [] else _without_calls(said)
            found += [said] if message.run_id == run_id else []
        elif message.run_id == run_id:
            found += [returned(part, calls) for part in _returns(message, apart) or ()]
    return found


def _returns(message: ModelMessage | None, apart: Collection[str]) -> list[ToolReturnPart] | None:
    """Tool results in a message; empty if each tool only asked for a retry. None if no tool was called."""
    parts = () if message is None else message.parts
    returns = [part for part in parts if isinstance(part, ToolReturnPart) and part.tool_name not in apart]
    if not returns:
        return None
    return [] if all(part.outcome == "retried" for part in returns) else returns


def _without_calls(said: Said) -> Said:
    return Said(tuple(block for block in said.blocks if not isinstance(block, Called)))


def called(call: BaseToolCallPart[Any]) -> Called:
    """A tool call."""
    return Called(call.tool_name, call.args_as_dict(), call.tool_call_id)


def returned(part: ToolReturnPart, calls: Mapping[str, Called]) -> Returned:
    """A tool's result; images and files beside its text."""
    call = calls.get(part.tool_call_id) or Called(part.tool_name, None, part.tool_call_id)
    blocks = (part.model_response_str(), *_blocks(part.files))
    return Returned(call, blocks, error=part.outcome in ERROR_OUTCOMES)


def _said(response: ModelResponse, apart: Collection[str]) -> Said:
    blocks: list[str | Thought | Called | Shown] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            blocks.append(part.content)
        elif isinstance(part, ThinkingPart):
            blocks.append(_thought(part))
        elif isinstance(part, ToolCallPart):
            blocks += [] if part.tool_name in apart else [called(part)]
        elif isinstance(part, FilePart):
            blocks.append(_binary(part.content))
        else:
            # Results of the provider's built-in tools, kept verbatim.
            blocks.append({"type": part.part_kind, "value": to_jsonable_python(part, fallback=str)})
    return Said(tuple(blocks))


def _thought(part: ThinkingPart) -> Thought:
    if part.provider_name == "anthropic" and part.signature:
        if part.id == "redacted_thinking":
            return Thought("", {"type": "redacted_thinking", "data": part.signature}, anthropic=True)
        return Thought(part.content, {"type": "thinking", "signature": part.signature}, anthropic=True)
    known = {
        "id": part.id,
        "signature": part.signature,
        "provider_name": part.provider_name,
        "provider_details": part.provider_details,
    }
    sealed = {name: value for name, value in known.items() if value is not None}
    return Thought(part.content, {"type": "reasoning", **sealed} if sealed else {})


def _blocks(contents: Iterable[Any]) -> Iterable[str | Shown]:
    for item in contents:
        if isinstance(item, str):
            yield item
        elif isinstance(item, TextContent):
            yield item.content
        elif not isinstance(item, CachePoint):
            yield _shown(item)


def _shown(item: Any) -> Shown:
    if isinstance(item, BinaryContent):
        return _binary(item)
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, AudioUrl | DocumentUrl | VideoUrl):
        return {"type": "file", "file": {"file_url": item.url}}
    return {"type": str(item.kind), "value": to_jsonable_python(item, fallback=str)}


def _binary(content: BinaryContent) -> Shown:
    data = base64.b64encode(content.data).decode()
    if content.is_image:
        return {"type": "image_url", "image_url": {"url": f"data:{content.media_type};base64,{data}"}}
    if content.is_audio:
        return {"type": "input_audio", "input_audio": {"data": data, "format": content.format}}
    return {"type": "file", "file": {"file_data": f"data:{content.media_type};base64,{data}"}}
