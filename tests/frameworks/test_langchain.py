"""The adapters' contract with LangChain's `create_agent`."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .langchain_model import Scripted, Trip


class LangChain(AdapterDriver):
    framework, package = "LangChain", "langchain"

    def __init__(self, memory):
        super().__init__(memory)
        self.saver = InMemorySaver()

    def _agent(self, task):
        middleware: list[Any] = [PagefileMiddleware(self.memory)]
        if task.approved:
            middleware.append(HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(task.approved, True)))
        return create_agent(
            Scripted(player=task.player),
            list(task.tools),
            middleware=middleware,
            checkpointer=self.saver,
            response_format=ToolStrategy(Trip) if task.structured else None,
        )

    def _config(self, task):
        return {"configurable": {"thread_id": task.conversation, "user_id": task.user}}

    async def run(self, task):
        return await self._invoked(task, {"messages": [("user", task.prompt)]})

    async def retry(self, task):
        return await self._invoked(task, None)  # the thread has the message already

    async def resume(self, task):
        return await self._invoked(task, Command(resume={"decisions": [{"type": "approve"}]}))

    async def _invoked(self, task, given):
        agent, config = self._agent(task), self._config(task)
        if task.stream:
            pieces = [
                chunk.text
                async for chunk, _ in agent.astream(given, config, stream_mode="messages")
                if isinstance(chunk, AIMessageChunk) and chunk.text
            ]
            return Outcome("".join(pieces), pieces)
        state = await agent.ainvoke(given, config)
        return Outcome(state["messages"][-1].text, waits="__interrupt__" in state)

    async def saved(self, task):
        state = await self._agent(task).aget_state(self._config(task))
        return str(state) + str([one async for one in self.saver.alist(self._config(task))])


class TestLangChain(AdapterContract):
    driver = LangChain
