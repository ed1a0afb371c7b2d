"""An agent that fetches something long and then hangs in its second tool, until it is killed."""

import asyncio
import sys

from pagefile import Memory
from pagefile.integrations.pydantic_ai import PagefileMemory
from tests.integration.pydantic_ai.agents import Script


async def main(url: str) -> None:
    async with Memory.open(url) as memory:
        script = Script(("fetch", {}), ("hang", {}))
        agent = script.agent(PagefileMemory(memory, user_id="ada"))

        @agent.tool_plain
        def fetch() -> str:
            return "超长结果" * 5000

        @agent.tool_plain
        async def hang() -> None:
            print("hanging", flush=True)
            await asyncio.sleep(600)

        await agent.run("问题", conversation_id="c")


asyncio.run(main(sys.argv[1]))
