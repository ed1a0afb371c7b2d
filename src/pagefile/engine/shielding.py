"""Clean-up for callers that are being cancelled, in which every `await` would otherwise raise at once."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

#: How long a cancelled caller is delayed at most.
SHIELD_S = 5.0

T = TypeVar("T")


async def seen_through(work: Callable[[], Awaitable[T]]) -> T:
    """Run idempotent work to the end even if the caller is cancelled."""
    with anyio.move_on_after(SHIELD_S, shield=True):
        return await work()
    # It is slow. Outside the shield a cancelled caller is cancelled here, and any other waits as long as it
    # takes.
    return await work()
