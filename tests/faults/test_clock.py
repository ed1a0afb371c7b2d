"""A clock that jumps backwards: places, ages, expiries and receipts keep their sense."""

import sys
import time
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from pagefile import Memory, Settings
from pagefile.integrations.langgraph_store import PagefileStore
from pagefile.settings import ArchiveSettings, EmbedderSettings, FactSettings
from pagefile.testing import FakeClock
from pagefile.tiers.archive import Archive
from tests.integration.workers.serving import served

from .conftest import ROOT
from .load import Load, check, everything, own
from .messages import PLAIN

DAY_S = 86_400
SETTINGS = Settings(
    embedder=EmbedderSettings(name="none"),
    archive=ArchiveSettings(threshold=500, page_from=100, reuse_s=60, retention_days=30),
    facts=FactSettings(extract="rules"),
    on_tier_error="raise",
)


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="as the other services under load")
def test_the_clock_of_the_service_jumps_back_under_load(tmp_path, stopwatch, reading):
    """Two hours at once, several times: every turn is acknowledged, and is where it was acknowledged."""
    wrong = tmp_path / "clock"
    wrong.write_text("0.001")
    altered = {"ALTERED_CLOCK": str(wrong), "PYTHONPATH": str(ROOT)}
    with served(tmp_path, "sqlite:///a.db", module="tests.faults.altered", env=altered, **PLAIN) as service:
        load = Load(str(service.client.base_url))
        with load.running():
            for jump in (-7200, -14_400, 3600, -DAY_S * 400):
                load.more(15)
                moved(wrong, jump)
                stopwatch.recovered(load, f"a clock {jump} s off", time.monotonic())
            load.more(15)
        assert {status for (_, status), _ in load.told()[0].items()} <= {200, 201}, load.told()
        assert load.broken == 0
        client = reading(load.base_url)
        check(client, load)
        service.post("/v1/settle", timeout_s=20)
        for number in range(load.clients):
            turns = everything(client, "/v1/turns", own(number), f"user-{number}")
            said = [datetime.fromisoformat(turn["at"]) for turn in turns]
            # `at` is what the clock said, so it did go back; the order is not taken from it.
            assert any(later < earlier - timedelta(hours=1) for earlier, later in pairwise(said))
            asked = {"conversation_id": own(number), "user_id": f"user-{number}"}
            window = service.post("/v1/context", **asked, query="然后呢？").json()
            # Behind it there is only what the workspace knows, and the question.
            said = [one["content"] for one in window["messages"] if one["role"] == "assistant"]
            assert said[-1] == turns[-1]["assistant"], "the newest turn is last"
            (call, *_) = service.get("/v1/calls", **asked, limit=1).json()["items"]
            assert call["query"] == "然后呢？", "the newest call comes first"
        assert "Traceback" not in service.said, service.said


def moved(file, seconds):
    """Written beside and put in place, so that nobody reads half a number."""
    beside = file.with_suffix(".new")
    beside.write_text(str(seconds))
    beside.replace(file)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def memory(tmp_path, clock):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=SETTINGS, clock=clock) as memory:
        yield memory


async def test_watermarks_do_not_go_by_the_clock(memory, clock):
    """What is recorded after a jump is indexed and read for facts like everything else, once."""
    chat = memory.conversation("c", user_id="u")
    await chat.record("我叫李雷。", "你好。")
    await memory.settle()
    clock.advance(-400 * DAY_S)
    await chat.record("我对青霉素过敏。", "记住了。")
    await memory.settle()
    assert {fact.text for fact in await memory.facts("u")} == {"用户的名字是李雷", "用户对青霉素过敏"}
    assert "青霉素" in (await memory.recall("青霉素", user_id="u"))[0].text


