"""Facts that change while a window is made."""

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings
from pagefile.tiers.facts import Facts

pytestmark = pytest.mark.anyio


async def test_a_fact_that_is_retracted_meanwhile_costs_no_other_fact():
    """The window has the facts that are left, or all of them; the tier does not fail."""
    settings = Settings(embedder=EmbedderSettings(name="none"))
    async with Memory.open("memory://", settings=settings) as memory:
        kept = await memory.remember("My cat is called Miso", user_id="u")
        gone = await memory.remember("My cat eats tuna", user_id="u")
        held = await memory.engine.tier(Facts).book.held(Scope("default", "u"))
        windows = []

        async def asked():
            windows.append(await memory.conversation("c", user_id="u").context("What is my cat called?"))

        async with anyio.create_task_group() as group, held.lock:
            group.start_soon(asked)
            await anyio.wait_all_tasks_blocked()
            held.index.remove([gone.id])
        assert () == tuple(windows[0].receipt.degraded)
        assert kept.text in str(windows[0].messages)
