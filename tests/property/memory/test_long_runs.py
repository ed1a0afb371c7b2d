"""What must hold in one running turn of many calls, whatever the tools return."""

import re
import tempfile
from itertools import count

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.window.chunks import CHUNK_CHARS
from pagefile.window.eviction import Evictions
from pagefile.window.run_items import Pageable, Said

LINE = "{n} the value of setting_{n} in section_{m} is kept for module_{k}\n"
#: How many lines each call returns, and which module the agent asks about.
CALLS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), min_size=8, max_size=40)
RULES = ArchiveSettings(threshold=3000, page_from=200)
UUID = re.compile(r"\[archived:([0-9a-f-]{36})\]")


def text_of(lines: int, numbers: count) -> str:
    """Lines that are never the same."""
    return "".join(LINE.format(n=n, m=n % 7, k=n % 10) for n in (next(numbers) for _ in range(lines)))


@settings(max_examples=8, deadline=None)
@given(CALLS, st.sampled_from([1500, 4000]), st.booleans())
def test_the_window_of_a_growing_run_stays_within_its_budget_and_its_beginning_stable(
    calls, window_tokens, several_turns
):
    """The beginning changes only when results leave and once before, another process sees the same, and all that left comes back."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_play, f"sqlite:///{folder}/a.db", calls, window_tokens, several_turns)


async def _play(url, calls, window_tokens, several_turns):
    chosen = Settings(
        language="en",
        on_tier_error="raise",
        checkpoints="manual",
        facts=FactSettings(enabled=False),
        archive=RULES,
        window_tokens=window_tokens,
    )
    numbers, results, last, last_step, guided = count(), {}, None, 0, False
    async with Memory.open(url, settings=chosen) as memory, Memory.open(url, settings=chosen) as other:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Look at the settings.")
        for number, (lines, module) in enumerate(calls):
            result = text_of(lines, numbers)
            turn = await chat.step(turn, tool="grep", input={"pattern": f"module_{module}"}, result=result)
            results |= {turn.steps[-1].page: result}
            window = await chat.context()
            assert window.tokens <= window_tokens
            step = max([0, *(int(n) for v in window.receipt for n in re.findall(r"in step (\d+)", v.note))])
            everything = all(verdict.kept for verdict in window.receipt)
            if last is not None and step == last_step and everything and not several_turns:
                # The guide to what will leave comes once, before anything does.
                same_from = 1 if window.parts.guide and not guided else 0
                assert window.messages[same_from : len(last)] == last[same_from:]
            last, last_step, guided = window.messages, step if everything else -1, bool(window.parts.guide)
            again = await other.conversation("c", user_id="u").context(turn=turn)
            assert again.messages == window.messages
            for uuid in UUID.findall(str(window.messages)):
                assert await chat.load(uuid) == results[uuid]
            if several_turns and number % 7 == 6:
                await chat.complete(turn, "Go on.")
                # Recall finds what is indexed: for both memories the same turns.
                await memory.settle()
                turn = await chat.begin("Continue.")


@given(CALLS, st.sampled_from([800, 2500]), st.sampled_from([0.2, 0.5, 0.8]))
def test_after_results_left_the_room_is_used(calls, limit, low_water):
    """Never over the limit, and nothing that would fit is left out."""
    numbers = count()
    fold = Evictions(limit, limit, low_water, "Passages:", lambda text: len(text) // 4)
    for n, (lines, module) in enumerate(calls):
        text = text_of(lines, numbers)
        before = fold.steps
        fold.advance(
            [
                Said(f"module_{module}", 2),
                Pageable(("t", n, ""), text, len(text) // 4, f"📎 {n}", 2, f"📎 {n}"),
            ]
        )
        room = max(0, limit - fold.fixed)
        assert fold.pageable <= max(room, 0) or not fold.out or room < CHUNK_CHARS
        hidden = sum(
            len(item.text) - sum(end - start for start, end in fold.out[item.key].spans)
            for item in fold.items
            if isinstance(item, Pageable) and item.key in fold.out
        )
        if fold.steps > before and hidden > 4 * room:
            assert fold.pageable >= low_water * room - 2 * CHUNK_CHARS / 4 - 60
