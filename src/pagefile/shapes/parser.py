"""Converts messages of a provider's client to those of a turn.

It detects what was given: which of the three shapes, a complete response around messages, or a fragment, which is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pagefile.content import Message, Shape, ToolCall, ToolResult, message_json
from pagefile.errors import InvalidArgumentError
from pagefile.json_values import texts_in
from pagefile.records import Step, checked_text
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.call_order import answered_steps
from pagefile.shapes.message_reader import Book, Reader, plain_json, refused
from pagefile.shapes.renderer import WRITERS, block_shape, own_shape
from pagefile.shapes.skeleton import Filling, as_list, as_object, carved, objects_in, same

_READERS: Mapping[Shape, Callable[[Reader], Message]] = {
    "plain": openai.read,
    "openai": openai.read,
    "responses": responses.read,
    "anthropic": anthropic.read,
}
#: Where results are: in messages of these roles, in items and blocks of these types, under this key.
_BY_ROLE = {"tool": "content", "function": "content"}
_BY_TYPE = {"function_call_output": "output", "custom_tool_call_output": "output", "tool_result": "content"}
_NAMES = {"openai": "OpenAI Chat", "responses": "OpenAI Responses", "anthropic": "Anthropic"}
#: Keys besides role and content that only OpenAI Chat has, or only an Anthropic answer.
_CHAT_ONLY_KEYS = frozenset({"tool_calls", "function_call", "tool_call_id", "reasoning_content", "audio"})
_ANSWER_KEYS = frozenset({"stop_reason", "stop_sequence"})
#: Items of OpenAI Responses that have a text without a role.
_SPEAKING_ITEMS = frozenset({"reasoning", "configuration_update"})
#: How the events of a stream begin: "response." for OpenAI Responses, the rest for Anthropic.
_EVENTS = ("response.", "content_block_", "message_start", "message_delta", "message_stop")


@dataclass(frozen=True, slots=True)
class Parsed:
    messages: tuple[Message, ...]
    #: Calls that the messages start, in order, with their results if they have arrived.
    steps: tuple[Step, ...]
    #: Steps of the turn that had no result before, by index, now with their result.
    results: Mapping[int, Step] = field(default_factory=dict[int, Step])
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def parsed(
    messages: Iterable[object],
    shape: Shape | None = None,
    *,
    steps: Sequence[Step] = (),
    before: Sequence[Message] = (),
    made_id: Callable[[int], str] = "call_{}".format,
    count: Callable[[str], int] | None = None,
) -> Parsed:
    """The messages as a turn holds them; rendered in the same shape they are equal JSON.

    `steps` and `before` are what the turn already has: a result may answer a call made there. `made_id` gives
    a call its id if the message has none, `count` the tokens of a text document. What cannot be read raises
    `InvalidArgumentError`, which names the message.
    """
    given = [
        (index, results_cleaned(raw))
        for index, message in enumerate(listed(messages))
        for raw in unwrapped(plain_json(message, index), index)
    ]
    known = shape or shape_of(given, own_shape(before))
    book = Book(list(steps), set(range(len(steps))) - answered_steps(before), made_id, count)
    found = tuple(_read(raw, known, book, index) for index, raw in given)
    results = {number: book.steps[number] for number in book.answered if number < len(steps)}
    return Parsed(found, tuple(book.steps[len(steps) :]), results, book.blobs)


def listed(messages: object) -> list[object]:
    """The messages as a list, or an error that says what was given instead."""
    if isinstance(messages, Iterable) and not isinstance(messages, (str, bytes, Mapping)):
        return list(cast("Iterable[object]", messages))
    kind = type(cast("object", messages)).__name__
    raise InvalidArgumentError(f"messages must be a list of messages, not {kind}: write messages=[…].")


def _read(raw: dict[str, Any], shape: Shape, book: Book, index: int) -> Message:
    message = _READERS[shape](Reader(raw, shape, book, index))
    filling = Filling(book.steps, book.blobs)
    if same(WRITERS[shape](replace(message, given=None), filling), [raw]):
        message = replace(message, given=None)
    elif not same(filling.as_given(message), raw):
        # A lossy reader is a bug of ours, which must not cost the caller data.
        message = replace(message, given=carved(raw, {}))
    _check_texts(message, book.steps, index)
    return message


def _check_texts(message: Message, steps: Sequence[Step], index: int) -> None:
    """Check that every text can be stored; results were cleaned before, so only the caller's own text can be refused."""
    mine = [steps[part.step] for part in message.parts if isinstance(part, (ToolCall, ToolResult))]
    for text in texts_in([message_json(message), [[step.tool, step.input, step.call_id] for step in mine]]):
        try:
            checked_text(text, "it")
        except InvalidArgumentError as error:
            raise refused(index, f"cannot be stored: {error}") from error


def results_cleaned(value: Any) -> Any:
    """The message with NUL and lone surrogates replaced in its tool results, which callers do not control."""
    if isinstance(value, list):
        return [results_cleaned(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    key = _BY_TYPE.get(str(given.get("type"))) or _BY_ROLE.get(str(given.get("role")))
    return {name: cleaned(inner) if name == key else results_cleaned(inner) for name, inner in given.items()}


def cleaned(value: Any) -> Any:
    """The value with NUL and lone surrogates replaced in all its texts."""
    if isinstance(value, str):
        return value.replace("\0", "␀").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [cleaned(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {cleaned(key): cleaned(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return value


# -- which shape --------------------------------------------------------------------------------------------------------


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
    if _CHAT_ONLY_KEYS & message.keys() or message["role"] in ("tool", "function"):
        return "openai"
    blocks = objects_in(message.get("content"))
    return next((shape for block in blocks if (shape := block_shape(block)) is not None), None)


def _is_text(message: Mapping[str, Any]) -> bool:
    blocks = as_list(message.get("content")) or ()
    return all((as_object(block) or {}).get("type") == "text" for block in blocks)


def unwrapped(message: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """The messages of a complete response, or the message itself."""
    kind = message.get("object")
    if kind == "chat.completion" and "role" not in message:
        messages = objects_in([choice.get("message") for choice in objects_in(message.get("choices"))])
        if len(messages) != 1:
            raise refused(
                index,
                f"has {len(messages)} choices: give the message of the one that was taken, choices[0].message.",
            )
        yield messages[0]
    elif kind == "response" and isinstance(message.get("output"), list):
        yield from objects_in(message["output"])
    else:
        _refuse_pieces(message, index)
        yield message


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
