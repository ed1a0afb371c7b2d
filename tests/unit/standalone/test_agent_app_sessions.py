"""Document 001's own API: sessions, safety data, messages."""

from datetime import datetime, timedelta, timezone

import pytest

from pagefile import ConflictError, InvalidArgumentError, Memory, NotFoundError
from pagefile.errors import StoreUnavailableError
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SESSION_KEY,
    SUMMARY_N,
    AgentApp,
    AgentRequest,
    FlowContext,
    MemoryWriteRequest,
    Message,
    SessionValue,
    UserProfile,
)
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from pagefile.window.wording import ZH
from tests.engines import engine_over

from .talking import COUNTER, asking, lines, say

# -- sessions ----------------------------------------------------------------------------------------------------------


async def test_a_session_is_created_once(app, clock):
    """S1-41, S1-42: complete, and the same however often it is created while nothing was said."""
    await app.create_short_memory(AgentRequest(ConversationId="c", UserId="user-456"))
    session = await app.get_short_memory("c")
    expected = SessionValue()
    expected.meta.conversation_id, expected.meta.user_id = "c", "user-456"
    expected.meta.updated_at = int(clock.now().timestamp())
    expected.user_snapshot.user_id = "user-456"
    assert expected == session
    session.global_state.current_intent = "consult"
    await app.set_short_memory("c", session)
    await app.create_short_memory(AgentRequest("c", "user-456"))
    assert session == await app.get_short_memory("c")


async def test_a_user_who_comes_later_is_refused(app):
    """S1-41: a conversation that began without a user stays without."""
    await app.create_short_memory(AgentRequest("c"))
    with pytest.raises(ConflictError):
        await app.create_short_memory(AgentRequest("c", "user-456"))
    assert "" == (await app.get_short_memory("c")).meta.user_id


async def test_a_session_that_is_not_there_is_an_error(app):
    """S1-42."""
    with pytest.raises(NotFoundError, match="create_short_memory"):
        await app.get_short_memory("c")
    with pytest.raises(InvalidArgumentError):
        await app.create_short_memory(None)


async def test_the_samples_lines(app):
    """S1-78: what the document's sample prints."""
    await say(app, 1, 2)
    session = await app.GetShortMemory("c")
    assert "当前模式: FULL_HISTORY" == f"当前模式: {session.MessageContext.Mode}"
    assert "轮次计数: 2" == f"轮次计数: {session.FlowContext.TurnCount}"


async def test_the_window_is_the_last_eight_turns(app):
    """S1-19, S1-42: from the log, user and assistant."""
    await say(app, *range(10))
    shown = (await app.get_short_memory("c")).message_context.window_messages
    assert [message for number in range(2, 10) for message in (f"问{number}", f"答{number}")] == [
        message.content for message in shown
    ]
    assert [Message("user", "问2"), Message("assistant", "答2")] == shown[:2]


async def test_setting_stamps_the_time_and_keeps_what_others_keep(app, memory, clock):
    """S1-43: and a caller's object is not changed."""
    await app.create_short_memory(AgentRequest("c"))
    scope = app._log.scope("c")
    stored = await memory.engine.sessions.get(scope)
    await memory.engine.sessions.put(
        scope, {**stored, "beside": 1, "meta": {**stored["meta"], "trace": "t-1"}}
    )
    session = await app.get_short_memory("c")
    clock.advance(60)
    session.global_state.agent_slots = {"triage": {"step": 2}}
    before = session.to_json()
    await app.set_short_memory("c", session)
    assert before == session.to_json()
    stored = await memory.engine.sessions.get(scope)
    assert (1, "t-1") == (stored["beside"], stored["meta"]["trace"])
    found = await app.get_short_memory("c")
    assert int(clock.now().timestamp()) == found.meta.updated_at
    assert {"triage": {"step": 2}} == found.global_state.agent_slots


async def test_a_session_of_another_system_is_kept(app):
    """S1-60: what the log knows nothing about stays as it was set."""
    old = SessionValue()
    old.flow_context = FlowContext("triage_agent", "请测血压", 42)
    old.message_context.window_messages = [Message("user", "我头晕")]
    old.message_context.mode, old.message_context.checkpoint_message_id = SUMMARY_N, "of another database"
    await app.set_short_memory("c", old)
    found = await app.get_short_memory("c")
    assert old.flow_context == found.flow_context
    assert [Message("user", "我头晕")] == found.message_context.window_messages
    assert (FULL_HISTORY, "") == (found.message_context.mode, found.message_context.checkpoint_message_id)
    await say(app, 1)
    assert 43 == (await app.get_short_memory("c")).flow_context.turn_count


