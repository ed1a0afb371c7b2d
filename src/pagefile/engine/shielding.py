"""Clean-up for callers who are being cancelled: there every `await` raises at once, and what must be written would not be."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

#: How long a cancelled caller is held up at most.
SHIELD_S = 5.0

T = TypeVar("T")


async def seen_through(work: Callable[[], Awaitable[T]]) -> T:
    """Do something that may be done twice, whether the caller is cancelled or not."""
    with anyio.move_on_after(SHIELD_S, shield=True):
        return await work()
    # It is slow. Here a cancelled caller goes on being cancelled, and anybody else waits as long as it takes.
    return await work()
