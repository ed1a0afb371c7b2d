"""The Claude Agent SDK's own conformance suite for session stores: 14 contracts in one call."""

from itertools import count

import pytest
from claude_agent_sdk.testing import run_session_store_conformance

from pagefile import Memory
from pagefile.integrations.claude_agent import PagefileSessionStore


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_contract_passes(kind, tmp_path):
    """All contracts hold, those of the optional methods too."""
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/c.db"
    users = count()
    async with Memory.open(url, embedder="none") as memory:
        # Each contract begins with an empty store: that of another user.
        await run_session_store_conformance(
            lambda: PagefileSessionStore(memory, user_id=f"user-{next(users)}")
        )
        assert next(users) >= 14


async def test_two_users_have_their_own_transcripts(tmp_path):
    """The same project and session of another user is another transcript, and is erased with its user only."""
    key = {"project_key": "p", "session_id": "s"}
    async with Memory.open(f"sqlite:///{tmp_path}/c.db", embedder="none") as memory:
        ada, bob = (PagefileSessionStore(memory, user_id=user) for user in ("ada", "bob"))
        await ada.append(key, [{"type": "user", "uuid": "1", "text": "ada's"}])
        assert await bob.load(key) is None
        await bob.append(key, [{"type": "user", "uuid": "1", "text": "bob's"}])
        await memory.forget(user_id="ada")
        assert await ada.load(key) is None
        assert [{"type": "user", "uuid": "1", "text": "bob's"}] == await bob.load(key)
