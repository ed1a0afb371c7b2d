"""One story, two faces: the blocking face behind `await`, so that both run the same tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread

from pagefile import BlockingConversation, BlockingMemory, Memory


class Awaitable:
    """A blocking object whose verbs can be awaited; each runs in a worker thread, as a caller's would."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if not callable(verb):
            return verb
        if name == "conversation":
            return lambda *args, **kwargs: Awaitable(verb(*args, **kwargs))

        async def call(*args: Any, **kwargs: Any) -> Any:
            result = await anyio.to_thread.run_sync(partial(verb, *args, **kwargs))
            return Awaitable(result) if isinstance(result, BlockingConversation) else result

        return call


@asynccontextmanager
async def opened(face: str, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
    """A memory with the given face."""
    if face == "async":
        async with Memory.open(*args, **kwargs) as memory:
            yield memory
        return
    blocking = BlockingMemory.open(*args, **kwargs)
    memory = await anyio.to_thread.run_sync(blocking.__enter__)
    try:
        yield Awaitable(memory)
    finally:
        await anyio.to_thread.run_sync(blocking.__exit__, None, None, None)
