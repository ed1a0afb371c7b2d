"""The demo, filled in while the service runs: one at a time, and everybody sees how far it is."""

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
    """Fills the demo in when it is asked to."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self.state = DemoState()

    def start(self, settings: Settings) -> None:
        """Begin, unless it is being done already."""
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
    """For as long as the service runs; what is not finished then is finished by filling in again."""
    async with anyio.create_task_group() as tasks:
        try:
            yield Filling(tasks)
        finally:
            tasks.cancel_scope.cancel()
