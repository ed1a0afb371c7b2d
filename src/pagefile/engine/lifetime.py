"""How long a memory is open: for a `with` block, or from `connect` to `close`.

A dedicated task opens and closes the memory, because a task group must be closed by the task that opened it,
while the block may be left, or `close` called, by a different task (a notebook's cell, a fixture, an exit
stack).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, TypeVar, cast

import anyio

from pagefile.errors import NotOpenError

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")


#: How long a cancelled caller is delayed at most.
SHIELD_S = 5.0


async def shielded(work: Callable[[], Awaitable[R]]) -> R:
    """Run idempotent work to the end even if the caller's scope is cancelled, where every `await` raises."""
    with anyio.move_on_after(SHIELD_S, shield=True):
        return await work()
    # It is slow. Outside the shield a cancelled caller is cancelled here, and any other waits as long as it
    # takes.
    return await work()


class Closable(Protocol):
    """Something that is opened, and gets a callback that closes it."""

    closing: Callable[[], Coroutine[Any, Any, None]]


T = TypeVar("T", bound=Closable)


class Opening(AbstractAsyncContextManager[T], Generic[T]):
    """What `open` returns: not a memory yet."""

    def __init__(self, lifetime: AbstractAsyncContextManager[T]) -> None:
        self._lifetime = lifetime
        self._ended = anyio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> T:
        opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._keeping = asyncio.create_task(  # noqa: TID251 - kept, and waited for in `close`
            self._keep(opened), name="pagefile-memory"
        )
        try:
            await asyncio.wait([opened, self._keeping], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._keeping.cancel()
            # What was opened so far is closed before the caller goes on.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._keeping])
            raise
        if not opened.done():
            # It ended before it was open: raise what went wrong.
            opened.cancel()
            self._keeping.result()
        return opened.result()

    async def _keep(self, opened: "asyncio.Future[T]") -> None:
        async with self._lifetime as memory:
            memory.closing = self.close
            opened.set_result(memory)
            await self._ended.wait()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, asyncio.CancelledError) and self._keeping is not None:
            # A cancelled caller does not wait for remaining work; the next process does it.
            self._keeping.cancel()
        await self.close()

    async def ended(self) -> None:
        """Wait until the memory is closed, or its background work has failed."""
        if self._keeping is not None:
            await asyncio.wait([self._keeping])

    async def close(self) -> None:
        """Finish what is left, and close; idempotent."""
        if self._keeping is None:
            return
        if not self._keeping.done():
            self._ended.set()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._keeping])
        if not self._keeping.cancelled():
            self._keeping.result()

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise NotOpenError

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOpenError


def opening(lifetime: Callable[P, AsyncGenerator[T]]) -> Callable[P, Opening[T]]:
    """Turns an async generator function that yields a memory into one that returns an `Opening`."""
    made = asynccontextmanager(lifetime)

    @wraps(lifetime)
    def open_(*args: P.args, **kwargs: P.kwargs) -> Opening[T]:
        return Opening(made(*args, **kwargs))

    return open_


def connecting(
    open_: Callable[Concatenate[Owner, P], Opening[T]],
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
    """The same without a `with` block."""
    function = plain_function(open_)

    @wraps(function)
    async def connect(owner: Owner, *args: P.args, **kwargs: P.kwargs) -> T:
        return await function(owner, *args, **kwargs).__aenter__()

    connect.__name__, connect.__qualname__ = "connect", function.__qualname__.replace("open", "connect")
    connect.__doc__ = (
        "Open a memory that stays open until `close` is called; the arguments are those of `open`."
    )
    return connect


def plain_function(method: Callable[P, R]) -> Callable[P, R]:
    """The function behind a class method; inside its class, a type checker already sees it as one."""
    return cast("Callable[P, R]", getattr(method, "__func__", method))
