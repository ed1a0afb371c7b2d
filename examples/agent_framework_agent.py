"""An agent of Microsoft's Agent Framework with Pagefile's context and history providers.

Run it with `python examples/agent_framework_agent.py`; the model follows a script, everything else is real.
"""

import tempfile

import anyio
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
)

from pagefile import Memory
from pagefile.integrations.agent_framework import PagefileHistory, PagefileProvider


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """In place of a chat model: looks whether memory told it what to avoid."""

    async def _inner_get_response(self, *, messages, stream, options, **more):
        known = any("allergic to hazelnuts" in message.text for message in messages)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        return ChatResponse(messages=[Message("assistant", [text])])


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada")
            history = PagefileHistory(memory, user_id="ada")
            providers = [history, PagefileProvider(memory, user_id="ada")]
            agent = Agent(Scripted(), "You are a waiter.", context_providers=providers)
            session = agent.create_session(session_id="dinner")
            print((await agent.run("Which cake? Am I allergic to hazelnuts?", session=session)).text)
            saved = "".join(message.text for message in await history.get_messages("dinner"))
            print("memory in the history:", "<memory>" in saved)
            print([turn.assistant for turn in await memory.conversation("dinner", user_id="ada").turns()])


anyio.run(main)
