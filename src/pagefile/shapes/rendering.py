"""From the messages of a turn to those of a provider."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pagefile.content import Message, Other, Part, Reasoning, Shape, Text
from pagefile.records import Step
from pagefile.shapes import anthropic, openai, responses
from pagefile.shapes.filling import Filling
from pagefile.shapes.pairing import answered_steps, calls_of, prepared
from pagefile.shapes.steps import shown_steps, with_own_call_ids

Blobs: TypeAlias = Mapping[str, bytes]
#: A message, or an item, as a provider's client takes it.
Rendered: TypeAlias = dict[str, Any]

#: A message from its parts alone, in each shape; the short form is written as OpenAI's.
WRITERS: Mapping[Shape, Callable[[Message, Filling], list[Rendered]]] = {
    "plain": openai.write,
    "openai": openai.write,
    "responses": responses.write,
    "anthropic": anthropic.write,
}


def given_back(
    messages: Sequence[Message], steps: Sequence[Step], blobs: Blobs, shape: Shape | None = None
) -> list[Rendered]:
    """The messages as they came, when no shape is named or it is theirs: equal JSON, whatever it was.

    For a shape that is named they are such that its provider takes them: where a call has no result, they are made anew.
    """
    wanted = shape or own_shape(messages)
    if all(message.shape in {wanted, "plain"} for message in messages) and (
        shape is None or _paired(messages)
    ):
        filling = Filling(steps, blobs)
        return [one for message in messages for one in _as_it_came(message, filling, wanted)]
    return rendered(messages, steps, blobs, wanted)


def rendered(
    messages: Sequence[Message], steps: Sequence[Step], blobs: Blobs, shape: Shape
) -> list[Rendered]:
    """The messages as a provider takes them: each call with its result behind it, roles as they have to be, nothing empty.

    They are made from their parts, whichever shape they came in. Images and files whose bytes are not in `blobs` are named, not shown.
    """
    own = with_own_call_ids(shown_steps(steps, {}), shape, set())
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
    """Whether a provider is given a part: what only one of them can read goes to no other."""
    match part:
        case Reasoning():
            # The chat API has no place for it.
            return reasoning and shape == message.shape and shape != "openai"
        case Other(value):
            speaks = message.role == "user" or (message.role == "assistant" and shape == "anthropic")
            return speaks and shape == message.shape and isinstance(value, Mapping)
        case _:
            return True


def own_shape(messages: Sequence[Message]) -> Shape:
    """The shape that the messages came in; OpenAI Chat for the short form."""
    named: list[Shape] = [message.shape for message in messages if message.shape != "plain"]
    return named[0] if named else "openai"


def _paired(messages: Sequence[Message]) -> bool:
    called = {step for message in messages for step in calls_of(message)}
    return called == answered_steps(messages)


def _as_it_came(message: Message, filling: Filling, shape: Shape) -> list[Rendered]:
    if message.given is not None:
        try:
            return [filling.as_given(message)]
        except LookupError:
            pass
    # Words alone are the same for all providers; a call in the short form is not.
    words = message.shape == "plain" and all(isinstance(part, Text) for part in message.parts)
    return WRITERS["plain" if words else shape](message, filling)
