"""How tests wait: for the thing itself, as long as a busy machine may need for it, and no longer than it takes."""

import inspect
import time
from collections.abc import Callable
from typing import Any

import anyio

#: So long nothing takes that comes at all.
PATIENCE_S = 120.0
_LOOK_S = 0.01


async def until(met: Callable[[], Any]) -> None:
    """Return when it is so; what is asked may be awaitable."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = met()
            if await found if inspect.isawaitable(found) else found:
                return
            await anyio.sleep(_LOOK_S)


def until_so(met: Callable[[], Any]) -> None:
    """The same without an event loop."""
    end = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < end, f"it did not come to be within {PATIENCE_S} s"
        time.sleep(_LOOK_S)
