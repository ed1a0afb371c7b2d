"""Converts the messages of a turn to a provider's."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

from pagefile.content import Message, Other, Part, Reasoning, Shape, Text
from pagefile.records import Step
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.call_order import in_order, prepared
from pagefile.shapes.skeleton import Blobs, Filling, as_list, as_object, objects_in
from pagefile.shapes.steps import shown_steps, with_own_call_ids

#: A message, or an item, in the format of a provider's client.
Rendered: TypeAlias = dict[str, Any]
Messages: TypeAlias = Sequence[Message]

#: Roles that speak for the application.
_INSTRUCTING = frozenset({"system", "developer"})
#: Writes a message from its parts alone, in each shape; the short form is written as OpenAI's.
WRITERS: Mapping[Shape, Callable[[Message, Filling], list[Rendered]]] = {
    "plain": openai.write,
    "openai": openai.write,
    "responses": responses.write,
    "anthropic": anthropic.write,
}


def given_back(
    messages: Messages, steps: Sequence[Step], blobs: Blobs, shape: Shape | None = None
) -> list[Rendered]:
    """The messages as they came, each in its own shape, as equal JSON.

    With a `shape`, they are what its provider accepts: as they came if possible, otherwise rendered again.
    """
    filling, own = Filling(steps, blobs), shape or own_shape(messages) or "openai"
    came = [one for message in messages for one in _as_it_came(message, filling, own)]
    if shape is None:
        return came
    foreign = any(message.shape not in {shape, "plain"} for message in messages)
    if foreign or not _can_be_sent(messages, steps, shape) or not are_taken(came, shape):
        return rendered(messages, steps, blobs, shape)
    return came


def _can_be_sent(messages: Messages, steps: Sequence[Step], shape: Shape) -> bool:
    """Whether nothing has to be left out, moved or renamed for the provider."""
    shown = shown_steps(steps, {})
    kinds = Counter(type(part) for message in messages for part in message.parts)
    sent = Counter(type(part) for message in prepared(messages) for part in message.parts)
    thoughts = (part for message in messages for part in message.parts if isinstance(part, Reasoning))
    return (
        kinds == sent
        and in_order(messages, one_by_one=shape != "responses")
        and all(is_sealed(thought, shape) for thought in thoughts)
        and all(step.call_id == shown[number].call_id for number, step in enumerate(steps))
        and with_own_call_ids(shown, shape, set()) == shown
    )


def rendered(messages: Messages, steps: Sequence[Step], blobs: Blobs, shape: Shape) -> list[Rendered]:
    """The messages as a provider accepts them: each call followed by its result, roles in a valid order, nothing empty.

    They are rendered from their parts, whatever shape they came in. Images and files without bytes in `blobs` are named.
    """
    own = with_own_call_ids(shown_steps(steps, {}), shape, set())
    if shape == "anthropic":
        # Anthropic's system text is not a message: instructions in between become user messages.
        messages = [replace(one, role="user") if one.role in _INSTRUCTING else one for one in messages]
    found = written(prepared(messages), Filling(own, blobs), shape, reasoning=True)
    return anthropic.alternating(found) if shape == "anthropic" else found


def written(messages: Messages, filling: Filling, shape: Shape, *, reasoning: bool = False) -> list[Rendered]:
    """Prepared messages in a provider's shape; `reasoning` only while the turn is not answered yet."""
    if shape == "openai":
        messages = openai.laid_out(messages)
    found: list[Rendered] = []
    for message in messages:
        parts = tuple(part for part in message.parts if is_sent(part, message, shape, reasoning=reasoning))
        if parts:
            found += WRITERS[shape](Message(message.role, parts, message.shape), filling)
    return found


def is_sent(part: Part, message: Message, shape: Shape, *, reasoning: bool) -> bool:
    """Whether a provider is sent a part: what only one provider can read goes to no other."""
    match part:
        case Reasoning():
            return reasoning and shape == message.shape and is_sealed(part, shape)
        case Other(value):
            speaks = message.role == "user" or (message.role == "assistant" and shape == "anthropic")
            return speaks and shape == message.shape and isinstance(value, Mapping)
        case _:
            return True


