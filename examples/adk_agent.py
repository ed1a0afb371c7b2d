"""An agent of Google's ADK with Pagefile's plug-in and session service.

Run it with `python examples/adk_agent.py`; the model follows a script, everything else is real.
"""

import tempfile
from collections.abc import AsyncGenerator

import anyio
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.genai import types

from pagefile import Memory
from pagefile.integrations.adk import PagefileMemoryService, PagefilePlugin, PagefileSessionService


class Scripted(BaseLlm):
    """In place of a chat model: looks whether memory told it what to avoid."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        known = "allergic to hazelnuts" in str(llm_request.contents)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada", tenant="cafe")
            sessions = PagefileSessionService(memory)
            runner = Runner(
                app_name="cafe",
                agent=LlmAgent(
                    name="waiter", model=Scripted(model="scripted"), instruction="You are a waiter."
                ),
                session_service=sessions,
                memory_service=PagefileMemoryService(memory),
                plugins=[PagefilePlugin(memory)],
            )
            await sessions.create_session(app_name="cafe", user_id="ada", session_id="dinner")
            question = types.Part(text="Which cake? Am I allergic to hazelnuts?")
            async for event in runner.run_async(
                user_id="ada", session_id="dinner", new_message=types.Content(role="user", parts=[question])
            ):
                print(event.content.parts[0].text)
            session = await sessions.get_session(app_name="cafe", user_id="ada", session_id="dinner")
            print("memory in the session:", "<memory>" in session.model_dump_json())
            chat = memory.conversation("dinner", user_id="ada", tenant="cafe")
            print([turn.assistant for turn in await chat.turns()])


anyio.run(main)
