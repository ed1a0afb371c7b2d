"""Document 001's own API: queries, turns and sessions."""

import inspect
import logging
from datetime import UTC, datetime, timedelta, timezone

import anyio
import pytest

from pagefile import ConflictError, InvalidTurnError, Memory, NotFoundError
from pagefile.errors import ClosedError, StoreUnavailableError
from pagefile.memory.house import House
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SESSION_KEY,
    SUMMARY_N,
    AgentApp,
    AgentRequest,
    FlowContext,
    MemoryQueryRequest,
    MemoryWriteRequest,
    MemoryWriteResult,
    Message,
    NewAgentApp,
    SessionValue,
    UserProfile,
    format_prompt,
)
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock, FlakyStore
from pagefile.text.tokens import open_counter

COUNTER = open_counter()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    return FlakyStore(InMemoryStore(clock))


@pytest.fixture
def memory(store, clock):
    return Memory(House.build(store, Settings(), clock, COUNTER))


@pytest.fixture
def app(memory):
    return AgentApp(memory)


def asking(query="", **options):
    return MemoryQueryRequest("c", query=query, **options)


async def say(app, *numbers, conversation_id="c"):
    for number in numbers:
        await app.write_turn(
            MemoryWriteRequest(conversation_id, user_query=f"问{number}", agent_response=f"答{number}")
        )


def lines(*numbers):
    return [line for number in numbers for line in (f"用户: 问{number}", f"AI: 答{number}")]


# -- the face ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "parameters"),
    [
        ("query_memory_context", "QueryMemoryContext", ["request"]),
        ("write_turn", "WriteTurn", ["request"]),
        ("checkpoint_short_memory", "CheckpointShortMemory", ["conversation_id", "summary", "recent_turns"]),
        ("create_short_memory", "CreateShortMemory", ["request"]),
        ("get_short_memory", "GetShortMemory", ["conversation_id"]),
        ("set_short_memory", "SetShortMemory", ["conversation_id", "session"]),
        ("delete_short_memory", "DeleteShortMemory", ["conversation_id"]),
        ("get_redis_client", "GetRedisClient", []),
        ("query_message_by_conversation_id_asc", "QueryMessageByConversationIDASC", ["conversation_id"]),
        (
            "query_message_by_conversation_id_asc_with_limit",
            "QueryMessageByConversationIDASCWithLimit",
            ["conversation_id", "limit"],
        ),
        (
            "query_message_by_conversation_id_asc_from_checkpoint",
            "QueryMessageByConversationIDASCFromCheckpoint",
            ["conversation_id", "checkpoint_message_id"],
        ),
    ],
)
def test_the_methods_have_the_documents_signatures(ours, theirs, parameters):
    """S1-27, S1-36, S1-39, S1-41 … S1-45, S1-55, S1-76: coroutines, under both names."""
    method = getattr(AgentApp, ours)
    assert inspect.iscoroutinefunction(method)
    assert getattr(AgentApp, theirs) is method
    assert ["self", *parameters] == list(inspect.signature(method).parameters)


def test_the_entry_is_there(memory):
    """S1-45."""
    assert isinstance(NewAgentApp(memory), AgentApp)


async def test_a_closed_memory_is_refused():
    """What was opened with the memory ends with it."""
    async with Memory.open("memory://") as memory:
        app = AgentApp(memory)
    with pytest.raises(ClosedError):
        await app.get_short_memory("c")


# -- queries -----------------------------------------------------------------------------------------------------------


async def test_a_new_conversation_has_no_history(app):
    """S1-08: the default mode is the full one."""
    context = await app.query_memory_context(asking("你好"))
    assert ("c", FULL_HISTORY, "", "", "你好") == (
        context.conversation_id,
        context.mode,
        context.history,
        context.full_history,
        context.query,
    )
    assert not context.should_checkpoint_summary
    assert SessionValue().global_state == context.session.global_state


@pytest.mark.parametrize("request_", [None, MemoryQueryRequest(), MemoryQueryRequest("  ")])
async def test_a_query_names_a_conversation(app, request_, caplog):
    """S1-29, S1-79: nothing and nobody are errors, and the log says so in the document's words."""
    with pytest.raises(InvalidTurnError), caplog.at_level(logging.WARNING):
        await app.query_memory_context(request_)
    assert any(message.startswith("QueryMemoryContext error: ") for message in caplog.messages)


async def test_the_full_history_is_every_turn(app):
    """S1-08, S1-30, S1-80: in the full mode both histories are the same, a line for each side."""
    await say(app, *range(20))
    context = await app.query_memory_context(asking("再问"))
    assert "\n".join(lines(*range(20))) == context.history == context.full_history


