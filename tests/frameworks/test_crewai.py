"""The adapters' contract with CrewAI's agents."""

import json
from functools import partial
from typing import ClassVar

import anyio.to_thread
import pytest
from crewai import Agent
from crewai.tools import tool
from pydantic import BaseModel

from pagefile.integrations.crewai import PagefileMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .crewai_model import Scripted


class Trip(BaseModel):
    city: str
    days: int


class CrewAI(AdapterDriver):
    framework, package, blocking = "CrewAI", "crewai", True
    cannot: ClassVar = {
        "interrupts": "a person is asked on the console in the middle of a run, which cannot end and be resumed",
        "text_beside_calls": "an LLM returns either text or calls",
        "streaming": "chunks are events of the LLM itself; what an agent gets is the whole answer",
    }

    def __init__(self, memory):
        super().__init__(memory)
        self.remembered, self.kept = {}, {}

    async def run(self, task):
        return await anyio.to_thread.run_sync(partial(self._run, task))

    def _run(self, task):
        if task.conversation not in self.remembered:
            self.remembered[task.conversation] = PagefileMemory(
                self.memory, task.conversation, user_id=task.user
            )
        remembered = self.remembered[task.conversation]
        agent = Agent(
            role="helper",
            goal="help",
            backstory="You help.",
            llm=remembered.llm(Scripted.of(task.player)),
            tools=[*(tool(one.__name__)(one) for one in task.tools), *remembered.tools()],
            max_retry_limit=0,
        )
        result = agent.kickoff(task.prompt, **({"response_format": Trip} if task.structured else {}))
        self.kept.setdefault(task.conversation, []).append(result.messages)
        return Outcome(result.raw)

    async def saved(self, task):
        return json.dumps(self.kept[task.conversation], default=str)


class TestCrewAI(AdapterContract):
    driver = CrewAI


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))
