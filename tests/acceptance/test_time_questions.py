"""Questions for a day or a span: what was said then is in the window, although nothing else in the question names it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pagefile import Memory, Settings
from pagefile.errors import InvalidArgumentError
from pagefile.testing import FakeClock
from tests.findings.history.small_talk import SMALL_TALK

#: A Thursday.
NOW = datetime(2026, 10, 15, 9, tzinfo=UTC)
SAID = {
    "2026-02-14": ("把婚戒送去改小了一号", "两天后去取。"),
    "2026-04-05": ("带外婆去了植物园看郁金香", "真好。"),
    "2026-07-21": ("I signed up for a pottery class", "Enjoy it!"),
    "2026-08-31": ("The dishwasher broke and flooded the kitchen", "Call a plumber."),
    "2026-09-15": ("面试了三家公司，最喜欢做地图的那家", "祝顺利。"),
    "2026-10-03": ("爬山把膝盖扭了", "先冷敷。"),
    "2026-10-06": ("We adopted a beagle called Rusty", "Congratulations!"),
    "2026-10-08": ("把旧车卖给了邻居老周", "价格不错。"),
    "2026-10-12": ("I renewed my passport at the consulate", "Good."),
    "2026-10-13": ("今天把阳台改成了书房", "很实用。"),
    "2026-10-14": ("牙医说智齿要拔", "尽早预约。"),
}
QUESTIONS = {
    "2月14日我做了什么？": "婚戒",
    "清明节我干什么了": "植物园",
    "What did I do in July?": "pottery",
    "What happened on August 31?": "dishwasher",
    "9月中旬我在忙什么": "面试",
    "一个月前我说了什么？": "面试",
    "国庆假期发生了什么": "膝盖",
    "上周二我们聊了什么？": "beagle",
    "上周四我做了什么？": "旧车",
    "What did I tell you on Monday?": "passport",
    "前天我做了什么": "书房",
    "昨天我说了什么？": "智齿",
    "What did we talk about yesterday?": "智齿",
    "What did I do the day before yesterday?": "书房",
    "8号我做了什么": "旧车",
    "what did i say last tuesday": "书房",
    "十几天前我怎么了": "膝盖",
    "What did I do at the end of August?": "dishwasher",
}


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


async def test_what_was_said_then_is_in_the_window(tmp_path):
    """At least seventeen of eighteen; the small talk of this morning fills the live turns."""
    wrong = {}
    settings = Settings(checkpoints="manual")
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings, clock=FakeClock(NOW)) as memory:
        chat = memory.conversation("c", user_id="u")
        for day, said in SAID.items():
            await chat.record(*said, at=datetime.fromisoformat(f"{day}T08:00:00+00:00"))
        for number in range(40):
            at = NOW - timedelta(minutes=40 - number)
            await chat.record(*SMALL_TALK[number % len(SMALL_TALK)], at=at)
        await memory.settle()
        await chat.checkpoint("闲聊。", recent_turns=4)
        for question, words in QUESTIONS.items():
            window = str((await chat.context(question)).messages[:-1])
            if words not in window:
                wrong[question] = words
    assert len(wrong) <= 1, wrong


#: The first and the last time there is, and the bounds beyond which neither a day nor a zone may reach.
BEYOND = [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)]


@pytest.mark.parametrize("at", BEYOND)
async def test_a_turn_at_the_end_of_time_is_refused(at):
    """No day of any zone and nothing later could be computed with it: recall and windows failed for good."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        for write in (chat.record, chat.begin):
            with pytest.raises(InvalidArgumentError, match="between the years 2 and 9998"):
                await write("one", at=at)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
@pytest.mark.parametrize("at", BEYOND)
async def test_one_that_is_there_harms_nothing(at, zone):
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u", timezone=zone)
        kept = await chat.record("one two three", "yes")
        odd = replace(kept, id="odd", seq=1, at=at, scope=replace(kept.scope, conversation="d"))
        await memory.engine.store.log.restore([odd])
        await memory.settle()
        assert "d" in [hit.conversation_id for hit in await memory.recall("two", user_id="u")]
        for name in ("c", "d"):
            window = await memory.conversation(name, user_id="u", timezone=zone).context("two yesterday?")
            assert () == window.receipt.degraded


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("What did I ask you yesterday?", "Nothing was recorded on 2026-11-18."),
        ("昨天我说了什么？", "2026-11-18没有任何记录。"),
        ("What did we talk about last week?", "Nothing was recorded from 2026-11-09 to 2026-11-15."),
        ("What did I ask you today?", None),
        ("What did I say on November 4?", None),
        ("What will I do tomorrow?", None),
        ("What did I say about ten days ago?", "Nothing was recorded from 2026-11-08 to 2026-11-10."),
        ("Did I book the dentist yesterday?", None),
    ],
)
async def test_a_time_at_which_nothing_was_recorded_is_named(question, line):
    """Else the turns of other days would pass for its own."""
    now = datetime.fromisoformat("2026-11-19T15:00:00+00:00")
    async with Memory.open("memory://", clock=FakeClock(now), embedder="none") as memory:
        for number in range(3):
            chat = memory.conversation(f"today-{number}", user_id="u")
            await chat.record(f"Translate sentence {number}.", "Done.", at=now - timedelta(hours=1 + number))
        await memory.conversation("before", user_id="u").record(
            "The dentist is Dr Sand.", "Noted.", at=now - timedelta(days=15)
        )
        await memory.settle()
        chat = memory.conversation("new", user_id="u")
        window = await chat.context(question)
        shown = window.parts.memory.sections.get("episodes", ())
        assert (line is not None) == any("recorded" in text or "记录" in text for text in shown)
        assert line is None or shown[0] == line
        if line is not None:
            (call,) = await chat.calls()
            replayed = await chat.replay(call.id)
            assert replayed.exact
            assert line in str(replayed.after.messages)