async def test_a_side_that_is_missing_has_no_line(app):
    """S1-36, S1-80: either side of a turn may be missing."""
    await app.write_turn(MemoryWriteRequest("c", user_query="在吗"))
    await app.write_turn(MemoryWriteRequest("c", agent_response="在"))
    assert "用户: 在吗\nAI: 在" == (await app.query_memory_context(asking())).history


async def test_tokens_are_those_of_history_and_query(app):
    """S1-31, S1-32, S1-77: counted by the engine's exact counter, not by characters."""
    await say(app, 1, 2)
    context = await app.query_memory_context(asking("头晕怎么办？"))
    assert COUNTER.exact
    assert COUNTER.count(context.history + "\n头晕怎么办？") == context.estimated_tokens
    assert context.estimated_tokens / 16000 == context.token_ratio


async def test_the_flag_turns_at_exactly_the_threshold(app):
    """S1-04, S1-13, S1-31: at the threshold a summary is due, one token below it is not."""
    await say(app, *range(30))
    tokens = (await app.query_memory_context(asking("q"))).estimated_tokens
    window = tokens * 2
    at = await app.query_memory_context(asking("q", token_threshold_ratio=0.5, model_context_window=window))
    below = await app.query_memory_context(
        asking("q", token_threshold_ratio=0.5, model_context_window=window + 1)
    )
    assert (0.5, True) == (at.token_ratio, at.should_checkpoint_summary)
    assert not below.should_checkpoint_summary


async def test_the_flag_turns_at_the_turn_that_fills_the_window(app):
    """S1-04: turn by turn, the flag is what the numbers say."""
    seen = set()
    for number in range(40):
        context = await app.query_memory_context(asking(f"问{number}", model_context_window=400))
        assert (context.token_ratio >= 0.75) == context.should_checkpoint_summary
        seen.add(context.should_checkpoint_summary)
        await say(app, number)
        if context.should_checkpoint_summary:
            break
    assert {False, True} == seen


async def test_a_long_query_alone_is_enough(app):
    """S1-32."""
    context = await app.query_memory_context(asking("头晕 " * 13_000))
    assert context.should_checkpoint_summary
    assert "" == context.history


@pytest.mark.parametrize("nothing", [0, -1])
async def test_zero_and_less_mean_the_default(app, nothing):
    """S1-28."""
    await say(app, *range(20))
    plain = await app.query_memory_context(asking("q"))
    same = await app.query_memory_context(
        asking("q", token_threshold_ratio=nothing, recent_turns=nothing, model_context_window=nothing)
    )
    assert plain == same


async def test_a_request_may_have_its_own_numbers(app):
    """S1-34, S1-51: the document's 0.8, 10 and 32000."""
    await say(app, *range(20))
    plain = await app.query_memory_context(asking("q"))
    other = await app.query_memory_context(
        asking("q", token_threshold_ratio=0.8, recent_turns=10, model_context_window=32000)
    )
    assert plain.token_ratio == other.token_ratio * 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "8", True, None])
@pytest.mark.parametrize("name", ["token_threshold_ratio", "recent_turns", "model_context_window"])
async def test_what_is_no_number_is_refused(app, name, bad):
    """The error names what is wrong."""
    with pytest.raises(InvalidTurnError, match=name):
        await app.query_memory_context(asking(**{name: bad}))


def test_the_prompt_has_the_documents_shape():
    """S1-33."""
    assert "历史对话:\n用户: a\nAI: b\n\n用户问题: 我还有高血压" == format_prompt(
        "用户: a\nAI: b", "我还有高血压"
    )


async def test_a_window_is_never_overfull(app):
    """S1-01, C1-10: a conversation that nobody summarises is cut to the newest turns, in one piece, and says so."""
    for number in range(60):
        await say(app, number)
        context = await app.query_memory_context(asking("现在呢", model_context_window=200))
        assert COUNTER.count(format_prompt(context.history, context.query)) <= 200
        assert context.history == "\n".join(lines(*range(60))[: 2 * (number + 1)])[-len(context.history) :]
    assert context.should_checkpoint_summary
    assert "\n".join(lines(*range(60))) == context.full_history
    assert context.history.startswith("用户: ")


async def test_one_turn_that_is_too_long_calls_for_a_summary(app):
    """C1-10: nothing fits, so the ratio is small, and yet a summary is due."""
    await app.write_turn(MemoryWriteRequest("c", user_query="长 " * 3000, agent_response="答"))
    context = await app.query_memory_context(asking("q", model_context_window=1000))
    assert ("", True) == (context.history, context.should_checkpoint_summary)


# -- turns -------------------------------------------------------------------------------------------------------------