def is_sealed(thought: Reasoning, shape: Shape) -> bool:
    """Whether the provider would accept it back: the chat API accepts none, and a broken stream leaves it unsigned."""
    sealed = thought.sealed
    if shape == "anthropic":
        return bool(sealed.get("data" if sealed.get("type") == "redacted_thinking" else "signature"))
    return shape == "responses" and bool(sealed.get("id") or sealed.get("encrypted_content"))


def own_shape(messages: Messages) -> Shape | None:
    """The shape that the messages came in; None for the short form."""
    named: list[Shape] = [message.shape for message in messages if message.shape != "plain"]
    return named[0] if named else None


def _as_it_came(message: Message, filling: Filling, own: Shape) -> list[Rendered]:
    if message.given is not None:
        with suppress(LookupError):
            return [filling.as_given(message)]
    # Plain text is the same for all providers; a call in the short form is not.
    calls = message.shape == "plain" and not all(isinstance(part, Text) for part in message.parts)
    return WRITERS[own if calls else message.shape](message, filling)


# -- whether a provider accepts messages just as they came: it refuses unknown fields ---------------------------------

#: Types of blocks that only one shape has.
_BLOCKS: Mapping[str, Shape] = {
    **dict.fromkeys(("image_url", "input_audio", "file"), "openai"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "responses"),
    **dict.fromkeys(("tool_use", "tool_result", "server_tool_use", "web_search_tool_result"), "anthropic"),
    **dict.fromkeys(("thinking", "redacted_thinking"), "anthropic"),
    **dict.fromkeys(("image", "document", "search_result", "container_upload"), "anthropic"),
}
#: What a chat message may have instead of content.
_INSTEAD = ("tool_calls", "function_call", "refusal", "audio")
_CHAT_KEYS = frozenset({"role", "content", "name", "tool_call_id", *_INSTEAD})
_ITEM_KEYS = frozenset({"type", "role", "content", "id", "status", "phase"})
_CHAT_BLOCKS = frozenset({"text", "refusal", "image_url", "input_audio", "file"})
_CALL_KEYS = frozenset({"id", "type", "function", "custom"})
#: The fields of text blocks.
_WORD_KEYS: Mapping[Shape, frozenset[str]] = {
    "openai": frozenset({"type", "text", "refusal"}),
    "responses": frozenset({"type", "text", "refusal", "annotations", "logprobs"}),
    "anthropic": frozenset({"type", "text", "citations", "cache_control"}),
}
_WORDS = ("text", "refusal", "input_text", "output_text")


def block_shape(block: Mapping[str, Any]) -> Shape | None:
    """The only shape that has such a block; None if it is unknown, or several have it."""
    kind = str(block.get("type"))
    return _BLOCKS.get(kind) or ("anthropic" if kind.endswith("_tool_result") else None)


def are_taken(messages: Sequence[Mapping[str, Any]], shape: Shape) -> bool:
    """Whether the messages have only what the provider knows, and their roles are in a valid order."""
    roles = [one.get("role") for one in messages]
    if shape == "anthropic" and any(one == following for one, following in pairwise(roles)):
        return False
    words = [block for one in messages for block in _blocks(one) if block.get("type") in _WORDS]
    return all(map(_TAKEN[shape], messages)) and all(block.keys() <= _WORD_KEYS[shape] for block in words)


def _by_chat(message: Mapping[str, Any]) -> bool:
    blocks = _blocks(message)
    calls = [as_object(call) or {} for call in as_list(message.get("tool_calls")) or ()]
    return (
        message.keys() <= _CHAT_KEYS
        and all(str(block.get("type")) in _CHAT_BLOCKS for block in blocks)
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
    own = (foreign.isdisjoint({str(block.get("type")), block_shape(block)}) for block in _blocks(item))
    return item.keys() <= _ITEM_KEYS and _says(item) and all(own)


def _says(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_in(message.get("content"))


_TAKEN = {"openai": _by_chat, "anthropic": _by_anthropic, "responses": _by_responses}
