"""Calls of functions that users give, blocking or not."""

from collections.abc import Callable
from inspect import isawaitable, iscoroutinefunction
from typing import Any

import anyio.to_thread


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The answer of a function, sync or async; a sync one runs in a thread."""
    if iscoroutinefunction(function):
        return await function(*args, **kwargs)
    answer = await anyio.to_thread.run_sync(lambda: function(*args, **kwargs))
    return await answer if isawaitable(answer) else answer
