"""A process that appends turns and says so.

A name is sent only after its turn was acknowledged, so whoever receives the names knows what must be there.
"""

import asyncio
from datetime import UTC, datetime

from pagefile.ports import TurnDraft
from pagefile.records import Scope, Step
from pagefile.stores import open_store

CHAT = Scope("tenant", "ada", "chat")


def draft(turn_id):
    """A turn that says its own name in every part, so that a torn one shows."""
    text = f"{turn_id} " * 50
    steps = (Step("tool", {"id": turn_id}, text, turn_id),)
    return TurnDraft(CHAT, turn_id, "done", text, text, steps, datetime.now(UTC), 1, 1, 3, "test")


def write(url, name, count, at_once, acknowledged):
    """Append this many turns, a few at once."""
    asyncio.run(_write(url, name, count, at_once, acknowledged))


async def _write(url, name, count, at_once, acknowledged):
    store = await open_store(url)

    async def append(number):
        await store.log.append(draft(f"{name}-{number}"))
        acknowledged.send(f"{name}-{number}")

    for first in range(0, count, at_once):
        await asyncio.gather(*(append(number) for number in range(first, min(count, first + at_once))))
    await store.close()
