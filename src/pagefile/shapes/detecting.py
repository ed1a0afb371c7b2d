"""Detects which of the three shapes messages are in, from what only one of them has."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pagefile.content import Shape
from pagefile.shapes.reading import refused
from pagefile.shapes.skeleton import as_object

_NAMES: Mapping[Shape, str] = {
    "openai": "OpenAI Chat",
    "responses": "OpenAI Responses",
    "anthropic": "Anthropic",
}
#: Types of blocks that only one shape has.
_BLOCKS: Mapping[str, Shape] = {
    **dict.fromkeys(("image_url", "input_audio", "file"), "openai"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "responses"),
    **dict.fromkeys(
        ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"),
        "anthropic",
    ),
    **dict.fromkeys(("server_tool_use", "web_search_tool_result", "container_upload"), "anthropic"),
}
#: Keys besides role and content that only OpenAI Chat has, or only an Anthropic answer.
_CHAT_KEYS = frozenset({"tool_calls", "function_call", "tool_call_id", "reasoning_content", "audio"})
_ANSWER_KEYS = frozenset({"stop_reason", "stop_sequence"})


def shape_of(messages: Sequence[tuple[int, Mapping[str, Any]]], default: Shape | None = None) -> Shape:
    """The shape of the numbered messages; the default if nothing distinguishes them.

    Without a default, text-only messages are "plain", since all providers share that format; the rest is
    OpenAI Chat. Messages in different shapes raise `InvalidTurnError`.
    """
    found: Shape | None = None
    for index, message in messages:
        mine = _shape(message, index)
        if mine is not None and found is not None and mine != found:
            raise refused(
                index,
                f"is in the shape of {_NAMES[mine]}, those before it are in that of {_NAMES[found]}: give the messages of one "
                "provider at a time.",
            )
        found = mine or found
    return found or default or ("plain" if all(_is_text(message) for _, message in messages) else "openai")


def _shape(message: Mapping[str, Any], index: int) -> Shape | None:
    if _ANSWER_KEYS & message.keys():
        return "anthropic"
    if isinstance(message.get("type"), str) or ("id" in message and "role" not in message):
        return "responses"
    if "role" not in message:
        raise refused(
            index,
            "has neither a role nor a type: give messages of OpenAI Chat, OpenAI Responses or Anthropic.",
        )
    if _CHAT_KEYS & message.keys() or message["role"] in ("tool", "function"):
        return "openai"
    content = message.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return next((shape for block in blocks if (shape := block_shape(block)) is not None), None)


def _is_text(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return all((as_object(block) or {}).get("type") == "text" for block in blocks)


def block_shape(block: Any) -> Shape | None:
    """The only shape that has such a block; None if it is unknown, or several have it."""
    if not isinstance(block, dict):
        return None
    kind = str(cast("dict[str, Any]", block).get("type"))
    return _BLOCKS.get(kind) or ("anthropic" if kind.endswith("_tool_result") else None)
