"""A Strands agent with Pagefile's plug-in.

Run it with `python examples/strands_agent.py`; the model follows a script, everything else is real.
"""

import json
import tempfile

import anyio
from strands import Agent
from strands.models import Model

from pagefile import Memory
from pagefile.integrations.strands import PagefilePlugin


class Scripted(Model):
    """In place of a chat model: looks whether memory told it what to avoid."""

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        known = "allergic to hazelnuts" in json.dumps(messages)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    def get_config(self):
        return {}

    def update_config(self, **config):
        pass

    def structured_output(self, output_model, prompt, system_prompt=None, **more):
        raise NotImplementedError


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada")
            plugin = PagefilePlugin(memory, "dinner", user_id="ada")
            agent = Agent(
                Scripted(), system_prompt="You are a waiter.", callback_handler=None, plugins=[plugin]
            )
            print(str(await agent.invoke_async("Which cake? Am I allergic to hazelnuts?")).strip())
            print("memory in the messages:", "<memory>" in json.dumps(agent.messages))
            print([turn.assistant for turn in await memory.conversation("dinner", user_id="ada").turns()])


anyio.run(main)
