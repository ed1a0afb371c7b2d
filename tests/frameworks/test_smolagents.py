"""The adapters' contract with smolagents' `ToolCallingAgent`."""

import json
from functools import partial
from typing import ClassVar

import anyio.to_thread
from smolagents import ToolCallingAgent, tool
from smolagents.models import (
    ChatMessageStreamDelta,
)
from smolagents.monitoring import LogLevel

from pagefile.integrations.smolagents import PagefileMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .smolagents_model import Scripted


class Smolagents(AdapterDriver):
    framework, package, blocking = "smolagents", "smolagents", True
    cannot: ClassVar = {
        "interrupts": "no call can wait for an approval: an interrupted run ends, and is not resumed"
    }

    def __init__(self, memory):
        super().__init__(memory)
        self.steps, self.remembered = {}, {}

    async def run(self, task):
        return await anyio.to_thread.run_sync(partial(self._run, task))

    def _run(self, task):
        agent = ToolCallingAgent(
            [tool(one) for one in task.tools],
            Scripted(task.player),
            stream_outputs=task.stream,
            verbosity_level=LogLevel.OFF,
        )
        if task.conversation not in self.remembered:
            self.remembered[task.conversation] = PagefileMemory(
                self.memory, task.conversation, user_id=task.user
            )
        agent = self.remembered[task.conversation].attach(agent)
        agent.memory.steps = self.steps.setdefault(task.conversation, [])
        if not task.stream:
            return Outcome(str(agent.run(task.prompt, reset=False)))
        pieces = [
            call.function.arguments
            for event in agent.run(task.prompt, reset=False, stream=True)
            if isinstance(event, ChatMessageStreamDelta)
            for call in event.tool_calls or ()
        ]
        # The answer is the argument of a call.
        pieces = [pieces[0].removeprefix('{"answer":'), *pieces[1:]]
        pieces = [piece.removeprefix(' "').removesuffix('"}') for piece in pieces if piece]
        return Outcome("".join(pieces), pieces)

    async def saved(self, task):
        return json.dumps([step.dict() for step in self.steps[task.conversation]], default=str)


class TestSmolagents(AdapterContract):
    driver = Smolagents
