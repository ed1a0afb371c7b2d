"""The adapters' contract with LlamaIndex's `FunctionAgent`."""

import functools
import inspect
import json
from typing import Any, ClassVar

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from pagefile.integrations.llama_index import PagefileChatMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome, Use


class Scripted(FunctionCallingLLM):
    player: Any

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _said(self, messages):
        step = self.player.next("\n".join(f"{one.role}: {one.content}" for one in messages))
        if not isinstance(step, Use):
            return ChatMessage(role="assistant", content=step.text)
        number = len(self.player.requests)
        blocks = [TextBlock(text=step.text)] if step.text else []
        blocks += [
            ToolCallBlock(tool_call_id=f"call_{number}_{at}", tool_name=name, tool_kwargs=given)
            for at, (name, given) in enumerate(step.calls)
        ]
        return ChatMessage(role="assistant", blocks=blocks)

    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **more):
        said = self._said(chat_history)

        async def pieces():
            words, text = (said.content or "").split(" "), ""
            for at, word in enumerate(words):
                delta = word if not at else f" {word}"
                text += delta
                last = at == len(words) - 1
                message = said if last else ChatMessage(role="assistant", content=text)
                yield ChatResponse(message=message, delta=delta)

        return pieces()

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **more):
        return [
            ToolSelection(tool_id=one.tool_call_id, tool_name=one.tool_name, tool_kwargs=one.tool_kwargs)
            for one in response.message.blocks
            if isinstance(one, ToolCallBlock)
        ]

    def _prepare_chat_with_tools(self, *given, **more):
        raise NotImplementedError

    chat = complete = stream_chat = stream_complete = _prepare_chat_with_tools
    achat = acomplete = astream_chat = astream_complete = _prepare_chat_with_tools


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
