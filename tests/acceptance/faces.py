"""One story, four faces: the memory and its client, each with `await` and blocking, so that all run the same tests.

A blocking face is behind `await`; a client talks to a service in a thread of its own, through a socket.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread
import pytest

from pagefile import BlockingConversation, BlockingMemory, Memory, Settings
from pagefile.client import BlockingClient, Client

from .http_server import listening_async

MEMORIES = ["async", "blocking"]
CLIENTS = ["client", "blocking client"]
#: For a test that takes `face`: each verb is asked through both, while how a memory behaves behind it is asked once.
both_faces = pytest.mark.parametrize("face", MEMORIES, indirect=True)


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
    if face in CLIENTS:
        async with _client(face, *args, **kwargs) as memory:
            yield memory
        return
    async with _entered(BlockingMemory.open(*args, **kwargs)) as memory:
        yield memory


@asynccontextmanager
async def _client(face: str, url: str, *, settings: Settings | None = None) -> AsyncIterator[Any]:
    async with listening_async(replace(settings or Settings(), url=url)) as address:
        if face == "client":
            async with Client(address) as client:
                yield client
        else:
            async with _entered(BlockingClient.open(address)) as client:
                yield client


@asynccontextmanager
async def _entered(blocking: Any) -> AsyncIterator[Any]:
    memory = await anyio.to_thread.run_sync(blocking.__enter__)
    try:
        yield Awaitable(memory)
    finally:
        await anyio.to_thread.run_sync(blocking.__exit__, None, None, None)
