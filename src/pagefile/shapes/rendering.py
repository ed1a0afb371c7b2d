"""Converts the messages of a turn to a provider's."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pagefile.content import Message, Other, Part, Reasoning, Shape, Text
from pagefile.records import Step
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.filling import Filling
from pagefile.shapes.pairing import in_order, prepared
from pagefile.shapes.steps import shown_steps, with_own_call_ids
from pagefile.shapes.taking import are_taken

Blobs: TypeAlias = Mapping[str, bytes]
#: A message, or an item, in the format of a provider's client.
Rendered: TypeAlias = dict[str, Any]

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
    messages: Sequence[Message], steps: Sequence[Step], blobs: Blobs, shape: Shape | None = None
) -> list[Rendered]:
    """The messages as they came, each in its own shape, as equal JSON.

    With a `shape`, they are what its provider accepts: as they came if possible, otherwise rendered again.
    """
    filling, own = Filling(steps, blobs), own_shape(messages)
    if shape is None:
        return [
            one
            for message in messages
            for one in _as_it_came(message, filling, own if message.shape == "plain" else message.shape)
        ]
    if all(message.shape in {shape, "plain"} for message in messages):
        came = [one for message in messages for one in _as_it_came(message, filling, shape)]
        if _can_be_sent(messages, steps, shape) and are_taken(came, shape):
            return came
    return rendered(messages, steps, blobs, shape)


def _can_be_sent(messages: Sequence[Message], steps: Sequence[Step], shape: Shape) -> bool:
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


def rendered(
    messages: Sequence[Message], steps: Sequence[Step], blobs: Blobs, shape: Shape
) -> list[Rendered]:
    """The messages as a provider accepts them: each call followed by its result, roles in a valid order, nothing empty.

    They are rendered from their parts, whatever shape they came in. Images and files whose bytes are not in
    `blobs` are named instead of shown.
    """
    own = with_own_call_ids(shown_steps(steps, {}), shape, set())
    if shape == "anthropic":
        # Anthropic's system text is not a message: instructions in between become user messages.
        messages = [replace(one, role="user") if one.role in _INSTRUCTING else one for one in messages]
    found = written(prepared(messages), Filling(own, blobs), shape, reasoning=True)
    return anthropic.alternating(found) if shape == "anthropic" else found


def written(
    messages: Sequence[Message], filling: Filling, shape: Shape, *, reasoning: bool = False
) -> list[Rendered]:
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


def own_shape(messages: Sequence[Message]) -> Shape:
    """The shape that the messages came in; OpenAI Chat for the short form."""
    named: list[Shape] = [message.shape for message in messages if message.shape != "plain"]
    return named[0] if named else "openai"


def _as_it_came(message: Message, filling: Filling, shape: Shape) -> list[Rendered]:
    if message.given is not None:
        try:
            return [filling.as_given(message)]
        except LookupError:
            pass
    # Plain text is the same for all providers; a call in the short form is not.
    words = message.shape == "plain" and all(isinstance(part, Text) for part in message.parts)
    return WRITERS["plain" if words else shape](message, filling)
