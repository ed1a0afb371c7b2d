"""A chat model of LangChain that plays a script."""

import json
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel

from pagefile.testing.contracts.adapters import Give, Use


class Trip(BaseModel):
    city: str
    days: int


class Scripted(BaseChatModel):
    player: Any

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **more):
        return self

    def _said(self, messages):
        step = self.player.next("\n".join(f"{message.type}: {message.text}" for message in messages))
        if isinstance(step, Give):
            step = Use((("Trip", step.value),))
        if not isinstance(step, Use):
            return AIMessage(step.text)
        number = len(self.player.requests)
        calls = [
            {"name": name, "args": given, "id": f"call_{number}_{at}"}
            for at, (name, given) in enumerate(step.calls)
        ]
        return AIMessage(step.text, tool_calls=calls)

    def _generate(self, messages, stop=None, run_manager=None, **more):
        return ChatResult(generations=[ChatGeneration(message=self._said(messages))])

    async def _astream(self, messages, stop=None, run_manager=None, **more):
        said = self._said(messages)
        if said.tool_calls:
            calls = [
                {**call, "args": json.dumps(call["args"]), "index": at}
                for at, call in enumerate(said.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(said.content, tool_call_chunks=calls))
            return
        for word in said.text.split(" "):
            text = word if word == said.text.split(" ")[0] else f" {word}"
            yield ChatGenerationChunk(message=AIMessageChunk(text))
