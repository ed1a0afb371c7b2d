"""The arguments of a tool call as text and as JSON, exact in both directions."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pagefile.content import JsonValue
from pagefile.nesting import MAX_JSON_DEPTH


def compact(value: JsonValue) -> str:
    """A tool's input as the JSON text that we write."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _ascii(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"))


def _spaced(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


#: How others write JSON; "text" is for arguments that are not JSON: the step's input is the text itself.
SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "compact": compact,
    "ascii": _ascii,
    "spaced": _spaced,
    "python": json.dumps,
    "text": str,
}


def read_arguments(text: str) -> tuple[JsonValue, str | None]:
    """The input that the text represents, and how it is written; None if that cannot be reproduced.

    Some servers send an empty text for no arguments.
    """
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
        return "\0" not in value and (value.isascii() or not _broken(value))
    if isinstance(value, dict):
        return all(_storable(key) and _storable(inner, depth + 1) for key, inner in value.items())
    if isinstance(value, list):
        return all(_storable(inner, depth + 1) for inner in value)
    return not isinstance(value, float) or value - value == 0


def _broken(text: str) -> bool:
    """Whether it has a lone surrogate."""
    return text.encode("utf-8", "replace").decode() != text
