"""Tiers from outside: where they report to, and whether they hear of conversations that leave no trace."""

import pytest

from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings
from pagefile.tiers import Tier

pytestmark = pytest.mark.anyio
SETTINGS = Settings(embedder=EmbedderSettings(name="none"))


class Listener(Tier):
    """Hears, offers, and has something to report."""

    name = "listener"

    def __init__(self, *, incognito=False):
        self.incognito = incognito
        self.heard = []

    async def absorb(self, turn):
        self.heard.append(turn.user)
        return True

    async def offer(self, request):
        self.report(ValueError("something is wrong"), logs=False)
        return [request.text("note", "Tea is at four.")]

    async def replay(self, past):
        return self


@pytest.mark.parametrize("incognito", [False, True])
async def test_a_tier_reports_to_its_memory_whoever_asks_it(incognito):
    """Making a window again, or talking incognito, takes a live tier away from nobody."""
    tier = Listener(incognito=True)
    async with Memory.open("memory://", settings=SETTINGS, tiers=[tier]) as memory:
        chat = memory.conversation("c", user_id="ada", incognito=incognito)
        window = await chat.context("Hello")
        if not incognito:
            assert (await chat.explain(window.id)).exact
        before = memory.engine.failures["listener"]
        await memory.conversation("d", user_id="ada").context("Hello")
        assert (await memory.describe())["tier_failures"]["listener"] == before + 1
    async with Memory.open("memory://", settings=SETTINGS, tiers=[tier]) as memory:
        await memory.conversation("d").context("Hello")
        assert memory.engine.failures == {"listener": 1}


@pytest.mark.parametrize("incognito", [False, True])
async def test_incognito_reaches_the_tiers_that_say_so(incognito):
    """The others hear nothing and offer nothing."""
    tier = Listener(incognito=incognito)
    async with Memory.open("memory://", settings=SETTINGS, tiers=[tier]) as memory:
        chat = memory.conversation("c", user_id="ada", incognito=True)
        await chat.record("Hello", "Hi")
        window = await chat.context("And now?")
        assert tier.heard == (["Hello"] if incognito else [])
        assert ("Tea is at four." in str(window.messages)) == incognito
        await memory.settle()
