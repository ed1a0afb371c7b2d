"""The tokens for facts in a window: never exceeded, and never left unused while a fact that is worth them would fit."""

import re

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Memory, Settings
from pagefile.settings import FactSettings
from pagefile.tiers.facts import Facts

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=25) | st.lists(
    st.integers(1, 3), min_size=50, max_size=60
)


@given(LENGTHS, st.integers(0, 4), st.integers(0, 400))
@settings(max_examples=25, deadline=None)
def test_the_budget_for_facts_is_kept_and_used(lengths, corrections, allowed):
    """The block as a whole, corrections and framing included; a dropped fact of value is one that did not fit."""
    anyio.run(judge, lengths, corrections, allowed)


async def judge(lengths: list[int], corrections: int, allowed: int) -> None:
    own = Settings(language="en", facts=FactSettings(max_injection_tokens=allowed, embeddings=False))
    async with Memory.open("memory://", settings=own) as memory:
        for number, length in enumerate(lengths):
            await memory.remember(f"Tea {number}: {'green ' * length}leaves", user_id="u")
        for number in range(corrections):
            await memory.remember(f"Not cup {number} but pot {number}", user_id="u", category="correction")
        window = await memory.conversation("c", user_id="u").context("Which green tea leaves?")
        used = memory.engine.counter.count(window.parts.memory.text)
        # A second block has a heading of its own, for which a few tokens more are set aside.
        heading = memory.engine.counter.count("<corrections>\n</corrections>\n") + 4 if corrections else 0
        held = await memory.facts("u")
        limit = memory.engine.tier(Facts).limits(16_000)["facts"]
    assert used <= allowed
    blocks = {"facts", "corrections"}
    kept = sum(one.tokens for one in window.receipt if one.kept and one.block in blocks)
    for one in window.receipt:
        if (
            one.block == "facts"
            and not one.kept
            and (over := re.search(r"budget of (\d+) tokens", one.reason))
        ):
            assert one.tokens > int(over[1]) - kept - heading
    # What was not even offered would not fit either: all of these answer the question.
    offered = {one.id for one in window.receipt}
    for fact in held:
        if fact.category != "correction" and not any(one.endswith(fact.id) for one in offered):
            assert fact.tokens > limit - kept - heading
