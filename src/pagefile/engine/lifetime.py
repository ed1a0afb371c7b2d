"""How long a memory is open: for a `with` block, or from `connect` to `close`.

A task of its own opens a memory and closes it, because background work ends where it began: whoever leaves the block, or calls
`close`, may be another task than the one that came in (a notebook's cell, a fixture, an exit stack).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, TypeVar, cast

import anyio

from pagefile.errors import NotOpenError

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")


class Closable(Protocol):
    """What is opened: it is told how it is closed."""

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
            raise
        if not opened.done():
            # It ended before it was open: what went wrong is raised here.
            opened.cancel()
            self._keeping.result()
        return opened.result()

    async def _keep(self, opened: "asyncio.Future[T]") -> None:
        async with self._lifetime as memory:
            memory.closing = self.close
            opened.set_result(memory)
            await self._ended.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what is left, and close; twice is the same as once."""
        self._ended.set()
        if self._keeping is None:
            return
        keeping, self._keeping = self._keeping, None
        with anyio.CancelScope(shield=True):
            await asyncio.wait([keeping])
        if not keeping.cancelled():
            keeping.result()

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise NotOpenError

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOpenError


def opening(lifetime: Callable[P, AsyncGenerator[T]]) -> Callable[P, Opening[T]]:
    """Makes a function that yields a memory one that opens it."""
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

    connect.__doc__ = (
        "Open a memory that stays open until `close` is called; the arguments are those of `open`."
    )
    return connect


def plain_function(method: Callable[P, R]) -> Callable[P, R]:
    """What a class method is inside its class: to a type checker it is this already."""
    return cast("Callable[P, R]", getattr(method, "__func__", method))
