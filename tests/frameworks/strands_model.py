"""A scripted model for Strands."""

import json

from strands.models import Model

from pagefile.testing.contracts.adapters import Give, Use


class Scripted(Model):
    def __init__(self, player):
        self.player = player

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, output_model, prompt, system_prompt=None, **more):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        step = self.player.next(f"{system_prompt}\n{json.dumps(messages)}")
        if isinstance(step, Give):
            step = Use((("Trip", step.value),))
        yield {"messageStart": {"role": "assistant"}}
        if text := step.text:
            yield {"contentBlockStart": {"start": {}}}
            for at, word in enumerate(text.split(" ")):
                yield {"contentBlockDelta": {"delta": {"text": word if not at else f" {word}"}}}
            yield {"contentBlockStop": {}}
        calls = step.calls if isinstance(step, Use) else ()
        for at, (name, given) in enumerate(calls):
            use = {"name": name, "toolUseId": f"call_{len(self.player.requests)}_{at}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
