"""What is left of a message when its parts and steps hold the rest: the original JSON with references in it.

A reference is an object with a single key that starts with "$". The caller's own keys that start with "$" get
a second one, so that they cannot be mistaken for references.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

#: The position of a value in a message: keys of objects, indexes of lists.
Path: TypeAlias = tuple[str | int, ...]
#: What replaces the values that parts and steps hold.
Holes: TypeAlias = Mapping[Path, Any]


def carved(value: Any, holes: Holes, path: Path = ()) -> Any:
    """The value with references in place of its holes."""
    if path in holes:
        return holes[path]
    if (fields := as_object(value)) is not None:
        return {_escaped(key): carved(inner, holes, (*path, key)) for key, inner in fields.items()}
    if (listed := as_list(value)) is not None:
        return [carved(inner, holes, (*path, place)) for place, inner in enumerate(listed)]
    return value


def filled(value: Any, resolve: Callable[[str, Any], Any]) -> Any:
    """The inverse of `carved`; `resolve` returns the value of a reference."""
    if (fields := as_object(value)) is not None:
        only = next(iter(fields)) if len(fields) == 1 else ""
        if _is_reference(only):
            return resolve(only, fields[only])
        return {_unescaped(key): filled(inner, resolve) for key, inner in fields.items()}
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
    """The value, if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """The value, if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _unescaped(key: str) -> str:
    return key.removeprefix("$")


def _is_reference(key: str) -> bool:
    return key.startswith("$") and not key.startswith("$$")
