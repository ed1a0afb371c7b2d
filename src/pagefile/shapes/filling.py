"""What fills rendered messages: texts of parts, inputs and results of steps, bytes of images and files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefile.content import Message, Other, Reasoning, Text
from pagefile.records import Step
from pagefile.shapes.base64_text import encoded
from pagefile.shapes.skeleton import filled
from pagefile.shapes.spelling import SPELLINGS, compact
from pagefile.shapes.steps import ShownStep


@dataclass(frozen=True, slots=True)
class Filling:
    """The steps of a turn, as stored or as shown, and the available bytes."""

    steps: Sequence[Step] | Mapping[int, ShownStep]
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def result(self, number: int) -> str:
        """The text shown for a result."""
        return self.steps[number].result

    def arguments(self, number: int) -> str:
        """A tool's input as JSON text."""
        return compact(self.steps[number].input)

    def as_given(self, message: Message) -> Any:
        """The message as it came; raises `LookupError` if part of it is unavailable."""

        def resolve(reference: str, value: Any) -> Any:
            return _RESOLVERS[reference](self, message, value)

        return filled(message.given, resolve)

    def is_whole(self, number: int) -> bool:
        """Whether the text of a result is the original one."""
        step = self.steps[number]
        return isinstance(step, Step) and step.whole and not step.lost_chars


def _reference(value: Any) -> tuple[int, list[Any]]:
    """The index that a reference starts with, and the rest of it."""
    number, *rest = value
    return int(number), rest


def _part(_: Filling, message: Message, value: Any) -> str:
    number, span = _reference(value)
    part = message.parts[number]
    text = part.text if isinstance(part, (Text, Reasoning)) else ""
    return text[slice(*span)] if span else text


def _part_json(_: Filling, message: Message, value: Any) -> Any:
    return json.loads(_part(_, message, [value]))


def _sealed(_: Filling, message: Message, value: Any) -> Any:
    number, (key,) = _reference(value)
    part = message.parts[number]
    return part.sealed[key] if isinstance(part, Reasoning) else None


def _other(_: Filling, message: Message, value: Any) -> Any:
    part = message.parts[int(value)]
    return part.value if isinstance(part, Other) else None


def _input(filling: Filling, _: Message, value: Any) -> Any:
    return filling.steps[int(value)].input


def _arguments(filling: Filling, _: Message, value: Any) -> str:
    number, (spelling,) = _reference(value)
    return SPELLINGS[spelling](filling.steps[number].input)


def _result(filling: Filling, _: Message, value: Any) -> str:
    number, span = _reference(value)
    if not span:
        return filling.result(number)
    if not filling.is_whole(number):
        raise LookupError(number)
    return filling.result(number)[slice(*span)]


def _result_json(filling: Filling, _: Message, value: Any) -> Any:
    return json.loads(_result(filling, _, value))


def _blob(filling: Filling, _: Message, value: Any) -> str:
    return _spelled(filling, *value)


def _spelled(filling: Filling, blob: str, prefix: str = "", spelling: Mapping[str, Any] | None = None) -> str:
    return prefix + encoded(filling.blobs[blob], spelling)


def _blob_text(filling: Filling, _: Message, value: Any) -> str:
    return filling.blobs[value].decode()


_RESOLVERS = {
    "$part": _part,
    "$part_json": _part_json,
    "$sealed": _sealed,
    "$other": _other,
    "$input": _input,
    "$arguments": _arguments,
    "$result": _result,
    "$result_json": _result_json,
    "$blob": _blob,
    "$blob_text": _blob_text,
}
