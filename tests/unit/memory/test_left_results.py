"""What a full window says in place of a result of the running turn that left it."""

import base64
import json
import random
from dataclasses import replace

import pytest

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings, FactSettings

pytestmark = pytest.mark.anyio

RULES = ArchiveSettings(threshold=100_000, page_from=500)
GUIDE = "search_tool_history"


def orders(number):
    rows = [{"id": 1000 * number + n, "status": "shipped", "city": "Lyon"} for n in range(120)]
    return json.dumps({"meta": {"request": "x" * 80}, "orders": rows})


async def ordered(language, results):
    """The lines of results that left, and whether each window had the guide."""
    chosen = Settings(language=language, window_tokens=6000, archive=RULES, facts=FactSettings(enabled=False))
    async with Memory.open("memory://", settings=chosen) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Which orders are late?")
        guided, left = [], []
        for n in range(results):
            turn = await chat.step(turn, tool="orders", input={"page": n}, result=orders(n))
            window = await chat.context()
            shown = [one["content"] or "" for one in window.messages]
            left = [text.splitlines()[0] for text in shown if text.startswith("📎")]
            guided.append((bool(left), any(GUIDE in text for text in shown if not text.startswith("📎"))))
        return left, guided


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_line_of_a_result_that_left_tells_its_synopsis(language):
    left, _ = await ordered(language, 5)
    assert left
    for line in left:
        assert "orders: " in line
        assert "120 orders" in line
        assert '{"meta"' not in line


async def test_the_guide_comes_with_the_first_result_that_leaves():
    """Earlier, it would change the beginning of a prompt that could have stayed as it was."""
    _, guided = await ordered("en", 5)
    assert (True, True) == guided[-1]
    assert (False, False) == guided[0]
    assert all(left == told for left, told in guided)


@pytest.mark.parametrize(("low_water", "told"), [(0.15, True), (0.4, False)])
async def test_where_little_stays_the_guide_is_there_at_once(low_water, told):
    """Something will leave soon there, and then the guide would change the beginning of a longer prompt."""
    chosen = Settings(window_tokens=6000, archive=replace(RULES, low_water=low_water))
    async with Memory.open("memory://", settings=chosen) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.begin("Which orders are late?")
        assert told == (GUIDE in (await chat.context()).as_text())


async def test_a_result_that_is_mostly_base64_is_shown_and_not_its_placeholder():
    """What can be read of it is shorter than a placeholder; the page has the bytes."""
    data = base64.b64encode(random.Random(7).randbytes(30_000)).decode()
    said = [{"type": "text", "text": "Saved the chart."}, {"type": "image", "data": data}]
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Draw it.")
        turn = await chat.step(turn, tool="draw", input={}, result=json.dumps(said))
        shown = (await chat.context()).messages[-1]["content"]
        assert "Saved the chart." in shown
        assert "base64" in shown
        assert "archived" not in shown
        assert len(shown) < 300
        assert json.dumps(said) == await chat.load(turn.steps[0].page)


async def test_results_leave_room_for_the_summary():
    """Results that could leave do not push the summary out of a full window."""
    chosen = Settings(
        language="en", window_tokens=6000, recent_turns=1, archive=RULES, facts=FactSettings(enabled=False)
    )
    async with Memory.open("memory://", settings=chosen) as memory:
        chat = memory.conversation("c", user_id="u")
        for n in range(25):
            turn = await chat.begin(f"Which orders of page {n} are late?")
            turn = await chat.step(turn, tool="orders", input={"page": n}, result=orders(n)[:900])
            await chat.complete(turn, "None of them.")
        await chat.checkpoint("Late orders are sought, page by page. " * 12, recent_turns=1)
        turn = await chat.begin("Go on with the next pages.")
        for n in range(25, 40):
            turn = await chat.step(turn, tool="orders", input={"page": n}, result=orders(n)[:1500])
            window = await chat.context()
            assert window.parts.summary, f"without its summary after {n}: {window.receipt}"
