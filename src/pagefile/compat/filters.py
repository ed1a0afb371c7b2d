"""Filters over records, in mem0's grammar: fields, comparisons, `AND`, `OR` and `NOT`."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pagefile.errors import InvalidArgumentError

_MAX_DEPTH = 20
_ANY = "*"


def _contained(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return str(wanted) in value
    return isinstance(value, Sequence) and wanted in value


def _contained_in_any_case(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return str(wanted).casefold() in value.casefold()
    folded = (
        [str(one).casefold() for one in cast("Sequence[Any]", value)] if isinstance(value, Sequence) else []
    )
    return str(wanted).casefold() in folded


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, wanted: Any) -> bool:
        if value is None:
            return False
        # A day is compared with the day of a time.
        if isinstance(value, str) and isinstance(wanted, str):
            return compare(value[: len(wanted)], wanted)
        try:
            return compare(value, wanted)
        except TypeError:
            return False

    return holds


def _among(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InvalidArgumentError("`in` needs a list.")
    return _equal(value, list(cast("Sequence[Any]", wanted)))


def _equal(value: Any, wanted: Any) -> bool:
    if wanted == _ANY:
        return value is not None and value != []
    if isinstance(wanted, list):
        return any(_equal(value, one) for one in cast("list[Any]", wanted))
    if isinstance(value, list):
        return wanted in value
    return value == wanted


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda value, wanted: not _equal(value, wanted),
    "in": _among,
    "nin": lambda value, wanted: not _among(value, wanted),
    "contains": _contained,
    "icontains": _contained_in_any_case,
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
}


def matches(given: object, record: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a record passes a filter; None and {} let everything pass."""
    if given is None or given == {}:
        return True
    if not isinstance(given, Mapping) or depth > _MAX_DEPTH:
        raise InvalidArgumentError("A filter must be an object, with at most 20 levels.")
    return all(
        _holds(str(name), wanted, record, depth) for name, wanted in cast("Mapping[Any, Any]", given).items()
    )


def _holds(name: str, wanted: Any, record: Mapping[str, Any], depth: int) -> bool:
    if name in {"AND", "OR", "NOT"}:
        parts = cast("Sequence[Any]", wanted if isinstance(wanted, list) else [wanted])
        held = (matches(part, record, depth + 1) for part in parts)
        return all(held) if name == "AND" else any(held) if name == "OR" else not any(held)
    inner = record.get(name)
    if name == "metadata" and isinstance(wanted, Mapping):
        known = cast("Mapping[str, Any]", inner if isinstance(inner, Mapping) else {})
        return matches(cast("Mapping[str, Any]", wanted), known, depth + 1)
    if name not in record and isinstance(record.get("metadata"), Mapping):
        inner = record["metadata"].get(name)
    if isinstance(wanted, Mapping):
        return _compared(cast("Mapping[str, Any]", wanted), inner)
    return _equal(inner, wanted)


def _compared(wanted: Mapping[str, Any], value: Any) -> bool:
    for name, bound in wanted.items():
        if name not in _COMPARISONS:
            raise InvalidArgumentError(f"Unknown comparison {name!r}: use one of {', '.join(_COMPARISONS)}.")
        if not _COMPARISONS[name](value, bound):
            return False
    return True


def values_of(given: object, field: str, depth: int = 0) -> list[str]:
    """The values that a field may have by a filter, each once; empty if it may have any."""
    if not isinstance(given, Mapping) or depth > _MAX_DEPTH:
        return []
    found: list[str] = []
    for name, wanted in cast("Mapping[str, Any]", given).items():
        if name in {"AND", "OR"} and isinstance(wanted, list):
            parts = [values_of(part, field, depth + 1) for part in cast("list[Any]", wanted)]
            if name == "AND" or all(parts):
                found += [value for part in parts for value in part]
        elif name == field:
            found += _named(wanted)
    return list(dict.fromkeys(found))


def _named(wanted: Any) -> list[str]:
    if isinstance(wanted, Mapping):
        bounds = cast("Mapping[str, Any]", wanted)
        return _named(bounds.get("in") or bounds.get("eq"))
    values = cast("list[Any]", wanted if isinstance(wanted, list) else [wanted])
    return [value for value in values if isinstance(value, str) and value != _ANY]
