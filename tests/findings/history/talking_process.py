"""One of several processes that write, read and summarise a conversation: its URL, the first number, how many."""

import sys
from contextlib import suppress

import anyio

from pagefile import Memory
from pagefile.standalone import AgentApp
from tests.findings.history.honest_summaries import REFUSED, read, say, summary_of


async def main(url: str, first: int, count: int) -> None:
    """Say turns, each acknowledged on a line of its own."""
    async with Memory.open(url, embedder="none") as memory:
        app = AgentApp(memory)
        for number in range(first, first + count):
            context = await read(app, window=2_000)
            await say(app, number)
            print(number, flush=True)
            if context.should_checkpoint_summary:
                with suppress(*REFUSED):
                    await app.checkpoint_short_memory("c", summary_of(context.full_history), 4)


anyio.run(main, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
