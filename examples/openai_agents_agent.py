"""An agent of the OpenAI Agents SDK that knows its user from an earlier conversation.

Run it with `python examples/openai_agents_agent.py`; the model is the SDK's own for tests, everything else is real.
"""

import json
import tempfile

import anyio
from agents import Agent, RunConfig, Runner
from agents.testing import ModelStep, ScriptedModel, assistant_message

from pagefile import Memory
from pagefile.integrations.openai_agents import PagefileSession


def answer(call):
    """In place of a chat model: looks whether memory told it what to avoid."""
    known = "allergic to hazelnuts" in json.dumps(call.input)
    return [assistant_message("Not the hazelnut cake!" if known else "Take the hazelnut cake.")]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada")
            session = PagefileSession(memory, "dinner", user_id="ada")
            model = ScriptedModel([ModelStep.respond(answer)])
            agent = session.equipped(Agent("waiter", instructions="You are a waiter.", model=model))
            config = session.run_config(RunConfig(tracing_disabled=True))
            result = await Runner.run(
                agent, "Which cake? Am I allergic to hazelnuts?", session=session, run_config=config
            )
            print(result.final_output)
            print("memory in the session:", "<memory>" in json.dumps(await session.get_items()))
            print([turn.assistant for turn in await memory.conversation("dinner", user_id="ada").turns()])


anyio.run(main)
