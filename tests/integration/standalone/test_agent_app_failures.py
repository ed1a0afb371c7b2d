"""Document 001's checkpoints when something fails, when they are slow, and when there are many."""

import logging

import anyio
import pytest

from pagefile import ConflictError, Memory
from pagefile.errors import StoreUnavailableError
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SUMMARY_N,
    AgentApp,
    MemoryWriteRequest,
    format_prompt,
)
from tests.waiting import PATIENCE_S

from .talking import COUNTER, asking, history, lines, say

# -- failures ----------------------------------------------------------------------------------------------------------


async def test_a_store_that_fails_is_tried_three_more_times(app, store, pauses, caplog):
    """S1-57, S1-58, C1-13: after one, two and three seconds; the fourth try may do it."""
    await say(app, *range(10))
    store.fail({"log.mark"}, times=3)
    with caplog.at_level(logging.WARNING):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert [1, 2, 3] == pauses
    assert ["CheckpointShortMemory error: The store cannot be reached or opened."] * 3 == caplog.messages
    assert SUMMARY_N == (await app.query_memory_context(asking())).mode


async def test_then_the_full_mode_is_saved(app, store, pauses, caplog, memory):
    """S1-59, S1-79, C1-10: reported, saved, within the budget; and the next checkpoint ends it."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "第一", 10)
    store.fail({"log.mark"})
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError):
        await app.checkpoint_short_memory("c", "第二", 2)
    assert [1, 2, 3] == pauses
    assert 4 == sum(message.startswith("CheckpointShortMemory error: ") for message in caplog.messages)
    assert "Failed to create checkpoint: The store cannot be reached or opened." == caplog.messages[-1]
    assert FULL_HISTORY == (await app.get_short_memory("c")).message_context.mode
    assert FULL_HISTORY == (await memory.engine.sessions.get(app._log.scope("c")))["message_context"]["mode"]
    context = await app.query_memory_context(asking("q", model_context_window=100))
    assert FULL_HISTORY == context.mode
    assert COUNTER.count(format_prompt(context.history, "q")) <= 100
    assert "历史摘要: 第一" == context.full_history.split("\n")[0]
    store.mend()
    await app.checkpoint_short_memory("c", "第二", 2)
    assert SUMMARY_N == (await app.query_memory_context(asking())).mode


async def test_a_query_asked_during_an_outage_keeps_its_answer(app, store, memory):
    """Whatever was written, or erased elsewhere, before it."""
    await say(app, 1, conversation_id="other")
    await memory.forget(conversation_id="other")
    await say(app, 1)
    store.fail({"reader.view", "items.write"})
    await app.query_memory_context(asking("问1"))
    store.mend()
    await app.write_turn(MemoryWriteRequest("c", agent_response="答"))
    rows = await app.query_message_by_conversation_id_asc("c")
    assert [("问1", "答1"), ("问1", "答")] == [(row.query, row.answer) for row in rows]


async def test_a_store_that_is_all_down_is_told(app, store, caplog):
    """S1-57, S1-59: the mode cannot be saved either; the error is the caller's."""
    await say(app, *range(10))
    store.fail({"reader.view", "log.mark", "sessions.put", "sessions.get"})
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert any("could not save the mode FULL_HISTORY" in message for message in caplog.messages)


async def test_an_id_that_is_taken_is_tried_again(app, monkeypatch, pauses):
    """Extra test 7 (B5): with a fresh id."""
    await say(app, *range(10))
    taken = (await app.query_message_by_conversation_id_asc("c"))[0].message_id
    ids = iter([taken, taken, "fresh"])
    monkeypatch.setattr("pagefile.tiers.checkpoints.uuid4", lambda: next(ids))
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert "fresh" == (await app.get_short_memory("c")).message_context.checkpoint_message_id
    assert [] == pauses


async def test_three_taken_ids_change_nothing(app, monkeypatch, pauses):
    """Extra test 7 (B5): an error, and the state is as it was."""
    await say(app, *range(10))
    before = await app.get_short_memory("c")
    taken = (await app.query_message_by_conversation_id_asc("c"))[0].message_id
    monkeypatch.setattr("pagefile.tiers.checkpoints.uuid4", lambda: taken)
    with pytest.raises(ConflictError):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert before == await app.get_short_memory("c")
    assert [] == pauses
    assert lines(*range(10)) == await history(app)


async def test_checkpoints_of_one_conversation_take_turns(app):
    """C1-8: many at once neither fail each other nor lose a turn."""
    await say(app, *range(20))
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(app.checkpoint_short_memory, "c", f"摘要{number}", 10 - number)
    found = await history(app)
    assert lines(*range(14, 20)) == found[1:]


@pytest.mark.waits
async def test_a_slow_summary_holds_up_nobody(app):
    """S1-47, S1-48, C1-8, C1-14: in the background turns go on; in the foreground the next query has the summary."""
    await say(app, *range(20))
    done = anyio.Event()

    async def summarise(full):
        await done.wait()
        await app.checkpoint_short_memory("c", f"{full.count('用户: ')} 轮", 2)

    context = await app.query_memory_context(asking("问20", model_context_window=200))
    assert context.should_checkpoint_summary
    async with anyio.create_task_group() as background:
        background.start_soon(summarise, context.full_history)
        with anyio.fail_after(PATIENCE_S):
            await say(app, 20)
            assert FULL_HISTORY == (await app.query_memory_context(asking())).mode
        done.set()
    assert ["历史摘要: 20 轮", *lines(19, 20)] == await history(app)


@pytest.mark.waits
async def test_a_checkpoint_that_waits_holds_up_nobody(memory, store):
    """S1-47, S1-58: between two tries turns are written."""
    written = []

    async def sleep(_):
        with anyio.fail_after(PATIENCE_S):
            await say(app, "x")
        written.append(1)

    app = AgentApp(memory, sleep=sleep)
    await say(app, *range(10))
    store.fail({"log.mark"}, times=2)
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert 2 == len(written)


async def test_nobody_else_makes_checkpoints():
    """S1-04: the document leaves them to its caller, so the flag is there when the window is full."""
    async with Memory.open("memory://", embedder="none", settings=Settings(window_tokens=300)) as memory:
        app = AgentApp(memory)
        for number in range(40):
            await say(app, number)
        await memory.settle()
        assert (await app.query_memory_context(asking(model_context_window=300))).should_checkpoint_summary
        assert FULL_HISTORY == (await app.get_short_memory("c")).message_context.mode
