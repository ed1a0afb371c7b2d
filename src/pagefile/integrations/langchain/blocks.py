"""Converts LangChain's messages for the log: text, thoughts, calls, images and files, in any provider's block format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    convert_to_openai_data_block,
    is_data_content_block,
)

from pagefile.integrations.recorder import Asked, Called, Said, Shown, Thought
from pagefile.shapes import note
from pagefile.shapes.media import read_media

M = TypeVar("M", bound=BaseMessage)

#: Blocks whose text belongs to the message.
_TEXTS = frozenset({"text", "input_text", "output_text"})
#: Skipped: these calls are in `tool_calls` too.
_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call"})
_THINKING = frozenset({"thinking", "redacted_thinking"})


def asked(humans: Sequence[BaseMessage]) -> Asked:
    """What the user said, in one message or several."""
    blocks: list[str | Shown] = []
    for human in humans:
        blocks += [*(["\n\n"] if blocks else []), *shown_blocks(human)]
    return Asked(tuple(blocks))


def said(message: AIMessage) -> Said:
    """What the model said, thought and called in one message."""
    blocks = [*_beside(message), *(_own(block, message) for block in _blocks(message))]
    calls = [Called(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    return Said((*(block for block in blocks if block is not None), *calls))


def shown_blocks(message: BaseMessage) -> tuple[str | Shown, ...]:
    """The texts, images and files of a message."""
    return tuple(_shown(block) for block in _blocks(message))


def with_media_named(message: M) -> M:
    """The message with its images and files replaced by their names; unchanged if it has none."""
    content = cast("Any", message.content)
    if isinstance(content, str):
        return message
    named = [_named(block) for block in content]
    return message if named == content else message.model_copy(update={"content": named})


def _named(block: Any) -> Any:
    shown = _shown(block)
    found = None if isinstance(shown, str) else read_media(shown)
    return block if found is None else {"type": "text", "text": note(found.media)}


def _blocks(message: BaseMessage) -> Iterable[Any]:
    content = cast("Any", message.content)
    return [content] if isinstance(content, str) else content


def _shown(block: Any) -> str | Shown:
    if isinstance(block, str):
        return block
    given = cast("dict[str, Any]", block)
    if given.get("type") in _TEXTS and isinstance(given.get("text"), str):
        return given["text"]
    return _data(given)


def _data(block: dict[str, Any]) -> Shown:
    """LangChain's own block in a provider's format; any other unchanged."""
    if not is_data_content_block(block):
        return block
    try:
        return convert_to_openai_data_block(block)
    except (KeyError, ValueError):
        return block


def _own(block: Any, message: AIMessage) -> str | Thought | Shown | None:
    """A block from the model; None for a tool call."""
    kind = block.get("type") if isinstance(block, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - blocks are whatever a provider gives
    given = cast("Mapping[str, Any]", block)
    if kind in _CALLS:
        return None
    if kind in _THINKING:
        sealed = {key: value for key, value in given.items() if key not in {"thinking", "index"}}
        return Thought(str(given.get("thinking") or ""), sealed, anthropic=True)
    return _reasoning(given, message) if kind == "reasoning" else _shown(block)


def _reasoning(block: Mapping[str, Any], message: AIMessage) -> Thought:
    """A reasoning block of LangChain's, or of OpenAI's, which splits its text."""
    pieces = cast("list[Mapping[str, Any]]", block.get("summary") or [])
    text = str(block.get("reasoning") or "\n".join(str(piece.get("text") or "") for piece in pieces))
    signature = block.get("signature") or cast("dict[str, Any]", block.get("extras") or {}).get("signature")
    if signature and message.response_metadata.get("model_provider") == "anthropic":
        return Thought(text, {"type": "thinking", "signature": signature}, anthropic=True)
    left_out = {"reasoning", "summary", "index"}
    sealed = {key: value for key, value in block.items() if key not in left_out}
    return Thought(text, sealed if sealed.keys() - {"type"} else {})


def _beside(message: AIMessage) -> Iterator[Thought]:
    """Thoughts that a provider puts beside the content."""
    text: Any = message.additional_kwargs.get("reasoning_content")
    if isinstance(text, str) and text:
        yield Thought(text)
