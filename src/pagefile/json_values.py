"""Records as plain JSON: for `--json`, and for the JSON version of every inspector page."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import Any, cast

from pagefile.content import JsonValue


def to_json(value: object) -> JsonValue:
    """Records, times and listings as plain JSON; NaN and infinity become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {known.name: to_json(getattr(value, known.name)) for known in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Sequence | frozenset | set) and not isinstance(value, str):
        return [to_json(inner) for inner in cast("Sequence[Any]", value)]
    return cast("JsonValue", value)
