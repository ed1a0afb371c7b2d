"""The adapters' contract with CrewAI's agents."""

import json
from functools import partial
from typing import Any, ClassVar

import anyio.to_thread
import pytest
from crewai import Agent, BaseLLM
from crewai.tools import tool
from pydantic import BaseModel, PrivateAttr

from pagefile.integrations.crewai import PagefileMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Give, Outcome, Use


class Trip(BaseModel):
    city: str
    days: int


class Scripted(BaseLLM):
    _player: Any = PrivateAttr()

    @classmethod
    def of(cls, player):
        made = cls(model="scripted")
        made._player = player
        return made

    def call(self, messages, tools=None, response_model=None, **more):
        step = self._player.next(json.dumps(messages, ensure_ascii=False))
        if isinstance(step, Give):
            return response_model(**step.value) if response_model else json.dumps(step.value)
        if not isinstance(step, Use):
            return step.text
        return [
            {
                "id": f"call_{len(self._player.requests)}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for at, (name, given) in enumerate(step.calls)
        ]

    async def acall(self, messages, **more):
        return self.call(messages, **more)

    def supports_function_calling(self):
        return True

    def get_context_window_size(self):
        return 100_000


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