async def test_no_update_is_lost(app):
    """Extra test 10: who read the session before a turn and saves it after does not undo the turn."""
    await say(app, 1)
    early = await app.get_short_memory("c")
    await say(app, 2)
    early.global_state.current_intent = "consult"
    await app.set_short_memory("c", early)
    found = await app.get_short_memory("c")
    assert (2, "答2") == (found.flow_context.turn_count, found.flow_context.last_bot_message)
    assert "consult" == found.global_state.current_intent


async def test_a_lost_session_is_rebuilt(app, memory, store):
    """S1-82, extra test 4: with nothing but the log, the session is there again."""
    await app.write_turn(MemoryWriteRequest("c", "user-456", "triage_agent", "我头晕", "请测血压"))
    before = await app.get_short_memory("c")
    memory.engine.store.sessions = memory.engine.sessions._store.sessions = InMemoryStore(
        FakeClock()
    ).sessions
    assert before == await app.get_short_memory("c")


@pytest.mark.parametrize("again", ["create", "delete", "key"])
async def test_a_conversation_starts_over(app, again):
    """S1-73, S1-74, C1-9: by creating or deleting; the log keeps everything, the safety data stays."""
    await app.create_short_memory(AgentRequest("c", "user-456"))
    await say(app, *range(12))
    await app.checkpoint_short_memory("c", "摘要", 2)
    session = await app.get_short_memory("c")
    session.global_state.current_intent = "consult"
    session.user_snapshot = UserProfile("user-456", name="王芳", allergies=["青霉素"])
    await app.set_short_memory("c", session)
    if again == "create":
        await app.create_short_memory(AgentRequest("c", "user-456"))
    elif again == "delete":
        await app.delete_short_memory("c")
    else:
        client = await app.GetRedisClient()
        assert '"turn_count":12' in await client.Get(SESSION_KEY % "c")
        assert 1 == await client.Del(SESSION_KEY % "c")
    context = await app.query_memory_context(asking("你好"))
    assert (FULL_HISTORY, "过敏史: 青霉素") == (context.mode, context.history)
    found = await app.get_short_memory("c")
    assert FlowContext() == found.flow_context
    assert SessionValue().global_state == found.global_state
    assert SessionValue().message_context == found.message_context
    assert 12 == len(await app.query_message_by_conversation_id_asc("c"))
    await say(app, 12)
    assert 1 == (await app.get_short_memory("c")).flow_context.turn_count


async def test_deleting_what_is_not_there_does_nothing(app, memory):
    """S1-73: as deleting a key does."""
    await app.delete_short_memory("c")
    client = await app.get_redis_client()
    assert await client.get(SESSION_KEY % "c") is None
    assert [] == list(await memory.conversations())
    with pytest.raises(InvalidArgumentError, match="short_term_memory:session:"):
        await client.delete("another:key")


# -- safety data, failures, messages -----------------------------------------------------------------------------------


async def test_safety_data_is_in_every_history(app):
    """S1-83: allergies and both histories, however small the window; preferences are not safety data."""
    await app.create_short_memory(AgentRequest("c"))
    session = await app.get_short_memory("c")
    session.user_snapshot = UserProfile(
        "", "王芳", ["青霉素", "头孢\n(皮试阳性)"], ["高血压"], ["阑尾切除"], ["上午"]
    )
    await app.set_short_memory("c", session)
    safety = "过敏史: 青霉素、头孢 (皮试阳性)\n慢病史: 高血压\n手术史: 阑尾切除"
    await say(app, *range(12))
    context = await app.query_memory_context(asking("q"))
    assert "\n".join([safety, *lines(*range(12))]) == context.history == context.full_history
    await app.checkpoint_short_memory("c", "用户头晕。", 1)
    context = await app.query_memory_context(asking("q"))
    assert "\n".join(["历史摘要: 用户头晕。", safety, *lines(11)]) == context.history
    assert safety == (await app.query_memory_context(asking("q", model_context_window=1))).history


