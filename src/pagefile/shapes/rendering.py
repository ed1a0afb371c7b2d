"""From the messages of a turn to those of a provider."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagefile.content import Message, Part, Reasoning, Shape, ToolCall, ToolResult
from pagefile.records import Step, Turn
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.filling import Filling
from pagefile.shapes.pairing import paired

_NOTHING_REPLACED: Mapping[int, str] = {}
_NO_BYTES: Mapping[str, bytes] = {}

#: A message from its parts alone, in each shape; the short form is written as OpenAI's.
WRITERS: Mapping[Shape, Callable[[Message, Filling], list[dict[str, Any]]]] = {
    "plain": openai.write,
    "openai": openai.write,
    "responses": responses.write,
    "anthropic": anthropic.write,
}
_JOINED: Mapping[Shape, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "plain": openai.joined,
    "openai": openai.joined,
    "responses": responses.joined,
    "anthropic": anthropic.joined,
}


def given_back(
    messages: Sequence[Message], filling: Filling, shape: Shape | None = None
) -> list[dict[str, Any]]:
    """The messages as they came, when they came in this shape (or when none is named): equal JSON, whatever it was."""
    wanted = shape or own_shape(messages)
    if all(message.shape in {wanted, "plain"} for message in messages):
        return [one for message in messages for one in _written(message, filling, wanted)]
    return rendered(messages, filling, wanted)


def rendered(messages: Sequence[Message], filling: Filling, shape: Shape) -> list[dict[str, Any]]:
    """The messages as a provider takes them: each call with its result behind it, roles as they have to be, nothing empty.

    A message that came in this shape is given back as it came, unless that breaks one of these rules, or something of it was
    replaced or is not at hand. One that came in another shape is made from its parts.
    """
    ordered = paired(messages)
    steps = with_own_call_ids(filling.steps)
    renamed = {number for number, step in enumerate(steps) if step is not filling.steps[number]}
    filling = replace(filling, steps=steps)
    own = [replace(message, given=None) if _names(message, renamed) else message for message in ordered]
    return _JOINED[shape]([one for message in own for one in _written(message, filling, shape)])


def turn_messages(
    turn: Turn,
    shape: Shape = "openai",
    *,
    steps: bool = True,
    reasoning: bool = True,
    results: Mapping[int, str] = _NOTHING_REPLACED,
    blobs: Mapping[str, bytes] = _NO_BYTES,
) -> list[dict[str, Any]]:
    """A turn as a provider takes it; `results` shows other texts for some steps.

    Without `steps` and `reasoning`, tool calls and thoughts are left out. Images and files whose bytes are not in `blobs` are
    named, not shown.
    """
    left_out = (*(() if steps else (ToolCall, ToolResult)), *(() if reasoning else (Reasoning,)))
    return rendered(_without(turn.messages, left_out), Filling(turn.steps, results, blobs), shape)


def own_shape(messages: Sequence[Message]) -> Shape:
    """The shape that the messages came in; OpenAI Chat for the short form."""
    named: list[Shape] = [message.shape for message in messages if message.shape != "plain"]
    return named[0] if named else "openai"


def with_own_call_ids(steps: Sequence[Step]) -> list[Step]:
    """The steps with call ids that are unique among them: providers refuse a request in which one comes twice."""
    seen: set[str] = set()
    found: list[Step] = []
    for step in steps:
        number, call_id = 1, step.call_id
        while call_id in seen:
            number += 1
            call_id = f"{step.call_id}_{number}"
        seen.add(call_id)
        found.append(step if number == 1 else replace(step, call_id=call_id))
    return found


def _written(message: Message, filling: Filling, shape: Shape) -> list[dict[str, Any]]:
    if message.given is not None and message.shape == shape:
        try:
            return [filling.as_given(message)]
        except LookupError:
            pass
    return WRITERS[shape](message, filling)


def _names(message: Message, steps: set[int]) -> bool:
    return bool(steps) and any(
        part.step in steps for part in message.parts if isinstance(part, (ToolCall, ToolResult))
    )


def _without(messages: Sequence[Message], kinds: tuple[type[Part], ...]) -> Sequence[Message]:
    kept: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if not isinstance(part, kinds))
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(replace(message, parts=parts, given=None))
    return kept
