"""Text exact in both directions: the arguments of a call as JSON, bytes as base64, each as its client wrote it."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pagefile.content import JsonValue
from pagefile.json_values import MAX_JSON_DEPTH


def compact(value: JsonValue) -> str:
    """A tool's input as the JSON text that we write."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


#: How others write JSON; "text" is for arguments that are not JSON: the step's input is the text itself.
SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "compact": compact,
    "ascii": partial(json.dumps, separators=(",", ":")),
    "spaced": partial(json.dumps, ensure_ascii=False),
    "python": json.dumps,
    "text": str,
}


def read_arguments(text: str) -> tuple[JsonValue, str | None]:
    """The input that the text represents (none if it is empty), and how it is written; None if that cannot be reproduced."""
    if not text.strip():
        return {}, None
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse)
        if not _storable(value):
            return text, "text"
        return value, next((name for name, write in SPELLINGS.items() if write(value) == text), None)
    except (ValueError, RecursionError):
        return text, "text"


def _refuse(name: str) -> None:
    raise ValueError(name)


def _storable(value: JsonValue, depth: int = 0) -> bool:
    """Whether a database can hold it: no NUL, no lone surrogate, no NaN or infinity, not too deep."""
    if depth > MAX_JSON_DEPTH:
        return False
    if isinstance(value, str):
        # A lone surrogate cannot be encoded.
        return "\0" not in value and (value.isascii() or value.encode("utf-8", "replace").decode() == value)
    if isinstance(value, dict):
        return all(_storable(key) and _storable(inner, depth + 1) for key, inner in value.items())
    if isinstance(value, list):
        return all(_storable(inner, depth + 1) for inner in value)
    return not isinstance(value, float) or value - value == 0


# -- large values -----------------------------------------------------------------------------------------------------


def large_values(value: JsonValue, chars: int) -> dict[str, str]:
    """The texts with more characters inside the arguments of a call, by JSON pointer: a script, a file, a list as JSON.

    A value that contains a large one is not large itself, nor are the arguments as a whole: they stay an object.
    """
    return dict(_large(value, "", chars))


def _large(value: JsonValue, pointer: str, chars: int) -> Iterator[tuple[str, str]]:
    for name, inner in _members(value):
        place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        text = inner if isinstance(inner, str) else compact(inner)
        if len(text) > chars:
            yield from [*_large(inner, place, chars)] or [(place, text)]


def _members(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(number), inner) for number, inner in enumerate(value))


def with_values(value: JsonValue, texts: Mapping[str, str], pointer: str = "") -> JsonValue:
    """The arguments with other texts in some places, given by JSON pointer."""
    if pointer in texts:
        return texts[pointer]
    if not any(place.startswith(f"{pointer}/") for place in texts):
        return value
    inner = {
        name: with_values(one, texts, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
        for name, one in _members(value)
    }
    return inner if isinstance(value, Mapping) else [*inner.values()]


# -- base64 -----------------------------------------------------------------------------------------------------------

_BREAK = re.compile(r"\s+")


def decoded(text: str) -> bytes | None:
    """The bytes of a base64 text; None if it is not base64 or empty."""
    compact = "".join(text.split())
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def encoded(data: bytes, spelling: Mapping[str, Any] | None = None) -> str:
    """The bytes as text, written as `spelling_of` found it."""
    text = base64.b64encode(data).decode()
    if not spelling:
        return text
    text = text.rstrip("=") if spelling.get("bare") else text
    every = int(spelling.get("every") or len(text))
    lines = [text[at : at + every] for at in range(0, len(text), every)]
    return str(spelling.get("break", "")).join(lines) + str(spelling.get("end", ""))


def spelling_of(text: str, data: bytes) -> Mapping[str, Any] | None:
    """How a text writes the bytes: empty for standard base64, None if it cannot be reproduced."""
    said = text.rstrip()
    found: dict[str, Any] = {}
    if (gap := _BREAK.search(said)) is not None:
        found |= {"every": gap.start(), "break": gap.group()}
    if said != text:
        found["end"] = text[len(said) :]
    if len(data) % 3 and not said.endswith("="):
        found["bare"] = True
    # A text that starts with a break has lines of length zero.
    return found if found.get("every") != 0 and encoded(data, found) == text else None