async def test_a_store_that_is_down_costs_the_history(app, store, memory):
    """S1-81: the query goes on, the failure is counted; the turn after it has its query."""
    await say(app, 1)
    store.fail({"reader.view", "sessions.get"})
    context = await app.query_memory_context(asking("我头晕"))
    assert ("", FULL_HISTORY) == (context.history, context.mode)
    assert 1 == memory.engine.failures["store"]
    store.mend()
    await app.write_turn(MemoryWriteRequest("c", agent_response="答"))
    assert "我头晕" == (await app.query_message_by_conversation_id_asc("c"))[-1].query


async def test_a_session_store_that_is_down_costs_only_the_session(app, store):
    """S1-81, S1-83: turns and safety data come from the log's own reading."""
    await app.set_short_memory("c", SessionValue(user_snapshot=UserProfile(allergies=["青霉素"])))
    await say(app, 1)
    store.fail({"sessions.get"})
    context = await app.query_memory_context(asking("q"))
    assert "\n".join(["过敏史: 青霉素", *lines(1)]) == context.history


async def test_a_test_may_ask_for_failures(clock, store):
    """The setting on_tier_error holds here too."""
    app = AgentApp(Memory(engine_over(store, Settings(on_tier_error="raise"), clock, COUNTER)))
    store.fail({"reader.view"})
    with pytest.raises(StoreUnavailableError):
        await app.query_memory_context(asking("q"))


async def test_messages_of_the_same_moment_keep_their_order(app, clock):
    """Extra tests 3 and 23: the clock stands still or goes back, and nothing is lost or mixed up."""
    await say(app, 1, 2)
    await app.checkpoint_short_memory("c", "摘要", 1)
    clock.advance(-3600)
    await say(app, 3)
    context = await app.query_memory_context(asking("q"))
    assert "\n".join(["历史摘要: 摘要", *lines(2, 3)]) == context.history
    rows = await app.query_message_by_conversation_id_asc("c")
    times = [row.create_time for row in rows]
    assert sorted(set(times)) == times
    assert all(time.utcoffset() == timedelta(0) for time in times)


async def test_times_without_a_zone_are_utc(app, memory):
    """Extra test 23: turns recorded with naive and aware times are side by side."""
    chat = memory.conversation("c")
    await chat.record("一", "1", at=datetime(2026, 2, 9, 8, 0))  # noqa: DTZ001 - naive on purpose
    await chat.record("二", "2", at=datetime(2026, 2, 9, 16, 0, tzinfo=timezone(timedelta(hours=8))))
    assert "用户: 一\nAI: 1\n用户: 二\nAI: 2" == (await app.query_memory_context(asking())).history


async def test_of_a_turn_that_was_given_up_only_the_users_words_stay(app, memory):
    """Extra test 9: a stream that broke off leaves no half answer, and the history says that none came."""
    chat = memory.conversation("c")
    turn = await chat.begin("没有回答")
    await chat.abort(await chat.step(turn, tool="search", result="半个回答"))
    await say(app, 1)
    expected = ["用户: 没有回答", ZH.unanswered, *lines(1)]
    assert expected == (await app.query_memory_context(asking())).history.split("\n")
    rows = await app.query_message_by_conversation_id_asc("c")
    assert [("没有回答", None), ("问1", "答1")] == [(row.query, row.answer or None) for row in rows]


async def test_the_newest_messages_come_oldest_first(app):
    """S1-55: at most as many as asked for."""
    await say(app, *range(120))
    rows = await app.QueryMessageByConversationIDASCWithLimit("c", 100)
    assert [f"问{number}" for number in range(20, 120)] == [row.query for row in rows]
    assert 100 == len(await app.query_message_by_conversation_id_asc_with_limit("c"))
    with pytest.raises(InvalidArgumentError, match="limit"):
        await app.query_message_by_conversation_id_asc_with_limit("c", 0)


async def test_long_conversations_are_read_in_batches(app, monkeypatch):
    """S1-76: every message, once."""
    monkeypatch.setattr("pagefile.standalone.conversation_store._BATCH", 7)
    await say(app, *range(21))
    rows = await app.query_message_by_conversation_id_asc_from_checkpoint("c", "")
    assert [f"问{number}" for number in range(21)] == [row.query for row in rows]


async def test_tenants_are_apart(memory):
    """The same conversation id in two tenants is two conversations."""
    here, there = AgentApp(memory), AgentApp(memory, tenant="other")
    await say(here, 1)
    assert "" == (await there.query_memory_context(asking())).history