async def test_a_turn_is_a_row_and_a_session(app, memory, clock):
    """S1-37, S1-38: the row is there, the session knows the agent, the answer, the user and the count."""
    clock.set(datetime(2026, 2, 9, 8, 0, 7, 900_000, tzinfo=UTC))
    result = await app.write_turn(
        MemoryWriteRequest("c", "user-456", "triage_agent", "我头晕", "这是AI的回复")
    )
    now = int(clock.now().timestamp())
    assert MemoryWriteResult("c", FULL_HISTORY, now) == result
    (row,) = await app.query_message_by_conversation_id_asc("c")
    assert ("c", "我头晕", "这是AI的回复", "user-456") == (
        row.conversation_id,
        row.query,
        row.answer,
        row.create_by,
    )
    session = await app.get_short_memory("c")
    assert FlowContext("triage_agent", "这是AI的回复", 1) == session.flow_context
    assert ("c", "user-456", now) == (
        session.meta.conversation_id,
        session.meta.user_id,
        session.meta.updated_at,
    )
    assert "user-456" == session.user_snapshot.user_id


async def test_a_turn_answers_the_query_that_was_asked(app):
    """C1-6, S1-46: the document's example gives no UserQuery; a query is answered once."""
    await app.query_memory_context(asking("我头晕"))
    await app.write_turn(MemoryWriteRequest("c", agent_response="请测血压"))
    await app.write_turn(MemoryWriteRequest("c", agent_response="还在吗"))
    await app.query_memory_context(asking("没问的"))
    await app.write_turn(MemoryWriteRequest("c", user_query="我还有高血压", agent_response="按时服药"))
    assert [("我头晕", "请测血压"), ("", "还在吗"), ("我还有高血压", "按时服药")] == [
        (row.query, row.answer) for row in await app.query_message_by_conversation_id_asc("c")
    ]


async def test_a_query_waits_for_a_turn_that_could_not_be_written(app, store, caplog):
    """C1-6, S1-79: after a failure the same call writes the same turn."""
    await app.query_memory_context(asking("我头晕"))
    store.fail({"log.append"}, times=1)
    answer = MemoryWriteRequest("c", agent_response="请测血压")
    with pytest.raises(StoreUnavailableError), caplog.at_level(logging.WARNING):
        await app.write_turn(answer)
    assert "WriteTurn error: The store cannot be reached or opened." in caplog.messages
    await app.write_turn(answer)
    assert ["我头晕"] == [row.query for row in await app.query_message_by_conversation_id_asc("c")]


@pytest.mark.parametrize("request_", [None, MemoryWriteRequest(), MemoryWriteRequest("c")])
async def test_a_turn_names_a_conversation_and_says_something(app, request_):
    """S1-36."""
    with pytest.raises(InvalidTurnError):
        await app.write_turn(request_)


async def test_a_turn_that_is_written_stays_written(app, store):
    """S1-38: what fails afterwards is no reason to write it again."""
    store.fail({"reader.view", "sessions.get"})
    assert FULL_HISTORY == (await app.write_turn(MemoryWriteRequest("c", agent_response="答"))).mode


async def test_a_conversation_has_one_user(app):
    """Another user neither reads nor writes it."""
    await app.create_short_memory(AgentRequest("c", "user-456"))
    with pytest.raises(ConflictError):
        await app.write_turn(MemoryWriteRequest("c", "somebody else", agent_response="答"))
    with pytest.raises(ConflictError):
        await app.create_short_memory(AgentRequest("c", "somebody else"))


async def test_many_turns_at_once_are_all_counted(app):
    """S1-66, C1-11: fifty writers of one conversation; and locks do not pile up."""
    async with anyio.create_task_group() as writers:
        for number in range(50):
            writers.start_soon(say, app, number)
    assert 50 == (await app.get_short_memory("c")).flow_context.turn_count
    assert 50 == len(await app.query_message_by_conversation_id_asc("c"))
    assert 0 == len(app._locks)


async def test_conversations_do_not_wait_for_each_other(app):
    """S1-66."""
    async with app._alone(app._scope("other")):
        with anyio.fail_after(1):
            await say(app, 1)


async def test_what_is_remembered_between_calls_is_bounded(app, monkeypatch):
    """A process that serves many conversations does not grow with them."""
    monkeypatch.setattr("pagefile.standalone.agent_app._REMEMBERED", 3)
    for number in range(10):
        await app.query_memory_context(MemoryQueryRequest(f"c{number}", query="q"))
    assert ["c7", "c8", "c9"] == list(app._asked)


