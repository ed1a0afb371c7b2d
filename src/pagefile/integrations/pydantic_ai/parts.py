"""PydanticAI's messages as text, and our turns as PydanticAI's messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_ai import BinaryContent, DeferredToolRequests
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_core import to_json

from pagefile.content import Media, Message, Part, Text, ToolCall, ToolResult
from pagefile.engine.drafts import result_text
from pagefile.shapes import ShownStep
from pagefile.shapes.media import note
from pagefile.window.shown import ShownTurn


def prompt_text(prompt: str | Sequence[UserContent] | None) -> str | None:
    """The user's message as text; files only by name."""
    if prompt is None or isinstance(prompt, str):
        return _storable(prompt)
    return _storable("\n".join(_content_text(item) for item in prompt))


def answer_text(output: object) -> str | None:
    """The run's output as the assistant's message; None while deferred tools are still to be run elsewhere."""
    if output is None or isinstance(output, DeferredToolRequests):
        return None
    if isinstance(output, BinaryContent):
        return f"[{output.media_type}]"
    return _storable(output if isinstance(output, str) else to_json(output, fallback=str).decode())


def part_text(part: object) -> str:
    """The text of a part, for counting tokens; files are not counted."""
    if isinstance(part, UserPromptPart):
        return prompt_text(part.content) or ""
    if isinstance(part, BaseToolReturnPart):
        return cast("BaseToolReturnPart[Any]", part).model_response_str()
    if isinstance(part, BaseToolCallPart):
        call = cast("BaseToolCallPart[Any]", part)
        return f"{call.tool_name} {call.args_as_json_str()}"
    content: object = getattr(part, "content", None)
    return content if isinstance(content, str) else ""


def earlier_messages(turns: Iterable[ShownTurn], blobs: Mapping[str, bytes]) -> list[ModelMessage]:
    """A window's turns as a history: the model's text and calls in one response, images and files beside their text."""
    return [
        message for turn in turns for said in turn.messages for message in _messages(said, turn.steps, blobs)
    ]


def _messages(
    said: Message, steps: Mapping[int, ShownStep], blobs: Mapping[str, bytes]
) -> Iterator[ModelMessage]:
    texts = [part.text for part in said.parts if isinstance(part, Text) and part.text]
    if said.role == "assistant":
        calls = [_call(steps[part.step]) for part in said.parts if isinstance(part, ToolCall)]
        if texts or calls:
            yield ModelResponse([*map(TextPart, texts), *calls])
        return
    given: list[ModelRequestPart] = [
        _return(steps[part.step]) for part in said.parts if isinstance(part, ToolResult)
    ]
    if said.role in {"system", "developer"}:
        given += map(SystemPromptPart, texts)
    else:
        shown = [media for part in said.parts for media in _media(part)]
        content = [*texts, *(_file(media, blobs) for media in shown)]
        given += [UserPromptPart(content)] if shown else map(UserPromptPart, texts)
    if given:
        yield ModelRequest(given)


def _media(part: Part) -> Sequence[Media]:
    """Images and files; those of a tool follow its text as the user's."""
    return (part,) if isinstance(part, Media) else part.media if isinstance(part, ToolResult) else ()


def _file(media: Media, blobs: Mapping[str, bytes]) -> UserContent:
    data = blobs.get(media.blob) if media.blob else None
    if data is not None and media.media_type:
        return BinaryContent(data, media_type=media.media_type)
    at = media.url or ""
    return ImageUrl(at) if media.kind == "image" and at.startswith("http") else note(media)


def _call(step: ShownStep) -> ToolCallPart:
    arguments = dict(step.input) if isinstance(step.input, Mapping) else {"input": step.input}
    return ToolCallPart(step.tool, arguments, step.call_id)


def _return(step: ShownStep) -> ToolReturnPart:
    return ToolReturnPart(step.tool, step.result, step.call_id)


def _content_text(item: UserContent) -> str:
    if isinstance(item, str):
        return item
    return item.content if isinstance(item, TextContent) else f"[{item.kind}]"


def _storable(text: str | None) -> str | None:
    """Text that every store can hold; None if nothing is left."""
    return (result_text(text) if text else None) or None