async def test_the_later_word_counts_whatever_the_clock_says(memory, clock):
    """Said later in the same conversation is later: order is by place, never by clock."""
    chat = memory.conversation("c", user_id="u")
    await chat.record("我住在杭州。", "好的。")
    await memory.settle()
    clock.advance(-7200)
    await chat.record("我搬到了上海。", "好的。")
    await memory.settle()
    assert [fact.text for fact in await memory.facts("u")] == ["用户住在上海"]
    clock.advance(60)
    await chat.record("我搬到了北京。", "好的。")
    await memory.settle()
    assert [fact.text for fact in await memory.facts("u")] == ["用户住在北京"]
    # Read once more, as after a crash before the watermark was written: what is last still counts.
    await memory.engine.store.watermarks.drop("facts")
    memory.engine.worker.wake("facts", chat.scope)
    await memory.settle()
    assert [fact.text for fact in await memory.facts("u")] == ["用户住在北京"]


async def test_a_page_of_the_future_answers_no_equal_call(memory, clock):
    """It would otherwise be taken for fresh until the clock has caught up, however long ago it was made."""
    chat = memory.conversation("c", user_id="u")
    await chat.record("q", "a", steps=[{"tool": "search", "input": {"q": "盐"}, "result": "少盐。" * 300}])
    assert await chat.fetched("search", {"q": "盐"}) is not None
    clock.advance(-7200)
    assert await chat.fetched("search", {"q": "盐"}) is None, "nobody knows how old it is"


async def test_nothing_is_purged_early(memory, clock):
    """A page of the future is not too old; when its time has come it goes."""
    chat = memory.conversation("c", user_id="u")
    turn = await chat.record("q", "a", steps=[{"tool": "t", "result": "x" * 1000}])
    clock.advance(-400 * DAY_S)
    assert await memory.engine.tier(Archive).purge_due() == 0
    assert await chat.load(turn.steps[0].page) == "x" * 1000
    clock.advance(431 * DAY_S)
    assert await memory.engine.tier(Archive).purge_due() == 1


async def test_what_expires_expires(memory, clock):
    """A value with a time to live does not outlive it by more than the jump, and never reads as gone too early."""
    store = PagefileStore(memory, ttl={"default_ttl": None, "refresh_on_read": False})
    await store.aput(("a",), "k", {"x": 1}, ttl=1)
    clock.advance(-3600)
    assert (await store.aget(("a",), "k")).value == {"x": 1}
    await store.aput(("a",), "k", {"x": 2}, ttl=1)
    clock.advance(61)
    assert await store.aget(("a",), "k") is None


async def test_receipts_do_not_depend_on_the_clock(memory, clock):
    """The same question gives the same window and the same verdicts before and after a jump; on another day the window has
    dates beside what it had, and nothing else changes."""
    chat = memory.conversation("c", user_id="u")
    said_at = clock.now()
    for number in range(6):
        await chat.record(f"问题 {number}", f"回答 {number}")
        clock.advance(-3600)
    first = await chat.context("然后呢？")
    clock.advance(-3600)
    second = await chat.context("然后呢？")
    assert first.messages == second.messages
    assert list(first.receipt) == list(second.receipt)
    clock.advance(-30 * DAY_S)
    third = await chat.context("然后呢？")
    (today, begins, *turns), now, asked = third.messages[:-2], third.messages[-2], third.messages[-1]
    assert f"{clock.now():%Y-%m-%d}" in today["content"]
    assert begins["content"] == f"[{said_at:%Y-%m-%d %H:%M}]\n问题 0"
    assert f"<now>\n{clock.now():%Y-%m-%d %H:%M} " in now["content"]
    assert [*turns, asked] == first.messages[2:]
    assert [one.id for one in third.receipt.kept if one.id != "now"] == [one.id for one in first.receipt.kept]
    spoken = [message["content"] for message in first.messages if message["role"] == "assistant"]
    assert spoken == [f"回答 {number}" for number in range(6)]
    await memory.settle()
    newest, *_ = await chat.calls(limit=2)
    assert newest.at == clock.now()
