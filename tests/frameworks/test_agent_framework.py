"""The adapters' contract with Microsoft's Agent Framework."""

import json

from agent_framework import (
    Agent,
    Message,
    tool,
)
from pydantic import BaseModel

from pagefile.integrations.agent_framework import PagefileHistory, PagefileProvider
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .agent_framework_model import Scripted


class Trip(BaseModel):
    city: str
    days: int


class AgentFramework(AdapterDriver):
    framework, package = "Agent Framework", "agent-framework-core"

    def __init__(self, memory):
        super().__init__(memory)
        self.waiting = {}

    def _agent(self, task):
        tools = [
            tool(one, approval_mode="always_require" if one.__name__ in task.approved else "never_require")
            for one in task.tools
        ]
        self.history = PagefileHistory(self.memory, user_id=task.user)
        providers = [self.history, PagefileProvider(self.memory, user_id=task.user)]
        return Agent(Scripted(task.player), "Help.", tools=tools, context_providers=providers)

    async def run(self, task):
        agent = self._agent(task)
        return await self._run(task, agent, agent.create_session(session_id=task.conversation), task.prompt)

    async def resume(self, task):
        agent, session, requests = self.waiting.pop(task.conversation)
        approvals = [one.to_function_approval_response(True) for one in requests]
        return await self._run(task, agent, session, Message("user", approvals))

    async def _run(self, task, agent, session, given):
        options = {"response_format": Trip} if task.structured else None
        if task.stream:
            stream = agent.run(given, session=session, stream=True)
            pieces = [update.text async for update in stream if update.text]
            return Outcome((await stream.get_final_response()).text, pieces)
        response = await agent.run(given, session=session, options=options)
        if response.user_input_requests:
            self.waiting[task.conversation] = agent, session, response.user_input_requests
        return Outcome(response.text, waits=bool(response.user_input_requests))

    async def saved(self, task):
        return json.dumps([one.to_dict() for one in await self.history.get_messages(task.conversation)])


class TestAgentFramework(AdapterContract):
    driver = AgentFramework
