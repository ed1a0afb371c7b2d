"""The adapters' contract with Agno."""

import json

from agno.agent import Agent
from agno.db.base import SessionType
from agno.db.in_memory import InMemoryDb
from agno.tools import tool
from pydantic import BaseModel

from pagefile.integrations.agno import PagefileMemory
from pagefile.testing.contracts.adapters import (
    AdapterContract,
    AdapterDriver,
    ModelBrokeError,
    Outcome,
)

from .agno_model import Scripted


class Trip(BaseModel):
    city: str
    days: int


class Agno(AdapterDriver):
    framework, package = "Agno", "agno"

    def __init__(self, memory):
        super().__init__(memory)
        self.db, self.waiting = InMemoryDb(), {}
        self.remembered = PagefileMemory(memory)

    def _agent(self, task):
        tools = [
            tool(requires_confirmation=True)(one) if one.__name__ in task.approved else one
            for one in task.tools
        ]
        return Agent(
            id="helper",
            model=self.remembered.model(Scripted(player=task.player)),
            tools=[*tools, *self.remembered.tools()],
            instructions="Help.",
            db=self.db,
            add_history_to_context=True,
            output_schema=Trip if task.structured else None,
            telemetry=False,
        )

    async def run(self, task):
        agent = self._agent(task)
        whose = {"user_id": task.user, "session_id": task.conversation}
        if task.stream:
            events = [event async for event in agent.arun(task.prompt, stream=True, **whose)]
            pieces = [event.content for event in events if event.event == "RunContent" and event.content]
            return Outcome("".join(pieces), pieces)
        return self._ended(task, agent, await agent.arun(task.prompt, **whose))

    async def resume(self, task):
        agent, run = self.waiting.pop(task.conversation)
        for one in run.tools_requiring_confirmation:
            one.confirmed = True
        whose = {"user_id": task.user, "session_id": task.conversation}
        return self._ended(task, agent, await agent.acontinue_run(run_response=run, **whose))

    def _ended(self, task, agent, run):
        if run.status == "ERROR" or str(run.status).endswith("error"):
            raise ModelBrokeError(run.content)
        if run.is_paused:
            self.waiting[task.conversation] = agent, run
        return Outcome(str(run.content), waits=run.is_paused)

    async def saved(self, task):
        session = self.db.get_session(session_id=task.conversation, session_type=SessionType.AGENT)
        return json.dumps(session.to_dict(), default=str)


class TestAgno(AdapterContract):
    driver = Agno
