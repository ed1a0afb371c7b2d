"""An agent of the Claude Agent SDK that remembers: run it twice, and the second run knows what the first was told.

    pip install 'pagefile[claude]'
    python examples/zh/claude_agent.py "我叫小林，住在杭州。" "我住在哪里？"

Needs what Claude Code needs (a key, or a login). The memory is the file claude-memory.db.
"""

import asyncio
import sys

from pagefile import Memory
from pagefile.integrations.claude_agent import ClaudeMemory  # first: without the SDK it says how to get it

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage  # isort: skip


async def main(prompts: list[str]) -> None:
    async with Memory.open("sqlite:///claude-memory.db") as memory:
        claude = ClaudeMemory(memory, user_id="xiaolin")
        options = claude.options(ClaudeAgentOptions(setting_sources=[], allowed_tools=["Bash"]))
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        print(f"> {prompt}\n{message.result}")
        facts = await memory.facts("xiaolin")
        print(f"{len(await memory.conversations())} conversations, {len(facts)} facts are remembered.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["我叫小林，住在杭州。", "我住在哪里？"]))
