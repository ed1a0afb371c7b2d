"""Converts messages of a provider's client to those of a turn, whichever of the three shapes they are in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pagefile.content import Message, Shape, ToolCall, ToolResult, message_json
from pagefile.errors import InvalidArgumentError
from pagefile.json_values import texts_in
from pagefile.records import Step, checked_text
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.call_order import answered_steps
from pagefile.shapes.detection import shape_of, unwrapped
from pagefile.shapes.message_reader import Book, Reader, plain_json, refused
from pagefile.shapes.renderer import WRITERS, own_shape
from pagefile.shapes.skeleton import Filling, carved, same

_READERS: Mapping[Shape, Callable[[Reader], Message]] = {
    "plain": openai.read,
    "openai": openai.read,
    "responses": responses.read,
    "anthropic": anthropic.read,
}
#: Where results are: in messages of these roles, in items and blocks of these types, under this key.
_BY_ROLE = {"tool": "content", "function": "content"}
_BY_TYPE = {"function_call_output": "output", "custom_tool_call_output": "output", "tool_result": "content"}


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