async def test_limits_are_told(memory, clock):
    """Issue 4: too long a query, response or id is refused, with the limit in the error."""
    settings = Settings(max_message_chars=100)
    app = AgentApp(Memory(House.build(InMemoryStore(clock), settings, clock, COUNTER)))
    long = "字" * 101
    with pytest.raises(InvalidTurnError, match="query has 101 characters, at most 100"):
        await app.query_memory_context(asking(long))
    with pytest.raises(InvalidTurnError, match="user has 101 characters, at most 100"):
        await app.write_turn(MemoryWriteRequest("c", user_query=long))
    with pytest.raises(InvalidTurnError, match="assistant has 101 characters, at most 100"):
        await app.write_turn(MemoryWriteRequest("c", agent_response=long))
    for ids in ({"conversation_id": "x" * 256}, {"user_id": "x" * 256}, {"agent_code": "x" * 256}):
        with pytest.raises(InvalidTurnError, match="256 characters, at most 255"):
            await app.write_turn(
                MemoryWriteRequest(**{"conversation_id": "c", "agent_response": "答", **ids})
            )
    with pytest.raises(InvalidTurnError, match="NUL"):
        await app.query_memory_context(asking("a\0b"))


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


async def test_a_user_may_come_later(app):
    """S1-41."""
    await app.create_short_memory(AgentRequest("c"))
    await app.create_short_memory(AgentRequest("c", "user-456"))
    assert "user-456" == (await app.get_short_memory("c")).meta.user_id


async def test_a_session_that_is_not_there_is_an_error(app):
    """S1-42."""
    with pytest.raises(NotFoundError, match="create_short_memory"):
        await app.get_short_memory("c")
    with pytest.raises(InvalidTurnError):
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
    scope = app._scope("c")
    stored = await memory.house.sessions.get(scope)
    await memory.house.sessions.put(
        scope, {**stored, "beside": 1, "meta": {**stored["meta"], "trace": "t-1"}}
    )
    session = await app.get_short_memory("c")
    clock.advance(60)
    session.global_state.agent_slots = {"triage": {"step": 2}}
    before = session.to_json()
    await app.set_short_memory("c", session)
    assert before == session.to_json()
    stored = await memory.house.sessions.get(scope)
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
    memory.house.sessions = InMemoryStore(FakeClock()).sessions
    assert before == await app.get_short_memory("c")


@pytest.mark.parametrize("again", ["create", "delete", "key"])
async def test_a_conversation_begins_anew(app, again):
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
    with pytest.raises(InvalidTurnError, match="short_term_memory:session:"):
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
    assert 1 == memory.house.failures["store"]
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
    app = AgentApp(Memory(House.build(store, Settings(on_tier_error="raise"), clock, COUNTER)))
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
    """Extra test 23: turns recorded with naive and aware times stand side by side."""
    chat = memory.conversation("c")
    await chat.record("一", "1", at=datetime(2026, 2, 9, 8, 0))  # noqa: DTZ001 - naive on purpose
    await chat.record("二", "2", at=datetime(2026, 2, 9, 16, 0, tzinfo=timezone(timedelta(hours=8))))
    assert "用户: 一\nAI: 1\n用户: 二\nAI: 2" == (await app.query_memory_context(asking())).history


async def test_a_turn_that_was_given_up_is_nowhere(app, memory):
    """Extra test 9: a stream that broke off leaves no half turn."""
    chat = memory.conversation("c")
    await chat.abort(await chat.begin("没有回答"))
    await chat.begin("还没有回答")
    await say(app, 1)
    assert "\n".join(lines(1)) == (await app.query_memory_context(asking())).history
    assert ["问1"] == [row.query for row in await app.query_message_by_conversation_id_asc("c")]


async def test_the_newest_messages_come_oldest_first(app):
    """S1-55: at most as many as asked for."""
    await say(app, *range(120))
    rows = await app.QueryMessageByConversationIDASCWithLimit("c", 100)
    assert [f"问{number}" for number in range(20, 120)] == [row.query for row in rows]
    assert 100 == len(await app.query_message_by_conversation_id_asc_with_limit("c"))
    with pytest.raises(InvalidTurnError, match="limit"):
        await app.query_message_by_conversation_id_asc_with_limit("c", 0)


async def test_long_conversations_are_read_in_batches(app, monkeypatch):
    """S1-76: every message, once."""
    monkeypatch.setattr("pagefile.standalone.messages._BATCH", 7)
    await say(app, *range(21))
    rows = await app.query_message_by_conversation_id_asc_from_checkpoint("c", "")
    assert [f"问{number}" for number in range(21)] == [row.query for row in rows]


async def test_tenants_are_apart(memory):
    """The same conversation id in two tenants is two conversations."""
    here, there = AgentApp(memory), AgentApp(memory, tenant="other")
    await say(here, 1)
    assert "" == (await there.query_memory_context(asking())).history
