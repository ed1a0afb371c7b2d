"""Client methods derived from the table of verbs: check the arguments as `Memory` does, send them, parse the response."""

import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import partial, wraps
from inspect import Parameter, get_annotations, signature
from types import NoneType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel

from pagefile.client.transport import Caller
from pagefile.engine.arguments import (
    at_least,
    checked_placement,
    checked_shape,
    cursor,
    listed_uuids,
    moment,
    pages_to_load,
    share,
    turn_id_of,
)
from pagefile.engine.drafts import (
    StepLike,
    checked_json,
    checked_message,
    checked_metadata,
    checked_steps,
)
from pagefile.engine.log_queries import checked_kind
from pagefile.records import JsonValue, Listing, Step, checked_id, checked_text
from pagefile.shapes import listed, plain_json
from pagefile.shapes.parser import results_cleaned
from pagefile.verbs import Verb
from pagefile.window.budget import tool_texts
from pagefile.wire.texts import MAX_PAGE

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[Any], object]

#: The service enforces length limits.
ANY_LENGTH = sys.maxsize


class Remote:
    """A memory or a conversation hosted by a service."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def _known(self) -> Mapping[str, object]:
        """The request fields this handle supplies itself."""
        return {}

    async def _asked(self, verb: Verb[..., Any], given: Mapping[str, object]) -> Any:
        """The response to a request with these fields and this handle's own."""
        return await self._caller.ask(verb, {**self._known_of(verb.request), **given})

    def _known_of(self, request: type[BaseModel]) -> dict[str, object]:
        """What this handle knows of a request's fields."""
        return {name: value for name, value in self._known().items() if name in request.model_fields}

    async def _returned(self, verb: Verb[..., Any], given: Mapping[str, object], *, whole: bool) -> Any:
        """What the verb returns; with `whole`, all items of a list, page by page."""
        if not whole:
            return verb.returned(await self._asked(verb, given))
        found: list[Any] = []
        after: Mapping[str, object] = {}
        while True:
            answer = await self._asked(verb, {**given, "limit": MAX_PAGE, **after})
            found += verb.returned(answer)
            if answer.next is None:
                return Listing(found)
            after = {"after": answer.next}


def remote(
    verb: Verb[P, R],
    *,
    first: Callable[[Any, dict[str, Any]], object] | None = None,
    then: Callable[[Any, R], R] | None = None,
    whole: bool = False,
    **checks: Check,
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method that sends the verb to a service.

    `first` may change the arguments, or raise for those that do not go together; `then` may change the result. With `whole`, all
    pages of a list are fetched. `checks` are for parameters that differ from those of the same name in other verbs.
    """
    looked_at = {name: checks.get(name, CHECKS.get(name)) for name in verb.fields}
    parameters = verb.signature.parameters
    hints = get_annotations(verb.method, eval_str=True)
    as_list = get_origin(hints["return"]) is list

    def value_of(name: str, value: object) -> object:
        check = looked_at[name]
        # None means "not given" only where the library says so; elsewhere the check refuses it, as the library does.
        if check is None or (value is None and NoneType in get_args(hints[name])):
            return value
        return check(value)

    def sent(given: Mapping[str, object]) -> dict[str, object]:
        """Leaves out None, for the service to fill in, unless the parameter is required."""
        values = {name: value_of(name, value) for name, value in given.items() if name in verb.fields}
        return {
            verb.fields[name]: value
            for name, value in values.items()
            if value is not None or parameters[name].default is Parameter.empty
        }

    @wraps(verb.method)
    async def call(self: Remote, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = verb.signature.bind(self, *args, **kwargs)
        given = bound.arguments
        if first is not None:
            bound.apply_defaults()
            given = dict(list(bound.arguments.items())[1:])
            first(self, given)
        returned = await self._returned(verb, sent(given), whole=whole)  # pyright: ignore[reportPrivateUsage] - this becomes a method of it
        result = cast("R", list(returned)) if as_list else returned
        return result if then is None else then(self, result)

    return call


def like(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
) -> Callable[[Callable[..., Coroutine[Any, Any, R]]], Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]]:
    """Gives a method the signature and the docstring of the library's, for verbs that need more than a request."""

    def decorate(
        method: Callable[..., Coroutine[Any, Any, R]],
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
        @wraps(verb)
        async def call(self: Remote, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature(verb).bind(self, *args, **kwargs)
            return await method(*bound.args, **bound.kwargs)

        return call

    return decorate


def said(given: Mapping[str, object]) -> dict[str, object]:
    """The fields that were given; None is left to the service."""
    return {name: value for name, value in given.items() if value is not None}


def as_it_is(value: object) -> object:
    """Left to the service to check."""
    return value


def is_id(name: str) -> Check:
    """A valid id."""
    return lambda value: checked_id(value, name)


def is_json(name: str) -> Check:
    """JSON that a database can store."""
    return lambda value: checked_json(value, name)


def is_message(name: str) -> Check:
    """One side of a turn; a blank one counts as missing."""
    return lambda value: checked_message(value, name, ANY_LENGTH)


def from_number(least: int, name: str) -> Check:
    """A whole number of at least this minimum."""
    return lambda value: at_least(least, value, name)


def messages_of(messages: Iterable[object]) -> list[JsonValue]:
    """Messages as the library would store them: tool results are repaired, the caller's own text is checked."""
    given = [results_cleaned(plain_json(message, number)) for number, message in enumerate(listed(messages))]
    return [checked_json(message, f"messages[{number}]") for number, message in enumerate(given)]


def steps_of(steps: Iterable[StepLike]) -> list[dict[str, object]]:
    """Steps as they are sent; a call without an id gets one from the service."""
    given = list(steps)
    return [
        {"tool": step.tool, "input": step.input, "result": step.result, **_own_id(one)}
        for one, step in zip(given, checked_steps(given, "", ANY_LENGTH), strict=True)
    ]


def _own_id(step: StepLike) -> dict[str, object]:
    own = step.call_id if isinstance(step, Step) else step.get("call_id")
    return {"call_id": own} if own else {}


#: How to check a parameter of this name before it is sent.
CHECKS: Mapping[str, Check] = {
    **{name: is_message(name) for name in ("user", "assistant", "instructions")},
    **{name: partial(checked_text, name=name) for name in ("query", "text", "tool", "uuid")},
    **{name: is_id(name) for name in ("id", "user_id", "tenant")},
    "call_id": is_id("call id"),
    "fact_id": is_id("fact id"),
    **{name: is_json(name) for name in ("input", "changes")},
    "arguments": lambda value: checked_json(dict(value), "arguments"),
    **{name: from_number(1, name) for name in ("limit", "revision")},
    **{name: from_number(0, name) for name in ("answer_tokens", "recent_turns")},
    **{name: lambda value: moment(value).isoformat() for name in ("at", "as_of", "valid_from")},
    "older_than": timedelta.total_seconds,
    "messages": messages_of,
    "steps": steps_of,
    "metadata": checked_metadata,
    "turn": turn_id_of,
    "tools": lambda tools: [json.loads(text) for text in tool_texts(tools)],
    "threshold": share,
    "load": pages_to_load,
    "placement": checked_placement,
    "shape": checked_shape,
    "kind": checked_kind,
    "after": cursor,
    "uuids": lambda uuids: list(listed_uuids(uuids)),
    "uuid": str,
}
