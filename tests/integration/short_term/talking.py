"""Turns through the document's API; run as a process of its own it writes many at once."""

import anyio

from pagefile import Memory
from pagefile.standalone import AgentApp, MemoryQueryRequest, MemoryWriteRequest

CONVERSATION = "conv-123"


async def say(app, number, conversation=CONVERSATION):
    request = MemoryWriteRequest(conversation, user_query=f"问{number}", agent_response=f"答{number}")
    return await app.write_turn(request)


async def ask(app, conversation=CONVERSATION):
    return await app.query_memory_context(MemoryQueryRequest(conversation, query="q"))


def write(url, sessions, numbers, together):
    """Write these turns, all at once, as soon as the other processes are ready too."""
    anyio.run(_write, url, sessions, numbers, together)


async def _write(url, sessions, numbers, together):
    async with Memory.open(url, sessions=sessions) as memory:
        app = AgentApp(memory)
        together.wait(60)
        async with anyio.create_task_group() as group:
            for number in numbers:
                group.start_soon(say, app, number)
