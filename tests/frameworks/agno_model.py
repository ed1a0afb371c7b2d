"""A scripted model for Agno."""

import json
from dataclasses import dataclass
from typing import Any

from agno.models.base import Model
from agno.models.response import ModelResponse

from pagefile.testing.contracts.adapters import (
    Give,
    Use,
)


@dataclass
class Scripted(Model):
    id: str = "scripted"
    player: Any = None

    def _said(self, messages):
        step = self.player.next("\n".join(f"{one.role}: {one.get_content_string()}" for one in messages))
        if isinstance(step, Give):
            return ModelResponse(role="assistant", content=json.dumps(step.value))
        if not isinstance(step, Use):
            return ModelResponse(role="assistant", content=step.text)
        calls = [
            {
                "id": f"call_{len(self.player.requests)}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for at, (name, given) in enumerate(step.calls)
        ]
        return ModelResponse(role="assistant", content=step.text or None, tool_calls=calls)

    def invoke(self, *, messages, **more):
        return self._said(messages)

    async def ainvoke(self, *, messages, **more):
        return self._said(messages)

    def invoke_stream(self, *, messages, **more):
        said = self._said(messages)
        if said.tool_calls:
            yield said
            return
        for at, word in enumerate(said.content.split(" ")):
            yield ModelResponse(role="assistant", content=word if not at else f" {word}")

    async def ainvoke_stream(self, *, messages, **more):
        for piece in self.invoke_stream(messages=messages):
            yield piece

    def _parse_provider_response(self, response, **more):
        return response

    def _parse_provider_response_delta(self, response):
        return response
