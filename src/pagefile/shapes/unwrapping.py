"""What clients return around messages: a complete response is unwrapped, a fragment is refused."""

from collections.abc import Iterator, Mapping
from typing import Any

from pagefile.shapes.detecting import block_shape
from pagefile.shapes.reading import refused
from pagefile.shapes.skeleton import as_list, as_object

#: Items of OpenAI Responses that have a text without a role.
_SPEAKING_ITEMS = frozenset({"reasoning", "configuration_update"})
#: How the events of a stream begin: "response." for OpenAI Responses, the rest for Anthropic.
_EVENTS = ("response.", "content_block_", "message_start", "message_delta", "message_stop")


def unwrapped(message: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """The messages of a complete response, or the message itself."""
    kind = message.get("object")
    if kind == "chat.completion" and "role" not in message:
        yield _chosen(message, index)
    elif kind == "response" and isinstance(message.get("output"), list):
        yield from (found for item in message["output"] if (found := as_object(item)) is not None)
    else:
        _refuse_pieces(message, index)
        yield message


def _chosen(completion: Mapping[str, Any], index: int) -> dict[str, Any]:
    choices = [as_object(choice) or {} for choice in as_list(completion.get("choices")) or ()]
    messages = [found for choice in choices if (found := as_object(choice.get("message"))) is not None]
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
    pieces = [as_object(piece) or {} for piece in as_list(said) or ()]
    return isinstance(said, str) or any(isinstance(piece.get("text"), str) for piece in pieces)
