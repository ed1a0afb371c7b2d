"""A scripted model for LlamaIndex."""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from pagefile.testing.contracts.adapters import Use


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
