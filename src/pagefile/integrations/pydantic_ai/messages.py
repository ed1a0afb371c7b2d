"""PydanticAI's messages for the log, as text, and our turns as PydanticAI's messages."""

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

from pydantic_ai import BinaryContent, DeferredToolRequests
from pydantic_ai import messages as ai
from pydantic_core import to_json, to_jsonable_python

from pagefile.content import Media, Message, Text, ToolCall, ToolResult, media_in
from pagefile.edge.recorder import Asked, Called, Happened, Returned, Said, Shown, Thought
from pagefile.engine.arguments import result_text
from pagefile.shapes.media import note
from pagefile.shapes.skeleton import Blobs
from pagefile.shapes.steps import ShownStep, ShownSteps
from pagefile.window.candidates import ShownTurn

# -- for the log ------------------------------------------------------------------------------------------------------


def asked(prompt: str | Sequence[ai.UserContent] | None, history: Sequence[ai.ModelMessage]) -> Asked | None:
    """What the user said and showed: in the run's prompt, else in the newest message of its history."""
    contents = [prompt] if prompt else []
    for message in reversed(history):
        prompts = [part.content for part in reversed(message.parts) if isinstance(part, ai.UserPromptPart)]
        contents += [content for content in prompts if content]
    blocks = (tuple(_blocks([content] if isinstance(content, str) else content)) for content in contents)
    return next((Asked(found) for found in blocks if found), None)


def waiting_run(prompt: object, history: Sequence[ai.ModelMessage]) -> str | None:
    """The run that this one goes on with: it ended with calls that waited for an approval, or for results from elsewhere."""
    last = history[-1] if history else None
    if prompt or not isinstance(last, ai.ModelResponse):
        return None
    return last.run_id if any(isinstance(part, ai.ToolCallPart) for part in last.parts) else None


def happened(
    messages: Iterable[ai.ModelMessage], run_ids: Collection[str], apart: Collection[str]
) -> list[Happened]:
    """What the model said in runs and what its tools returned; `apart` names tools that are not steps of a turn."""
    found: list[Happened] = []
    calls: dict[str, Called] = {}
    listed = list(messages)
    for message, following in zip_longest(listed, listed[1:]):
        if isinstance(message, ai.ModelResponse):
            said = _assistant_message(message, apart)
            calls |= {str(call.call_id): call for call in said.calls}
            if _returns(following, apart) == []:
                said = Said(tuple(block for block in said.blocks if not isinstance(block, Called)))
            found += [said] if message.run_id in run_ids else []
        elif message.run_id in run_ids:
            found += [returned(part, calls) for part in _returns(message, apart) or ()]
    return found


def _returns(message: ai.ModelMessage | None, apart: Collection[str]) -> list[ai.ToolReturnPart] | None:
    """Tool results in a message; empty if each tool only asked for a retry. None if no tool was called."""
    parts = () if message is None else message.parts
    returns = [part for part in parts if isinstance(part, ai.ToolReturnPart) and part.tool_name not in apart]
    if not returns:
        return None
    return [] if all(part.outcome == "retried" for part in returns) else returns


def called(call: ai.BaseToolCallPart[Any]) -> Called:
    return Called(call.tool_name, call.args_as_dict(), call.tool_call_id)


def returned(part: ai.ToolReturnPart, calls: Mapping[str, Called]) -> Returned:
    call = calls.get(part.tool_call_id) or Called(part.tool_name, None, part.tool_call_id)
    blocks = (part.model_response_str(), *_blocks(part.files))
    return Returned(call, blocks, error=part.outcome in ai.ERROR_OUTCOMES)


def _assistant_message(response: ai.ModelResponse, apart: Collection[str]) -> Said:
    blocks: list[str | Thought | Called | Shown] = []
    for part in response.parts:
        if isinstance(part, ai.TextPart):
            blocks.append(part.content)
        elif isinstance(part, ai.ThinkingPart):
            blocks.append(_thought(part))
        elif isinstance(part, ai.ToolCallPart):
            blocks += [] if part.tool_name in apart else [called(part)]
        elif isinstance(part, ai.FilePart):
            blocks.append(_binary(part.content))
        else:
            # Results of the provider's built-in tools, kept verbatim.
            blocks.append({"type": part.part_kind, "value": to_jsonable_python(part, fallback=str)})
    return Said(tuple(blocks))


def _thought(part: ai.ThinkingPart) -> Thought:
    if part.provider_name == "anthropic" and part.signature:
        if part.id == "redacted_thinking":
            return Thought("", {"type": "redacted_thinking", "data": part.signature}, anthropic=True)
        return Thought(part.content, {"type": "thinking", "signature": part.signature}, anthropic=True)
    names = ("id", "signature", "provider_name", "provider_details")
    sealed = {name: getattr(part, name) for name in names if getattr(part, name) is not None}
    return Thought(part.content, {"type": "reasoning", **sealed} if sealed else {})


