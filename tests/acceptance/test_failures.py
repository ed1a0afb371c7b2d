"""When something behind the memory fails: less context, said in the receipt, and never a lost turn."""

import logging

import pytest

from pagefile import Memory, Settings, SettingsError, StoreUnavailableError
from pagefile.errors import StoreFullError
from pagefile.ports import ChatModel
from pagefile.settings import ArchiveSettings
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing import FlakyStore
from pagefile.text.tokens import open_counter
from tests.engines import engine_over


@pytest.fixture
def store():
    return FlakyStore(InMemoryStore(SystemClock()))


@pytest.fixture
def memory(store):
    return Memory(engine_over(store, Settings(), SystemClock(), open_counter()))


async def test_an_archive_that_is_down_costs_only_the_middle_of_a_result(memory, store, caplog):
    """Head and tail stay, bounded; the turn goes on, and receipt, log and counts say so."""
    chat = memory.conversation("c")
    store.fail(["pages.put"])
    turn = await chat.begin("q")
    with caplog.at_level(logging.ERROR, "pagefile"):
        turn = await chat.step(turn, tool="t", input={}, result="HEAD " + "中间 " * 30_000 + "TAIL")
    step = turn.steps[0]
    assert len(step.result) <= 11_000
    assert step.result.startswith("HEAD")
    assert step.result.endswith("TAIL")
    assert (step.page, step.lost_chars > 50_000) == (None, True)
    done = await chat.complete(turn, "a")
    assert done.status == "done"
    window = await chat.context("next")
    assert any("archive was down" in note for note in window.receipt.degraded)
    assert "archive" in caplog.text
    assert (await memory.describe())["tier_failures"] == {"archive": 1}


async def test_a_page_is_read_where_nothing_can_be_written(memory, store, caplog):
    """A full disk: the load is not counted, which the log and the counts say, and its text comes."""
    chat = memory.conversation("c")
    turn = await chat.record("q", "a", steps=[{"tool": "t", "result": "盐 " * 20_000}])
    store.fail(["page_keeper.touch"], error=StoreFullError())
    with caplog.at_level(logging.ERROR, "pagefile"):
        assert "盐 " * 20_000 == await chat.load(turn.steps[0].page)
    assert "the archive tier failed" in caplog.text
    assert 1 == memory.engine.failures["archive"]
    store.mend()
    assert 0 == (await chat.page(turn.steps[0].page)).loads


async def test_a_page_that_cannot_be_read_stays_a_placeholder(memory, store):
    """The window goes out, and says why."""
    chat = memory.conversation("c")
    turn = await chat.record(user="q", assistant="a", steps=[{"tool": "t", "result": "x" * 20_000}])
    store.fail(["pages.load"])
    window = await chat.context("next", load=[turn.steps[0].page])
    assert any(message["content"].startswith("📎") for message in window.messages)
    assert any("stays a placeholder" in note for note in window.receipt.degraded)
    told = await chat.call_tool("load_tool_history", {"uuid": turn.steps[0].page})
    assert told.startswith("[archive unavailable]")


@pytest.mark.parametrize("verb", ["facts.list", "source.since", "page_keeper.pinned"])
async def test_a_tier_that_fails_gives_less_context_and_says_so(memory, store, caplog, verb):
    """The question and the history are there; the receipt, the log and the counts name the tier."""
    chat = memory.conversation("c", user_id="u")
    await chat.record(user="hello", assistant="hi", steps=[{"tool": "t", "result": "x" * 20_000}])
    store.fail([verb])
    with caplog.at_level(logging.ERROR, "pagefile"):
        window = await chat.context("next?")
    assert window.messages[-1] == {"role": "user", "content": "next?"}
    assert "hello" in [message["content"] for message in window.messages]
    assert any("failed" in note for note in window.receipt.degraded)
    assert "failed" in caplog.text
    assert sum((await memory.describe())["tier_failures"].values()) == 1


async def test_a_store_that_is_down_still_lets_the_question_through(memory, store):
    """No history, a note, and an answer; nothing is pretended to be recorded."""
    chat = memory.conversation("c", user_id="u")
    await chat.record(user="hello", assistant="hi")
    store.fail(["reader.view", "log.append", "facts.list", "source.since"])
    window = await chat.context("next?")
    assert [window.parts.today, "next?"] == [message["content"] for message in window.messages]
    assert any("no history" in note for note in window.receipt.degraded)
    with pytest.raises(StoreUnavailableError):
        await chat.record(user="lost?")
    store.mend()
    assert len(await chat.turns()) == 1


async def test_for_tests_a_failing_tier_can_raise(store):
    """`on_tier_error="raise"`."""
    memory = Memory(engine_over(store, Settings(on_tier_error="raise"), SystemClock(), open_counter()))
    store.fail(["facts.list"])
    with pytest.raises(StoreUnavailableError):
        await memory.conversation("c", user_id="u").context("x")


async def test_no_page_is_read_unless_it_is_asked_for(memory, store):
    """Windows with placeholders never touch the full texts."""
    chat = memory.conversation("c")
    await chat.record(user="q", assistant="a", steps=[{"tool": "t", "result": "x" * 20_000}])
    store.fail(["pages.load"])
    window = await chat.context("next")
    assert window.receipt.degraded == ()
    assert any(message["content"].startswith("📎") for message in window.messages)


class _Teller(ChatModel):
    def __init__(self, answer):
        self.answer, self.seen = answer, []

    async def complete(self, messages, *, max_tokens):
        self.seen.append(messages)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("一份权限手册，共四步。", "一份权限手册，共四步。"), (RuntimeError("no"), "手册")],
)
async def test_a_model_may_write_the_synopsis_and_may_fail(answer, expected):
    """A pluggable model; its failure falls back to the extract, and is counted."""
    settings = Settings(archive=ArchiveSettings(synopsis="model"))
    model = _Teller(answer)
    async with Memory.open("memory://", settings=settings, model=model) as memory:
        turn = await memory.conversation("c").record(
            user="q", steps=[{"tool": "t", "result": "权限手册的内容。" * 2000}]
        )
        assert expected in turn.steps[0].result
        assert (await memory.describe())["tier_failures"] == ({} if answer == expected else {"archive": 1})
    assert "供以后判断是否需要查看全文" in model.seen[0][0]["content"]
    with pytest.raises(SettingsError, match="there is no model"):
        async with Memory.open("memory://", settings=settings):
            pass
