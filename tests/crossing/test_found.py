"""What the crossing test has found, each on its own."""

import pytest

from pagefile import ConflictError, Memory, Settings
from pagefile.settings import EmbedderSettings

from .owners import OWNERSHIP

QUIET = Settings(embedder=EmbedderSettings(name="none"))
STEP = {"tool": "lookup", "result": "y " * 10_000}


async def test_a_refused_turn_is_no_failure_of_the_archive(caplog):
    """Whoever writes into another's conversation is refused. That is in no log, which would name both, and counts as no failure."""
    async with Memory.open("memory://", settings=QUIET) as memory:
        await memory.conversation("c", user_id="ada").record("hello", "hi")
        with pytest.raises(ConflictError):
            await memory.conversation("c", user_id="bob").record("mine", "yes", steps=[STEP])
        assert {} == (await memory.describe())["tier_failures"]
    assert [] == caplog.messages


@pytest.mark.xfail(not OWNERSHIP, reason="decision 0033 is not in force", strict=True)
async def test_a_workspace_in_anothers_conversation_is_refused(caplog):
    """Its page would stand in that conversation. That nobody gets it is no failure either."""
    async with Memory.open("memory://", settings=QUIET) as memory:
        await memory.conversation("c", user_id="ada").record("hello", "hi")
        with pytest.raises(ConflictError):
            await memory.conversation("c").workspace().absorb("lookup", {}, STEP["result"])
    assert [] == caplog.messages