def _blocks(contents: Iterable[Any]) -> Iterable[str | Shown]:
    for item in contents:
        if isinstance(item, str):
            yield item
        elif isinstance(item, ai.TextContent):
            yield item.content
        elif not isinstance(item, ai.CachePoint):
            yield _media_block(item)


def _media_block(item: Any) -> Shown:
    if isinstance(item, BinaryContent):
        return _binary(item)
    if isinstance(item, ai.ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, ai.AudioUrl | ai.DocumentUrl | ai.VideoUrl):
        return {"type": "file", "file": {"file_url": item.url}}
    return {"type": str(item.kind), "value": to_jsonable_python(item, fallback=str)}


def _binary(content: BinaryContent) -> Shown:
    data = base64.b64encode(content.data).decode()
    if content.is_image:
        return {"type": "image_url", "image_url": {"url": f"data:{content.media_type};base64,{data}"}}
    if content.is_audio:
        return {"type": "input_audio", "input_audio": {"data": data, "format": content.format}}
    return {"type": "file", "file": {"file_data": f"data:{content.media_type};base64,{data}"}}


# -- as text, and from the log ----------------------------------------------------------------------------------------


def answer_text(output: object) -> str | None:
    """The run's output as the assistant's message; None while deferred tools are still to be run elsewhere."""
    if output is None or isinstance(output, DeferredToolRequests):
        return None
    if isinstance(output, BinaryContent):
        return f"[{output.media_type}]"
    text = output if isinstance(output, str) else to_json(output, fallback=str).decode()
    return result_text(text) or None


def part_text(part: object) -> str:
    """The text of a part, for counting tokens; files are not counted."""
    if isinstance(part, ai.UserPromptPart):
        contents = [part.content] if isinstance(part.content, str) else part.content
        return "\n".join(map(_content_text, contents))
    if isinstance(part, ai.BaseToolReturnPart):
        return cast("ai.BaseToolReturnPart[Any]", part).model_response_str()
    if isinstance(part, ai.BaseToolCallPart):
        call = cast("ai.BaseToolCallPart[Any]", part)
        return f"{call.tool_name} {call.args_as_json_str()}"
    content: object = getattr(part, "content", None)
    return content if isinstance(content, str) else ""


def as_history(turns: Iterable[ShownTurn], blobs: Blobs) -> list[ai.ModelMessage]:
    """A window's turns as a history: the model's text and calls in one response, images and files beside their text."""
    said = ((message, turn.steps) for turn in turns for message in turn.messages)
    return [message for one, steps in said for message in _messages(one, steps, blobs)]


def _messages(said: Message, steps: ShownSteps, blobs: Blobs) -> Iterator[ai.ModelMessage]:
    texts = [part.text for part in said.parts if isinstance(part, Text) and part.text]
    if said.role == "assistant":
        calls = [_call(steps[part.step]) for part in said.parts if isinstance(part, ToolCall)]
        if texts or calls:
            yield ai.ModelResponse([*map(ai.TextPart, texts), *calls])
        return
    returns = [steps[part.step] for part in said.parts if isinstance(part, ToolResult)]
    given: list[ai.ModelRequestPart] = [
        ai.ToolReturnPart(step.tool, step.result, step.call_id) for step in returns
    ]
    if said.role in {"system", "developer"}:
        given += map(ai.SystemPromptPart, texts)
    else:
        # Images and files of a tool follow its text as the user's.
        shown = list(media_in([said]))
        content = [*texts, *(_file(media, blobs) for media in shown)]
        given += [ai.UserPromptPart(content)] if shown else map(ai.UserPromptPart, texts)
    if given:
        yield ai.ModelRequest(given)


def _file(media: Media, blobs: Blobs) -> ai.UserContent:
    data = blobs.get(media.blob) if media.blob else None
    if data is not None and media.media_type:
        return BinaryContent(data, media_type=media.media_type)
    at = media.url or ""
    return ai.ImageUrl(at) if media.kind == "image" and at.startswith("http") else note(media)


def _call(step: ShownStep) -> ai.ToolCallPart:
    arguments = dict(step.input) if isinstance(step.input, Mapping) else {"input": step.input}
    return ai.ToolCallPart(step.tool, arguments, step.call_id)


def _content_text(item: ai.UserContent) -> str:
    if isinstance(item, str):
        return item
    return item.content if isinstance(item, ai.TextContent) else f"[{item.kind}]"
