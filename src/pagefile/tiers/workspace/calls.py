"""Which calls are the same call.

Models and frameworks spell one call in many ways: by position or by name, with defaults left out or spelled
out, as a mapping or as JSON text, with numbers as text.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pagefile.tiers.workspace.results import Plain, clean, read_text, to_json

_NONE: Mapping[str, object] = {}


class ToolCall(NamedTuple):
    """A call of a tool: equal for every spelling of it."""

    tool: str
    #: By name, without those that were left out, null, or given as their default.
    arguments: Plain

    @classmethod
    def of(cls, tool: object, given: object, defaults: Mapping[str, object] = _NONE) -> "ToolCall":
        """The call with these arguments, a mapping or its JSON text; `defaults` are the tool's own."""
        read = to_json(given)
        if not isinstance(read, dict):
            return cls(clean(str(tool)), {} if read in (None, "", []) else _spelled(read))
        kept = {name: _spelled(value) for name, value in read.items()}
        left_out = {name: _spelled(to_json(value)) for name, value in defaults.items()}
        told = {name: value for name, value in kept.items() if value != left_out.get(name)}
        return cls(clean(str(tool)), told)

    @property
    def key(self) -> str:
        return json.dumps([self.tool, self.arguments], ensure_ascii=False, sort_keys=True)


def bound(tool: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, without those that are their default."""
    try:
        signature = inspect.signature(tool)
        given = dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        # It has no signature, or does not take these arguments and will say so itself.
        return {**kwargs, **({"args": list(args)} if args else {})}
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(name, {})
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    told = {name: value for name, value in given.items() if not _same(value, defaults.get(name))}
    # Null is the same as nothing only where it is the default.
    return {name: "null" if value is None else value for name, value in told.items()}


def defaults_of(schema: object) -> dict[str, object]:
    """The defaults in a tool's JSON schema."""
    properties = to_json(schema.get("properties")) if isinstance(schema, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - a schema is whatever a framework gives
    found = properties if isinstance(properties, dict) else {}
    return {
        name: told["default"] for name, told in found.items() if isinstance(told, dict) and "default" in told
    }


def _same(value: object, default: object) -> bool:
    return value is default or (
        default is not None and _spelled(to_json(value)) == _spelled(to_json(default))
    )


def _spelled(value: Plain) -> Plain:
    """A value as its tool takes it: numbers written as text are numbers, and JSON text is what it says."""
    if isinstance(value, str):
        text = value.strip()
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and str(int(digits[:18])) == digits
        return int(text) if plain else read_text(value)
    return value
