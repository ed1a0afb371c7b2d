"""An agent of the Claude Agent SDK that remembers: run it twice, and the second run knows what the first was told.

    pip install 'pagefile[claude]'
    python examples/claude_agent.py "My name is Ada and I live in Porto." "Where do I live?"

Needs what Claude Code needs (a key, or a login). The memory is the file claude-memory.db.
"""

import asyncio
import sys

from pagefile import Memory
from pagefile.integrations.claude_agent import ClaudeMemory  # first: without the SDK it says how to get it

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage  # isort: skip


async def main(prompts: list[str]) -> None:
    async with Memory.open("sqlite:///claude-memory.db") as memory:
        claude = ClaudeMemory(memory, user_id="ada")
        options = claude.options(ClaudeAgentOptions(setting_sources=[], allowed_tools=["Bash"]))
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        print(f"> {prompt}\n{message.result}")
        facts = await memory.facts("ada")
        print(f"{len(await memory.conversations())} conversations, {len(facts)} facts are remembered.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["My name is Ada and I live in Porto.", "Where do I live?"]))
