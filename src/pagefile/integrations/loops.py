"""Which event loop runs: frameworks call from the memory's own loop, from another one, and from threads that have none."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

R = TypeVar("R")


async def awaited(work: Callable[[], Awaitable[R]]) -> R:
    """Begin the work where this runs: what it makes belongs to that loop."""
    return await work()


async def this_loop() -> asyncio.AbstractEventLoop:
    """The loop that runs this."""
    return asyncio.get_running_loop()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
