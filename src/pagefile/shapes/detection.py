"""Detects what was given: which of the three shapes, a complete response around messages, or a fragment, which is refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefile.content import Shape
from pagefile.shapes.message_reader import refused
from pagefile.shapes.skeleton import as_list, as_object, objects_in

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
#: Items of OpenAI Responses that have a text without a role.
_SPEAKING_ITEMS = frozenset({"reasoning", "configuration_update"})
#: How the events of a stream begin: "response." for OpenAI Responses, the rest for Anthropic.
_EVENTS = ("response.", "content_block_", "message_start", "message_delta", "message_stop")


def shape_of(messages: Sequence[tuple[int, Mapping[str, Any]]], default: Shape | None = None) -> Shape:
    """The shape of the numbered messages; the default if nothing distinguishes them.

    Without a default, text-only messages are "plain", since all providers share that format; the rest is
    OpenAI Chat. Messages in different shapes raise `InvalidArgumentError`.
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
    blocks = objects_in(message.get("content"))
    return next((shape for block in blocks if (shape := block_shape(block)) is not None), None)


def _is_text(message: Mapping[str, Any]) -> bool:
    blocks = as_list(message.get("content")) or ()
    return all((as_object(block) or {}).get("type") == "text" for block in blocks)


def block_shape(block: Mapping[str, Any]) -> Shape | None:
    """The only shape that has such a block; None if it is unknown, or several have it."""
    kind = str(block.get("type"))
    return _BLOCKS.get(kind) or ("anthropic" if kind.endswith("_tool_result") else None)


def unwrapped(message: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """The messages of a complete response, or the message itself."""
    kind = message.get("object")
    if kind == "chat.completion" and "role" not in message:
        yield _chosen(message, index)
    elif kind == "response" and isinstance(message.get("output"), list):
        yield from objects_in(message["output"])
    else:
        _refuse_pieces(message, index)
        yield message


def _chosen(completion: Mapping[str, Any], index: int) -> dict[str, Any]:
    messages = objects_in([choice.get("message") for choice in objects_in(completion.get("choices"))])
    if len(messages) != 1:
        raise refused(
            index,
            f"has {len(messages)} choices: give the message of the one that was taken, choices[0].message.",
        )
    return messages[0]


def _refuse_pieces(message: Mapping[str, Any], index: int) -> None:
    """Fragments would be stored as unknown items, and nothing they say would be remembered."""
    kind = str(message.get("type"))
    if message.get("object") == "chat.completion.chunk" or kind.startswith(_EVENTS):
        raise refused(index, "is a piece of a stream: collect the stream, and give the whole message.")
    if "role" in message:
        return
    if kind in {"text", "refusal"} or block_shape(message) is not None:
        raise refused(
            index,
            f"is a block of a message ({kind!r}), not a message: give {{'role': 'assistant', 'content': [the blocks]}}.",
        )
    if "type" in message and kind not in _SPEAKING_ITEMS and _has_text(message):
        raise refused(
            index,
            f"has the type {kind!r}, which no provider has, and no role: give {{'role': 'user', 'content': '…'}}, or a message "
            "of OpenAI Chat, OpenAI Responses or Anthropic.",
        )


def _has_text(message: Mapping[str, Any]) -> bool:
    said = message.get("content") or message.get("text")
    return isinstance(said, str) or any(isinstance(piece.get("text"), str) for piece in objects_in(said))
