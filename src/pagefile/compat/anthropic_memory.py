"""Anthropic's memory tool with a Pagefile memory behind it: `client.beta.messages.tool_runner(tools=[MemoryTool(memory, user_id=…)])`."""

from functools import partial
from typing import Any

from pydantic import BaseModel

from pagefile.blocking import BlockingMemory
from pagefile.compat.memory_files import MemoryFileError, MemoryFiles
from pagefile.edge.fail_open import MemoryLoop
from pagefile.engine import Memory
from pagefile.errors import MissingExtraError

try:
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        ToolError,
    )
except ImportError as error:
    raise MissingExtraError.of("anthropic", "Anthropic's memory tool") from error


class _Commands:
    """The user's `/memories`, on the loop of the memory."""

    def __init__(self, memory: Memory | BlockingMemory, user_id: str, tenant: str | None) -> None:
        self.loop = MemoryLoop(memory)
        self.files = MemoryFiles.of(self.loop.memory, user_id, tenant)

    async def call(self, command: Any) -> str:
        # Without warnings: what a model got wrong in a command is told to the model.
        given: Any = (
            command.model_dump(exclude_none=True, warnings=False)
            if isinstance(command, BaseModel)
            else command
        )
        try:
            return await self.files.call(given)
        except MemoryFileError as error:
            raise ToolError(str(error)) from error


class MemoryTool(BetaAbstractMemoryTool):
    """`memory_20250818` for the synchronous client; give it a `BlockingMemory`.

    Args:
        user_id: whose `/memories` the model sees; no other user's is within reach.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str,
        tenant: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = _Commands(memory, user_id, tenant)

    def execute(self, command: Any) -> str:
        return self._commands.loop.waited(partial(self._commands.call, command))

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        return self._commands.loop.waited(self._commands.files.clear)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`memory_20250818` for the asynchronous client."""

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str,
        tenant: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = _Commands(memory, user_id, tenant)

    async def execute(self, command: Any) -> str:
        return await self._commands.loop.started(partial(self._commands.call, command))

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        return await self._commands.loop.started(self._commands.files.clear)
