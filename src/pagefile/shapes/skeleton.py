"""What is left of a message when its parts and steps hold the rest: the original JSON with references in it.

A reference is an object with a single key that starts with "$". The caller's own such keys get a second "$".
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pagefile.content import Message
from pagefile.records import Step
from pagefile.shapes.steps import ShownSteps
from pagefile.shapes.tool_arguments import SPELLINGS, encoded

#: The position of a value in a message: keys of objects, indexes of lists.
Path: TypeAlias = tuple[str | int, ...]
#: Bytes by the hash that names them.
Blobs: TypeAlias = Mapping[str, bytes]
#: What replaces the values that parts and steps hold.
Holes: TypeAlias = Mapping[Path, Any]


def carved(value: Any, holes: Holes, path: Path = ()) -> Any:
    """The value with references in place of its holes."""
    if path in holes:
        return holes[path]
    if (fields := as_object(value)) is not None:
        return {
            f"${key}" if key.startswith("$") else key: carved(inner, holes, (*path, key))
            for key, inner in fields.items()
        }
    if (listed := as_list(value)) is not None:
        return [carved(inner, holes, (*path, place)) for place, inner in enumerate(listed)]
    return value


def filled(value: Any, resolve: Callable[[str, Any], Any]) -> Any:
    """The inverse of `carved`; `resolve` returns the value of a reference."""
    if (fields := as_object(value)) is not None:
        only = next(iter(fields)) if len(fields) == 1 else ""
        if only.startswith("$") and not only.startswith("$$"):
            return resolve(only, fields[only])
        return {key.removeprefix("$"): filled(inner, resolve) for key, inner in fields.items()}
    if (listed := as_list(value)) is not None:
        return [filled(inner, resolve) for inner in listed]
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true are different."""
    mine, theirs = as_object(one), as_object(other)
    if mine is not None and theirs is not None:
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine)
    firsts, seconds = as_list(one), as_list(other)
    if firsts is not None and seconds is not None:
        return len(firsts) == len(seconds) and all(map(same, firsts, seconds))
    return cast("object", type(one)) is type(other) and one == other


def as_object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list; none if it is something else."""
    return [inner for inner in as_list(value) or () if isinstance(inner, dict)]


@dataclass(frozen=True, slots=True)
class Filling:
    """What fills messages: the steps of a turn, as stored or as shown, and the available bytes."""

    steps: Sequence[Step] | ShownSteps
    blobs: Blobs = field(default_factory=dict[str, bytes])

    def as_given(self, message: Message) -> Any:
        """The message as it came; raises `LookupError` if part of it is unavailable."""
        return filled(message.given, lambda reference, value: self._resolved(message, reference, value))

    def _resolved(self, message: Message, reference: str, value: Any) -> Any:
        match reference, value:
            case "$part", [int(number), *span]:
                text = getattr(message.parts[number], "text", "")
                return text[slice(*span)] if span else text
            case "$part_json", _:
                return json.loads(self._resolved(message, "$part", [value]))
            case "$sealed", [int(number), key]:
                sealed = getattr(message.parts[number], "sealed", None)
                return None if sealed is None else sealed[key]
            case "$other", int(number):
                return getattr(message.parts[number], "value", None)
            case "$input", int(number):
                return self.steps[number].input
            case "$arguments", [int(number), spelling]:
                return SPELLINGS[spelling](self.steps[number].input)
            case "$result", [int(number)]:
                return self.steps[number].result
            case "$result", [int(number), *span] if self._is_whole(number):
                return self.steps[number].result[slice(*span)]
            case "$result_json", _:
                return json.loads(self._resolved(message, "$result", value))
            case "$blob", [blob]:
                return encoded(self.blobs[blob])
            case "$blob", [blob, prefix, *spelling]:
                return prefix + encoded(self.blobs[blob], *spelling)
            case "$blob_text", blob:
                return self.blobs[blob].decode()
            case _:
                raise LookupError(reference, value)

    def _is_whole(self, number: int) -> bool:
        """Whether the text of a result is the original one, in which ranges can be found."""
        step = self.steps[number]
        return isinstance(step, Step) and step.whole and not step.lost_chars
