"""How a process of the service ends: it says so, waits for running requests, and tells those that it does not wait for.

A load balancer that asks `/readyz` hears 503 first, while requests are still answered. Then the socket is closed, and running requests may
end. Those that are left are cancelled one by one, and say so to their clients: uvicorn would cut them off, with a traceback each.
"""

import socket
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, cast

import anyio
import uvicorn
from starlette.types import Scope

from pagefile.settings import ServiceSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

#: How long cancelled requests have to say so, and to write down how far they came.
_LAST_WORDS_S = 3
CUT_OFF = "The service was stopped before this request was done: try again in a moment."


@dataclass(slots=True)
class Stopping:
    """Whether the process was told to end, and whether it waits for requests no longer."""

    asked: bool = False
    cutting: bool = False


def is_ending(scope: Scope) -> bool:
    """Whether the service was told to stop."""
    return cast("Stopping", scope["app"].state.stopping).asked


def is_cutting(scope: Scope) -> bool:
    """Whether a request that is cancelled is so because the service ends."""
    app = cast("FastAPI | None", scope.get("app"))
    return app is not None and cast("Stopping", app.state.stopping).cutting


class Server(uvicorn.Server):
    """Signals when it accepts requests, and ends in the steps above."""

    def __init__(
        self, config: uvicorn.Config, service: ServiceSettings, stopping: Stopping, ready: Event | None = None
    ) -> None:
        config.timeout_graceful_shutdown = service.grace_s + _LAST_WORDS_S
        super().__init__(config)
        self._service, self._stopping, self._ready = service, stopping, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.asked = True
        end = anyio.current_time() + self._service.stop_delay_s
        # Ctrl-C twice is for those who do not want to wait.
        while anyio.current_time() < end and not self.force_exit:  # noqa: ASYNC110 - uvicorn has a flag and no event
            await anyio.sleep(0.05)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_off)
            await super().shutdown(sockets)
            tasks.cancel_scope.cancel()

    async def _cut_off(self) -> None:
        await anyio.sleep(self._service.grace_s)
        self._stopping.cutting = True
        for task in list(self.server_state.tasks):
            task.cancel()


def ending_s(service: ServiceSettings) -> float:
    """How long a process may take to end, beside its background work."""
    return service.stop_delay_s + service.grace_s + _LAST_WORDS_S
