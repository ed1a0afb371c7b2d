"""Work that cancellation must not interrupt, and failures that must not spread."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import anyio

#: How long a cancelled caller is delayed at most.
SHIELD_S = 5.0

T = TypeVar("T")


async def shielded(work: Callable[[], Awaitable[T]]) -> T:
    """Run idempotent work to the end even if the caller is cancelled, in which every `await` would raise at once."""
    with anyio.move_on_after(SHIELD_S, shield=True):
        return await work()
    # It is slow. Outside the shield a cancelled caller is cancelled here, and any other waits as long as it
    # takes.
    return await work()


@contextmanager
def catching(handle: Callable[[Exception], None]) -> Generator[None]:
    """Passes on whatever the block raises: for foreign code, which may raise anything."""
    try:
        yield
    except Exception as error:
        handle(error)
