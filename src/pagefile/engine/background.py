"""A process that only does background work: it looks for what others wrote, and catches up with it."""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import anyio

from pagefile.engine.memory import Memory
from pagefile.errors import SettingsError
from pagefile.ports import Meter
from pagefile.settings import Settings

#: Databases that live in one process, so that no other process could work on them.
_PRIVATE = frozenset({"memory:", "sqlite:", "sqlite:///:memory:"})


def _is_private(settings: Settings) -> bool:
    return settings.url.partition("?")[0].rstrip("/") in _PRIVATE


def _in_milvus_file(settings: Settings) -> bool:
    return (settings.vectors or "").startswith("milvus:///")


def is_shared(settings: Settings) -> bool:
    """Whether several processes can work on this memory."""
    return not (_is_private(settings) or _in_milvus_file(settings))


def check_shared(settings: Settings, unshared: str) -> None:
    """Refuse what processes cannot share: an in-process database (saying `unshared`) or a Milvus file."""
    if _is_private(settings):
        raise SettingsError(unshared)
    if _in_milvus_file(settings):
        raise SettingsError(
            "A Milvus file belongs to one process: name a Milvus server, leave the vectors in the database, or start with one worker."
        )


def dedicated(settings: Settings) -> Settings:
    """Settings for a process that only does background work; refuses a database that cannot be shared."""
    check_shared(
        settings,
        f"{settings.url!r} lives in the process that opened it, so a separate worker would find nothing: name a database file or a server.",
    )
    # What it derives can be derived again, so its commits, during which nobody else writes, need not wait for the disk: a power cut
    # takes the last of them away in order, never one without those after it, and the log itself is as durable as its writers ask.
    return replace(settings, worker="dedicated", synchronous="normal")


async def look_after(
    settings: Settings,
    ready: Callable[[], None],
    meter: Meter | None = None,
    *,
    beside: Callable[[Memory], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Do background work until SIGINT or SIGTERM; `ready` is called once it has started, and `beside` runs meanwhile."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        opening = Memory.open(settings=dedicated(settings), meter=meter)
        async with opening as memory, anyio.create_task_group() as waiting:
            # A worker that fails ends the process, which then says why.
            waiting.start_soon(_stopped_after, opening.ended, waiting.cancel_scope)
            if beside is not None:
                waiting.start_soon(beside, memory)
            ready()
            async for _ in signals:
                break
            waiting.cancel_scope.cancel()


async def _stopped_after(ended: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
    await ended()
    scope.cancel()
