"""The adapters' contract with the OpenAI Agents SDK."""

import json

from agents import Agent, RunConfig, Runner, function_tool
from pydantic import BaseModel

from pagefile.integrations.openai_agents import PagefileSession
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .openai_agents_model import model_of


class Trip(BaseModel):
    city: str
    days: int


class OpenAIAgents(AdapterDriver):
    framework, package = "OpenAI Agents SDK", "openai-agents"

    def __init__(self, memory):
        super().__init__(memory)
        self.sessions, self.waiting = {}, {}

    def _session(self, task):
        if task.conversation not in self.sessions:
            self.sessions[task.conversation] = PagefileSession(
                self.memory, task.conversation, user_id=task.user
            )
        return self.sessions[task.conversation]

    def _agent(self, task):
        tools = [function_tool(tool, needs_approval=tool.__name__ in task.approved) for tool in task.tools]
        output = Trip if task.structured else None
        agent = Agent(
            "helper", instructions="Help.", model=model_of(task.player), tools=tools, output_type=output
        )
        return self._session(task).equipped(agent)

    async def run(self, task):
        return await self._run(task, self._agent(task), task.prompt)

    async def retry(self, task):
        await self._session(task).pop_item()  # the question that was not answered
        return await self.run(task)

    async def resume(self, task):
        agent, result = self.waiting.pop(task.conversation)
        state = result.to_state()
        for one in result.interruptions:
            state.approve(one)
        return await self._run(task, agent, state)

    async def _run(self, task, agent, given):
        session = self._session(task)
        more = {"session": session, "run_config": session.run_config(RunConfig(tracing_disabled=True))}
        if task.stream:
            streamed = Runner.run_streamed(agent, given, **more)
            pieces = [
                event.data.delta
                async for event in streamed.stream_events()
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            ]
            return Outcome(str(streamed.final_output), pieces)
        result = await Runner.run(agent, given, **more)
        if result.interruptions:
            self.waiting[task.conversation] = agent, result
        return Outcome(str(result.final_output), waits=bool(result.interruptions))

    async def saved(self, task):
        return json.dumps(await self._session(task).get_items())


class TestOpenAIAgents(AdapterContract):
    driver = OpenAIAgents
