"""Whose yesterday: that of the question, of the conversation, or of the settings."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from pagefile import Memory
from pagefile.errors import SettingsError
from pagefile.settings import Settings
from pagefile.testing import FakeClock

SHANGHAI = ZoneInfo("Asia/Shanghai")
#: 07:30 of the 18th in Shanghai.
NOW = datetime(2026, 6, 17, 23, 30, tzinfo=UTC)
DINNERS = {15: "饺子", 16: "烤鸭", 17: "烤鱼"}


async def eat(chat):
    for day, food in DINNERS.items():
        await chat.record(f"晚饭吃了{food}", "好的", at=datetime(2026, 6, day, 19, tzinfo=SHANGHAI))


@pytest.mark.parametrize(
    ("setting", "label", "at", "food"),
    [
        ("UTC", None, None, "烤鸭"),
        ("Asia/Shanghai", None, None, "烤鱼"),
        ("UTC", "Asia/Shanghai", None, "烤鱼"),
        ("Asia/Shanghai", "UTC", None, "烤鸭"),
        ("UTC", None, NOW.astimezone(SHANGHAI), "烤鱼"),
        ("Asia/Shanghai", None, NOW, "烤鱼"),
    ],
)
async def test_yesterday_is_where_the_user_is(setting, label, at, food):
    """The question's own time says it, else the conversation's time zone, else that of the settings."""
    async with Memory.open(
        "memory://", clock=FakeClock(NOW), settings=Settings(timezone=setting), embedder="none"
    ) as memory:
        await eat(memory.conversation("c", user_id="u", timezone=label))
        hits = await memory.conversation("c", user_id="u").recall("昨天晚饭吃了什么？", 3, at=at)
        assert food in hits[0].text


async def test_a_window_recalls_the_users_yesterday():
    """By the time zone that the conversation was given."""
    async with Memory.open("memory://", clock=FakeClock(NOW), embedder="none") as memory:
        await eat(memory.conversation("old", user_id="u"))
        chat = memory.conversation("new", user_id="u", timezone="Asia/Shanghai")
        await chat.record("你好", "你好！", at=NOW)
        assert "烤鱼" in str((await chat.context("昨天我做了什么？")).messages)


def test_a_time_zone_nobody_knows_is_refused():
    """When the settings are made."""
    with pytest.raises(
        SettingsError, match="timezone must be a time zone that is known here, such as 'Asia/Sh"
    ):
        Settings(timezone="Shanghai")
