"""What the vendors' HTTP APIs have in common: a request, the caller's reach, and a table of routes."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, NamedTuple, TypeAlias

from pagefile.compat.memories import Memories
from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError
from pagefile.records import JsonValue
from pagefile.shapes.skeleton import as_list, as_object

#: No limit, offset, number of seconds or tokens is larger.
_MOST = 1e12


class Refusal(Exception):  # noqa: N818 - an answer to the caller, not a failure here
    """An answer in the vendor's shape of errors, with the vendor's own name for it where it has one."""

    def __init__(self, status: int, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def unsupported(message: str) -> Refusal:
    """The vendor has this and Pagefile does not."""
    return Refusal(501, message)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its parameters by name, whether they came in the query string or as JSON."""

    memory: Memory
    tenant: str
    #: The user that the caller's key is bound to; None: any of the tenant.
    user: str | None
    #: The id of the caller's key.
    key_id: str | None
    query: Mapping[str, str]
    #: Values that a parameter of the query string has more than once.
    lists: Mapping[str, Sequence[str]]
    body: Any

    @property
    def memories(self) -> Memories:
        return Memories(self.memory, self.tenant, self.user)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The JSON object that was sent."""
        found = as_object({} if self.body is None else self.body)
        if found is None:
            raise InvalidArgumentError("The body must be a JSON object.")
        return found


class Answer(NamedTuple):
    body: JsonValue
    status: int = 200


Handler: TypeAlias = Callable[..., Awaitable[Answer]]


class Api:
    """One vendor's routes. A path's `{names}` are passed to the handler after the request."""

    #: Where the vendor's client is pointed at: `http://host:port` and this.
    prefix: ClassVar[str]
    routes: ClassVar[Mapping[str, Handler]]

    @classmethod
    def found(cls, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        """The handler of a path without the prefix; a slash at its end does not count."""
        for pattern, handler in cls._patterns():
            if (match := pattern.fullmatch(f"{method} {path.rstrip('/')}")) is not None:
                return handler, match.groupdict()
        return None

    @classmethod
    def _patterns(cls) -> list[tuple[re.Pattern[str], Handler]]:
        if "_compiled" not in vars(cls):
            cls._compiled = [
                (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.rstrip("/"))), handler)
                for route, handler in cls.routes.items()
            ]
        return cls._compiled

    _compiled: ClassVar[list[tuple[re.Pattern[str], Handler]]]

    @classmethod
    def problem(cls, status: int, message: str, kind: str | None = None) -> JsonValue:
        """An error in the vendor's shape."""
        return {"detail": message}


def text_in(fields: Mapping[str, Any], name: str) -> str | None:
    """A field that is text; None if it is missing or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"`{name}` must be text.")
    return value


def required(fields: Mapping[str, Any], name: str) -> str:
    value = text_in(fields, name)
    if value is None:
        raise InvalidArgumentError(f"`{name}` is required.")
    return value


def count_in(fields: Mapping[str, Any], name: str, default: int, most: int, least: int = 1) -> int:
    """A whole number, also as text, no smaller than `least`; a larger one than `most` counts as that."""
    number = number_in(fields, name)
    if number is None:
        return default
    if number != int(number) or number < least:
        raise InvalidArgumentError(f"`{name}` must be a whole number from {least}.")
    return min(int(number), most)


def number_in(fields: Mapping[str, Any], name: str) -> float | None:
    """A finite number, also as text; None if it is missing or null."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"`{name}` must be a number.") from error
    if not isfinite(number) or abs(number) > _MOST:
        raise InvalidArgumentError(f"`{name}` is too large.")
    return number


def texts_in(fields: Mapping[str, Any], name: str) -> list[str]:
    """A field that is a list of texts; empty if it is missing or null."""
    value = as_list(fields.get(name) or [])
    if value is None or not all(isinstance(one, str) for one in value):
        raise InvalidArgumentError(f"`{name}` must be a list of texts.")
    return value


def object_in(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A field that is an object; empty if it is missing or null."""
    value = as_object(fields.get(name) or {})
    if value is None:
        raise InvalidArgumentError(f"`{name}` must be an object.")
    return value
