"""Every window says what day it is for the user, and the beginning of a prompt stays the same all day."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import Memory, Settings
from pagefile.standalone import ConversationHistory, ConversationStore, ConversationSummarizer
from pagefile.stores.inmemory import InMemoryStore
from pagefile.testing import FakeClock, FlakyStore
from tests.acceptance.cli_calling import pagefile
from tests.acceptance.http_serving import serving

#: 23:30 in London on a Wednesday is 7:30 on Thursday in Shanghai.
LATE = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)
WEDNESDAY, THURSDAY = "Today is Wednesday, 2026-11-18 (UTC).", "今天是 2026-11-19 星期四（Asia/Shanghai）。"


@pytest.fixture
def clock():
    return FakeClock(LATE)


@pytest.fixture
async def memory(clock):
    async with Memory.open("memory://", clock=clock, embedder="none") as memory:
        yield memory


async def test_any_window_says_the_day(memory):
    """The first one, one without a question, one of a running turn: before the turns, whatever the question is about."""
    chat = memory.conversation("c", user_id="u")
    assert [WEDNESDAY, "Thanks"] == [one["content"] for one in (await chat.context("Thanks")).messages]
    await chat.record(user="Hello", assistant="Hi")
    for query, instructions in (("Which tea?", None), ("Which tea?", "Be brief."), (None, None)):
        window = await chat.context(query, instructions=instructions)
        assert window.messages[0]["content"].endswith(WEDNESDAY)
        assert "today" in {verdict.block for verdict in window.receipt.kept}
    turn = await chat.begin("And which cake?")
    assert WEDNESDAY == (await chat.context(turn=turn)).messages[0]["content"]
    system, _ = (await chat.context("Which tea?")).for_anthropic()
    assert WEDNESDAY == system


@pytest.mark.parametrize("where", ["memory", "conversation", "request"])
async def test_it_is_the_users_day(clock, where):
    """At 7:30 in the morning in Shanghai it is not yesterday, as it is in London."""
    zone = "Asia/Shanghai"
    settings = Settings(timezone=zone) if where == "memory" else Settings()
    async with Memory.open("memory://", settings=settings, clock=clock, embedder="none") as memory:
        chat = memory.conversation("c", timezone=zone if where == "conversation" else None)
        window = await chat.context("吃什么好？", timezone=zone if where == "request" else None)
        assert THURSDAY == window.messages[0]["content"]


async def test_the_beginning_of_a_prompt_stays_the_same_all_day(memory, clock):
    """Prompt caches keep it for minutes or hours: it changes at midnight, and so does nothing else."""
    chat = memory.conversation("c", user_id="u")
    await chat.record(user="Hello", assistant="Hi")
    clock.set(LATE.replace(hour=8))
    morning = await chat.context("Which tea?", instructions="Be brief.")
    clock.set(LATE)
    evening = await chat.context("Which cake?", instructions="Be brief.")
    assert morning.prefix_hash == evening.prefix_hash
    clock.set(LATE + timedelta(hours=1))
    after = await chat.context("Which cake?", instructions="Be brief.")
    assert evening.prefix_hash != after.prefix_hash
    assert "Today is Thursday, 2026-11-19 (UTC)." in after.messages[0]["content"]


async def test_a_running_turn_keeps_its_day(memory, clock):
    """A turn that runs over midnight is about the day on which it was asked."""
    chat = memory.conversation("c", user_id="u")
    turn = await chat.begin("Which tea?")
    before = (await chat.context(turn=turn)).messages
    clock.set(LATE + timedelta(hours=1))
    assert before == (await chat.context(turn=turn)).messages


async def test_it_costs_little(memory):
    """Fewer than thirty tokens, with the message around it."""
    for query in ("Which tea?", "吃什么好？"):
        window = await memory.conversation("c", timezone="Asia/Shanghai").context(query)
        (today,) = [verdict for verdict in window.receipt if verdict.block == "today"]
        assert today.tokens < 25


async def test_a_window_without_history_says_the_day(clock):
    """A store that is down takes the history and not the calendar."""
    store = FlakyStore(InMemoryStore(clock))
    async with Memory.open(store, clock=clock, embedder="none") as memory:
        store.fail(["reader.view"])
        window = await memory.conversation("c").context("Which tea?")
        assert [WEDNESDAY, "Which tea?"] == [one["content"] for one in window.messages]


async def test_the_prompt_of_a_handler_says_the_day(memory):
    """After the instructions of whoever wrote it."""
    chat = memory.conversation("c", user_id="u", timezone="Asia/Shanghai")
    await chat.record(user="你好", assistant="你好！")
    store = ConversationStore(memory)
    asked = {"conversation_id": "c", "question": "吃什么好？", "system_message": "你是助手。"}
    prompt = await ConversationHistory(store, ConversationSummarizer(store=store)).build_prompt(**asked)
    assert f"你是助手。\n\n{THURSDAY}" == prompt[0]["content"]
    # The baseline stays as it was.
    assert "你是助手。" == (await ConversationHistory(store).build_prompt(**asked))[0]["content"]


ZONES = ("Pacific/Kiritimati", "Pacific/Honolulu")


def is_a_day_apart(days):
    """Kiritimati is a day ahead of Honolulu, always."""
    (ahead, one), (behind, other) = (day.split(" (") for day in days)
    return ahead != behind and (f"{ZONES[0]}).", f"{ZONES[1]}).") == (one, other)


async def test_a_request_over_http_names_its_time_zone():
    async with serving(Settings(url="memory://")) as client:
        body = {"conversation_id": "c", "query": "Hello"}
        answers = [await client.post("/v1/context", json={**body, "timezone": zone}) for zone in ZONES]
        refused = await client.post("/v1/context", json={**body, "timezone": "Mars/Olympus"})
    assert is_a_day_apart([answer.json()["messages"][0]["content"] for answer in answers])
    assert (422, True) == (refused.status_code, "Asia/Shanghai" in refused.text)


def test_a_command_names_its_time_zone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pagefile("record", "c", "--user", "Hi", "--assistant", "Hello")
    windows = [pagefile("context", "c", "Hello", "--timezone", zone, "--json").json for zone in ZONES]
    assert is_a_day_apart([window["messages"][0]["content"] for window in windows])


async def test_turns_say_when_they_were_said(memory, clock):
    """Where the day changes and after a pause of six hours, in the user's time; within a talk nothing is repeated."""
    chat = memory.conversation("c", user_id="u", timezone="Asia/Shanghai")
    hours = {
        "Tuesday": -49,
        "still Tuesday": -48,
        "Wednesday": -24,
        "before midnight in Shanghai": -8,
        "today": -7,
        "later": -0.5,
    }
    for said, ago in hours.items():
        await chat.record(user=said, assistant="Yes", at=LATE + timedelta(hours=ago))
    said = [one["content"] for one in (await chat.context("Go on")).messages if one["role"] == "user"]
    assert [
        "[2026-11-17 06:30]\nTuesday",
        "still Tuesday",
        "[2026-11-18 07:30]\nWednesday",
        "[2026-11-18 23:30]\nbefore midnight in Shanghai",
        "[2026-11-19 00:30]\ntoday",
        "[2026-11-19 07:00]\nlater",
    ] == said[: len(hours)]
