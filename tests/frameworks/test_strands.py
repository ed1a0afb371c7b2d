"""The adapters' contract with Strands Agents."""

import json

from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent

from pagefile.integrations.strands import PagefilePlugin
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .strands_model import Scripted


class Trip(BaseModel):
    """A journey."""

    city: str
    days: int


class Strands(AdapterDriver):
    framework, package = "Strands Agents", "strands-agents"

    def __init__(self, memory):
        super().__init__(memory)
        self.messages, self.waiting = {}, {}

    def _agent(self, task):
        agent = Agent(
            Scripted(task.player),
            tools=[tool(one) for one in task.tools],
            messages=list(self.messages.get(task.conversation, [])),
            system_prompt="Help.",
            callback_handler=None,
            retry_strategy=None,
            plugins=[PagefilePlugin(self.memory, task.conversation, user_id=task.user)],
        )

        def asked(event: BeforeToolCallEvent):
            if event.tool_use["name"] in task.approved:
                event.interrupt("approve", reason=event.tool_use["name"])

        agent.add_hook(asked, BeforeToolCallEvent)
        return agent

    async def run(self, task):
        return await self._run(task, self._agent(task), task.prompt)

    async def resume(self, task):
        agent, interrupts = self.waiting.pop(task.conversation)
        answers = [{"interruptResponse": {"interruptId": one.id, "response": "yes"}} for one in interrupts]
        return await self._run(task, agent, answers)

    async def _run(self, task, agent, given):
        if task.stream:
            pieces = [event["data"] async for event in agent.stream_async(given) if "data" in event]
            self.messages[task.conversation] = agent.messages
            return Outcome("".join(pieces), pieces)
        more = {"structured_output_model": Trip} if task.structured else {}
        ended = await agent.invoke_async(given, **more)
        if ended.stop_reason == "interrupt":
            self.waiting[task.conversation] = agent, ended.interrupts
            return Outcome("", waits=True)
        self.messages[task.conversation] = agent.messages
        return Outcome(str(ended).strip())

    async def saved(self, task):
        return json.dumps(self.messages[task.conversation])


class TestStrands(AdapterContract):
    driver = Strands
