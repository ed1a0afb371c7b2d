"""The adapters' contract with LlamaIndex's `FunctionAgent`."""

import functools
import inspect
import json
from typing import ClassVar

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from pagefile.integrations.llama_index import PagefileChatMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .llama_index_model import Scripted


def _asking(tool):
    """The tool, which waits for a person first."""

    async def asked(ctx: Context, **given):
        await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="approve?"))
        return tool(**given)

    asked = functools.wraps(tool)(asked)
    own = inspect.signature(tool)
    first = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
    asked.__signature__ = own.replace(parameters=[first, *own.parameters.values()])
    asked.__annotations__ = {"ctx": Context, **tool.__annotations__}
    return FunctionTool.from_defaults(async_fn=asked, name=tool.__name__)


class LlamaIndex(AdapterDriver):
    framework, package = "LlamaIndex", "llama-index-core"
    cannot: ClassVar = {
        "structured_output": "the structure is made from the answer afterwards, and LlamaIndex gives it to no memory"
    }

    def __init__(self, memory):
        super().__init__(memory)
        self.memories, self.waiting = {}, {}

    def _chat(self, task):
        if task.conversation not in self.memories:
            self.memories[task.conversation] = PagefileChatMemory.of(
                self.memory, task.conversation, user_id=task.user
            )
        return self.memories[task.conversation]

    async def run(self, task):
        chat = self._chat(task)
        tools = [_asking(tool) if tool.__name__ in task.approved else tool for tool in task.tools]
        agent = FunctionAgent(
            llm=Scripted(player=task.player), tools=[*tools, *chat.tools()], system_prompt="Help."
        )
        return await self._heard(task, agent.run(task.prompt, memory=chat))

    async def resume(self, task):
        handler = self.waiting.pop(task.conversation)
        handler.ctx.send_event(HumanResponseEvent(response="yes"))
        return await self._heard(task, handler)

    async def _heard(self, task, handler):
        pieces = []
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                self.waiting[task.conversation] = handler
                return Outcome("", waits=True)
            if isinstance(event, AgentStream) and event.delta:
                pieces.append(event.delta)
        return Outcome(str(await handler), pieces)

    async def saved(self, task):
        return json.dumps([one.model_dump(mode="json") for one in await self._chat(task).aget_all()])


class TestLlamaIndex(AdapterContract):
    driver = LlamaIndex
