"""Fills in the demo while the service runs: one run at a time, with its progress visible to every reader."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from pagefile.errors import ConflictError, PagefileError
from pagefile.inspector.demo import fill_demo
from pagefile.inspector.start import DemoState
from pagefile.settings import Settings

logger = logging.getLogger("pagefile")


class Filling:
    """Fills in the demo on request."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self.state = DemoState()

    def start(self, settings: Settings) -> None:
        """Start, unless it is already running."""
        if self.state.running:
            raise ConflictError("The demo is being filled in already: look again in a moment.")
        self.state = DemoState(running=True)
        self._tasks.start_soon(self._fill, settings)

    async def _fill(self, settings: Settings) -> None:
        def told(done: int, total: int) -> None:
            self.state = DemoState(done, total, running=True)

        try:
            await fill_demo(settings, told)
        except PagefileError as error:
            logger.exception("the demo could not be filled in")
            self.state = DemoState(failed=str(error))
        else:
            self.state = DemoState()


@asynccontextmanager
async def filling() -> AsyncGenerator[Filling]:
    """Runs for as long as the service does; an interrupted run is completed by starting another."""
    async with anyio.create_task_group() as tasks:
        try:
            yield Filling(tasks)
        finally:
            tasks.cancel_scope.cancel()
