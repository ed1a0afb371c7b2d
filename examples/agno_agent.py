"""An Agno agent whose model has memory.

Run it with `python examples/agno_agent.py`; the model follows a script, everything else is real.
"""

import json
import tempfile
from dataclasses import dataclass

import anyio
from agno.agent import Agent
from agno.db.base import SessionType
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse

from pagefile import Memory
from pagefile.integrations.agno import PagefileMemory


@dataclass
class Scripted(Model):
    """In place of a chat model: looks whether memory told it what to avoid."""

    id: str = "scripted"

    async def ainvoke(self, *, messages, **more):
        known = any("allergic to hazelnuts" in message.get_content_string() for message in messages)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        return ModelResponse(role="assistant", content=text)

    def invoke(self, *given, **more):
        raise NotImplementedError

    invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada")
            remembered, db = PagefileMemory(memory), InMemoryDb()
            agent = Agent(
                model=remembered.model(Scripted()),
                tools=remembered.tools(),
                instructions="You are a waiter.",
                db=db,
                add_history_to_context=True,
                telemetry=False,
            )
            run = await agent.arun(
                "Which cake? Am I allergic to hazelnuts?", user_id="ada", session_id="dinner"
            )
            print(run.content)
            session = db.get_session(session_id="dinner", session_type=SessionType.AGENT)
            print("memory in the session:", "<memory>" in json.dumps(session.to_dict(), default=str))
            print([turn.assistant for turn in await memory.conversation("dinner", user_id="ada").turns()])


anyio.run(main)
