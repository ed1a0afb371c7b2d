"""A scripted model for CrewAI."""

import json
from typing import Any

from crewai import BaseLLM
from pydantic import PrivateAttr

from pagefile.testing.contracts.adapters import Give, Use


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
