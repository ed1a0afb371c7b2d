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
    text = f"{turn_id} " * 200
    steps = (Step("tool", {"id": turn_id}, text, turn_id),)
    return TurnDraft(CHAT, turn_id, "done", text, text, steps, datetime.now(UTC), 1, 1, 3, "test")


def write(path, name, count, acknowledged):
    """Append this many turns, one after the other."""
    asyncio.run(_write(path, name, count, acknowledged))


async def _write(path, name, count, acknowledged):
    store = await open_store(f"sqlite:///{path}")
    for number in range(count):
        await store.log.append(draft(f"{name}-{number}"))
        acknowledged.send(f"{name}-{number}")
    await store.close()
