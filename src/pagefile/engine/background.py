"""A process that does nothing but background work: it looks for what others wrote, and catches up with it."""

import signal
from collections.abc import Callable
from dataclasses import replace

import anyio

from pagefile.engine.memory import Memory
from pagefile.errors import SettingsError
from pagefile.ports import Meter
from pagefile.settings import Settings

#: Databases that live in one process: no other could look after them.
_PRIVATE = frozenset({"memory:", "sqlite:", "sqlite:///:memory:"})


def dedicated(settings: Settings) -> Settings:
    """The settings of a process that only does background work; refuses a database that others cannot share."""
    if settings.url.partition("?")[0].rstrip("/") in _PRIVATE:
        raise SettingsError(
            f"{settings.url!r} lives in the process that opened it, so a worker beside it would find nothing: name a database file or a server."
        )
    return replace(settings, worker="dedicated")


async def look_after(settings: Settings, ready: Callable[[], None], meter: Meter | None = None) -> None:
    """Do background work until SIGINT or SIGTERM; `ready` is called when it has begun."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with Memory.open(settings=dedicated(settings), meter=meter):
            ready()
            async for _ in signals:
                return
