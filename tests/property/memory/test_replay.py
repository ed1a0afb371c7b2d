"""A recorded window can be made again from the log, byte for byte, whatever was written since."""

import anyio
import pytest
from hypothesis import HealthCheck, given, settings

from pagefile import BudgetError, Memory
from tests.integration.postgres.serving import fresh_url

from .plays import ACTIONS, SETTINGS, Play

#: Each makes the tiers choose again.
CHANGES = (
    {"window_tokens": 700},
    {"window_tokens": 20_000, "recent_turns": 2},
    {"recall": "always", "recall_max_share": 0.2},
    {"facts__similarity_weight": 0.1, "facts__confidence_weight": 2.0},
    {"archive__threshold": 100_000, "language": "en"},
    {"archive__threshold": 1_000, "archive__strategy": "hybrid", "placement": "head"},
)


async def replayed(chat, call_id, changes):
    """The window with changes; None where it would be too small for the turn."""
    try:
        return (await chat.replay(call_id, **changes)).after
    except BudgetError:
        return None


async def played(url, before, after, *, embedder):
    """Play, write on, and then ask for every window again."""
    async with Memory.open(url, settings=SETTINGS, embedder=embedder) as memory:
        play = Play(memory)
        await play.run(before)
        handed_out = dict(play.windows)
        # Other settings find the pages that have been indexed: let all of them be.
        await memory.settle()
        changed = {}
        for number, call_id in enumerate(handed_out):
            changes = CHANGES[number % len(CHANGES)]
            changed[call_id] = changes, await replayed(play.chat, call_id, changes)
        await play.run(after)
        await memory.engine.write_calls()
        for call_id, (changes, window) in changed.items():
            again = await replayed(play.chat, call_id, changes)
            assert (again is None) == (window is None)
            if again is not None and window is not None:
                assert (again.messages, again.receipt) == (window.messages, window.receipt)
                assert again.tokens <= again.budget
        calls = {call.id: call for call in await play.chat.calls(limit=1000)}
        for call_id, window in handed_out.items():
            again = await play.chat.replay(call_id)
            assert again.before.messages == window.messages
            assert again.after.messages == window.messages
            assert (again.exact, again.why, again.comparison.same) == (True, (), True)
            assert again.before.receipt.verdicts == window.receipt.verdicts
            assert again.before.for_anthropic() == window.for_anthropic()
            assert again.before.for_responses() == window.for_responses()
            explained = await play.chat.explain(call_id)
            assert explained.exact
            assert (
                sum(block.tokens for block in explained.blocks) + explained.receipt.framing == window.tokens
            )
        assert {call.id for call in await play.chat.calls(limit=1000)} == set(calls)


@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_window_is_made_again_byte_for_byte(before, after):
    """Whatever was said, fetched, loaded, pinned, learnt, summed up or reset, before the window and after it.

    And what it would have been with other settings does not change with what was written later.
    """
    anyio.run(lambda: played("memory://", before, after, embedder="none"))


@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_on_disk_too(tmp_path_factory, before, after):
    """SQLite reads its own past."""
    url = f"sqlite:///{tmp_path_factory.mktemp('replay')}/replay.db"
    anyio.run(lambda: played(url, before, after, embedder="none"))


@pytest.mark.slow
@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_on_postgresql_too(before, after):
    """And so does PostgreSQL; each example has a schema of its own."""
    anyio.run(lambda: played(fresh_url(), before, after, embedder="none"))
