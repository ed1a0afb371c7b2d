"""A scripted model for Google's ADK."""

import json
from typing import Any

from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

from pagefile.testing.contracts.adapters import Give, Use

APP = "default"


class Scripted(BaseLlm):
    player: Any

    async def generate_content_async(self, llm_request, stream=False):
        said = json.dumps([one.model_dump(mode="json", exclude_none=True) for one in llm_request.contents])
        step = self.player.next(f"{llm_request.config.system_instruction}\n{said}")
        if isinstance(step, Use):
            parts = [types.Part(text=step.text)] if step.text else []
            parts += [
                types.Part(function_call=types.FunctionCall(name=name, args=given))
                for name, given in step.calls
            ]
            yield LlmResponse(content=types.Content(role="model", parts=parts))
            return
        text = json.dumps(step.value) if isinstance(step, Give) else step.text
        if stream:
            for at, word in enumerate(text.split(" ")):
                piece = types.Part(text=word if not at else f" {word}")
                yield LlmResponse(content=types.Content(role="model", parts=[piece]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))
