"""What the children of `bench vendors` have in common: each call is tried, and told as a line of JSON."""

import json
from collections.abc import Awaitable, Callable
from typing import Any


def _tell(call: str, problem: str | None) -> None:
    print(json.dumps({"call": call, "problem": problem}), flush=True)


def _problem(value: Any, holds: Callable[[Any], bool]) -> str | None:
    return None if holds(value) else f"unexpected answer: {str(value)[:200]}"


def tried(call: str, work: Callable[[], Any], holds: Callable[[Any], bool] = bool) -> Any:
    """The call's answer; what it raises is told, too, and counts as failed."""
    try:
        value = work()
    except Exception as error:
        _tell(call, f"{type(error).__name__}: {error}"[:300])
        return None
    _tell(call, _problem(value, holds))
    return value


async def awaited(call: str, work: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool] = bool) -> Any:
    """The same of an asynchronous client."""
    try:
        value = await work()
    except Exception as error:
        _tell(call, f"{type(error).__name__}: {error}"[:300])
        return None
    _tell(call, _problem(value, holds))
    return value


def refusal(work: Callable[[], Any]) -> str:
    """The name of the exception that a call raises."""
    try:
        work()
    except Exception as error:
        return type(error).__name__
    return "nothing"


async def awaited_refusal(work: Callable[[], Awaitable[Any]]) -> str:
    try:
        await work()
    except Exception as error:
        return type(error).__name__
    return "nothing"
