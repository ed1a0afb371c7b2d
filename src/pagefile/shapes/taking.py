"""Whether a provider accepts messages just as they came: it refuses unknown fields."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pagefile.content import Shape
from pagefile.shapes.detecting import block_shape
from pagefile.shapes.skeleton import as_list, as_object

_CHAT_KEYS = frozenset(
    {"role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id", "function_call"}
)
_ITEM_KEYS = frozenset({"type", "role", "content", "id", "status", "phase"})
_CHAT_BLOCKS = frozenset({"text", "refusal", "image_url", "input_audio", "file"})
_CALL_KEYS = frozenset({"id", "type", "function", "custom"})
#: The fields of text blocks.
_WORD_KEYS: Mapping[Shape, frozenset[str]] = {
    "openai": frozenset({"type", "text", "refusal"}),
    "responses": frozenset({"type", "text", "refusal", "annotations", "logprobs"}),
    "anthropic": frozenset({"type", "text", "citations", "cache_control"}),
}
_WORDS = frozenset({"text", "refusal", "input_text", "output_text"})
#: What a chat message may have instead of content.
_INSTEAD = ("tool_calls", "function_call", "refusal", "audio")


def are_taken(messages: Sequence[Mapping[str, Any]], shape: Shape) -> bool:
    """Whether the messages have only what the provider knows, and their roles are in a valid order."""
    if shape == "anthropic" and any(
        one.get("role") == following.get("role") for one, following in pairwise(messages)
    ):
        return False
    words = [block for one in messages for block in _blocks(one) if block.get("type") in _WORDS]
    return all(map(_TAKEN[shape], messages)) and all(block.keys() <= _WORD_KEYS[shape] for block in words)


def _by_chat(message: Mapping[str, Any]) -> bool:
    blocks = _blocks(message)
    calls = [as_object(call) or {} for call in as_list(message.get("tool_calls")) or ()]
    return (
        message.keys() <= _CHAT_KEYS
        and all(block.get("type") in _CHAT_BLOCKS for block in blocks)
        and (_says(message) or message.get("role") == "tool" or any(message.get(key) for key in _INSTEAD))
        and all(call.get("id") and call.keys() <= _CALL_KEYS for call in calls)
        and all(_has_arguments(call.get("function")) for call in calls)
    )


def _has_arguments(function: Any) -> bool:
    """Whether a function call has its arguments, and nothing that a client added; other calls have none."""
    given = as_object(function) or {"arguments": "{}"}
    return bool(str(given.get("arguments") or "").strip()) and "parsed_arguments" not in given


def _by_anthropic(message: Mapping[str, Any]) -> bool:
    blocks = _blocks(message)
    results = [block.get("type") == "tool_result" for block in blocks]
    return (
        set(message) == {"role", "content"}
        and message["role"] in {"user", "assistant"}
        and _says(message)
        and results == sorted(results, reverse=True)
        and all(block_shape(block) in {None, "anthropic"} and _is_whole(block) for block in blocks)
    )


def _is_whole(block: Mapping[str, Any]) -> bool:
    """Whether an Anthropic block has what it needs."""
    match block.get("type"):
        case "text":
            return bool(str(block.get("text")).strip())
        case "tool_use":
            return bool(block.get("id")) and isinstance(block.get("input"), dict)
        case "tool_result":
            return bool(block.get("tool_use_id")) and bool(block.get("content") or not block.get("is_error"))
        case _:
            return True


def _by_responses(item: Mapping[str, Any]) -> bool:
    if "role" not in item or item.get("type", "message") != "message":
        called = "call_id" not in item or bool(item["call_id"])
        return called and ("arguments" not in item or _has_arguments(item))
    foreign = {"text", "openai", "anthropic"}
    return (
        item.keys() <= _ITEM_KEYS
        and _says(item)
        and all(foreign.isdisjoint({block.get("type"), block_shape(block)}) for block in _blocks(item))
    )


def _says(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(_objects(as_list(message.get("content")) or ()))


def _objects(values: Iterable[Any]) -> Iterable[dict[str, Any]]:
    return (found for value in values if (found := as_object(value)) is not None)


_TAKEN: Mapping[Shape, Callable[[Mapping[str, Any]], bool]] = {
    "openai": _by_chat,
    "anthropic": _by_anthropic,
    "responses": _by_responses,
}
