"""Document 001, where two of its sentences must hold together."""

import logging
import sqlite3

import pytest

from pagefile import Memory, Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SUMMARY_N,
    AgentApp,
    MemoryQueryRequest,
    MemoryWriteRequest,
    app_requests,
)
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing import FlakyStore
from pagefile.text.tokens import open_counter
from pagefile.tiers.history import History
from tests.engines import engine_over


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        yield memory


@pytest.fixture
def app(memory):
    return AgentApp(memory)


async def say(app, *numbers):
    for number in numbers:
        await app.write_turn(MemoryWriteRequest("c", user_query=f"问{number}", agent_response=f"答{number}"))


async def ask(app, query="现在呢", **options):
    return await app.query_memory_context(MemoryQueryRequest("c", query=query, **options))


async def test_a_segment_is_a_summary_recent_turns_and_a_mark(app):
    """S1-02, S1-30: after two checkpoints as after one; the history is part of the full one."""
    for first, summary in ((0, "第一"), (10, "第二")):
        await say(app, *range(first, first + 10))
        await app.checkpoint_short_memory("c", summary, 3)
        context = await ask(app)
        found = context.session.message_context
        recent = [f"问{n}" for n in range(first + 7, first + 10)]
        assert (SUMMARY_N, summary) == (context.mode, found.summary)
        assert recent == [message.content for message in found.window_messages if message.role == "user"]
        assert context.full_history.splitlines() == [
            f"历史摘要: {summary}",
            *(line for n in range(first + 7, first + 10) for line in (f"用户: 问{n}", f"AI: 答{n}")),
        ]
        assert context.history in context.full_history
        rows = await app.query_message_by_conversation_id_asc_from_checkpoint(
            "c", found.checkpoint_message_id
        )
        assert [] == rows


async def test_numbers_are_changed_by_request_by_constant_and_by_setting(app, monkeypatch):
    """S1-51: each of the three has its say; a request comes before the constants."""
    await say(app, *range(30))
    before = await ask(app)
    other = await ask(app, token_threshold_ratio=before.token_ratio / 2, model_context_window=32000)
    assert (before.token_ratio / 2, True) == (other.token_ratio, other.should_checkpoint_summary)
    monkeypatch.setattr(app_requests, "defaultModelContextWindow", 32000)
    monkeypatch.setattr(app_requests, "defaultMemoryTokenThresholdRatio", before.token_ratio / 2)
    changed = await ask(app)
    assert (other.token_ratio, True) == (changed.token_ratio, changed.should_checkpoint_summary)
    assert not (await ask(app, token_threshold_ratio=0.75)).should_checkpoint_summary
    for settings, due in ((Settings(), False), (Settings(threshold=0.01, checkpoints="manual"), True)):
        async with Memory.open("memory://", settings=settings) as memory:
            chat = memory.conversation("c")
            for n in range(30):
                await chat.record(f"问{n}", f"答{n}")
            assert due == (await chat.context("现在呢")).should_checkpoint


async def test_a_history_needs_no_row_of_a_checkpoint(app, tmp_path):
    """S1-54, S1-68: the summary is kept beside the session; the message that marks the checkpoint is not read again."""
    await say(app, *range(10))
    await app.checkpoint_short_memory("c", "用户头晕。", 2)
    before = await ask(app)
    assert "历史摘要: 用户头晕。" == before.session.message_context.cached_checkpoint
    with sqlite3.connect(tmp_path / "agent.db") as database:
        gone = database.execute("DELETE FROM ai_message WHERE query = '[MEMORY_CHECKPOINT]'")
        assert 1 == gone.rowcount
    database.close()
    assert before == await ask(app)


async def test_a_checkpoint_that_nobody_asked_for_logs_what_went_wrong(caplog, monkeypatch):
    """S1-47, S1-57: nobody's turn fails, and the log says so in the document's words."""

    async def sleep(_):
        pass

    monkeypatch.setattr("pagefile.tiers.checkpoints.anyio.sleep", sleep)
    store = FlakyStore(InMemoryStore(SystemClock()))
    settings = Settings(window_tokens=400, recall="never")
    memory = Memory(engine_over(store, settings, SystemClock(), open_counter()))
    chat = memory.conversation("c")
    store.fail({"log.mark"})
    for n in range(30):
        await chat.record(f"关于血压的第{n}个问题，怎么办？", "按时服药。")
    with caplog.at_level(logging.WARNING, "pagefile"):
        await memory.engine.tier(History).checkpoints.maintain(
            chat.scope, memory.engine.tier(History).rules_of(chat.scope)
        )
    assert any(message.startswith("CheckpointShortMemory error: ") for message in caplog.messages)
    window = await chat.context("现在呢")
    assert (FULL_HISTORY, True) == (window.mode, window.tokens <= 400)
    assert 30 == len(await chat.turns(limit=100))
