"""Document 001's own API: queries and turns."""

import inspect
import logging
from datetime import UTC, datetime

import anyio
import pytest

from pagefile import ConflictError, InvalidArgumentError, Memory
from pagefile.errors import ClosedError, StoreUnavailableError
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    AgentApp,
    AgentRequest,
    FlowContext,
    MemoryQueryRequest,
    MemoryWriteRequest,
    MemoryWriteResult,
    NewAgentApp,
    SessionValue,
    format_prompt,
)
from pagefile.stores import InMemoryStore
from tests.engines import engine_over
from tests.waiting import PATIENCE_S

from .talking import COUNTER, asking, lines, say

# -- the face ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "parameters"),
    [
        ("query_memory_context", "QueryMemoryContext", ["request"]),
        ("write_turn", "WriteTurn", ["request"]),
        (
            "checkpoint_short_memory",
            "CheckpointShortMemory",
            ["conversation_id", "summary", "recent_turns", "read_token"],
        ),
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


async def test_an_answer_without_any_query_is_warned_of(app, caplog):
    """The query may have reached another process; with one asked here there is nothing to warn of."""
    await app.query_memory_context(asking("问"))
    await app.write_turn(MemoryWriteRequest("c", agent_response="答"))
    assert "no UserQuery" not in caplog.text
    await app.write_turn(MemoryWriteRequest("c", agent_response="又答"))
    assert "no UserQuery" in caplog.text


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
    with pytest.raises(InvalidArgumentError), caplog.at_level(logging.WARNING):
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
    with pytest.raises(InvalidArgumentError, match=name):
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
    """C1-10, S1-08: it is abridged, so the ratio is small, and yet a summary is due."""
    await app.write_turn(MemoryWriteRequest("c", user_query="长 " * 3000, agent_response="答"))
    context = await app.query_memory_context(asking("q", model_context_window=1000))
    assert context.should_checkpoint_summary
    assert context.history.startswith("用户: ")
    assert context.history.endswith("\nAI: 答")
    assert COUNTER.count(format_prompt(context.history, "q")) <= 1000


async def test_several_large_turns_share_the_window(app):
    """S1-08: of eight turns that take a third of the window each, the newest is whole, and others before it are shown in part."""
    for number in range(8):
        said = f"第{number}份合同。" + "甲方应按照约定履行义务。" * 60
        await app.write_turn(MemoryWriteRequest("c", user_query=said, agent_response=f"意见{number}"))
    context = await app.query_memory_context(asking("q", model_context_window=2000))
    assert COUNTER.count(format_prompt(context.history, "q")) <= 2000
    assert context.history.endswith(f"用户: {said}\nAI: 意见7")
    shown = [number for number in range(8) if f"AI: 意见{number}" in context.history]
    assert [4, 5, 6, 7] == shown[-4:]
    assert list(range(8))[-len(shown) :] == shown


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
    with pytest.raises(InvalidArgumentError):
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


@pytest.mark.waits
async def test_conversations_do_not_wait_for_each_other(app):
    """S1-66."""
    async with app._alone(app._log.scope("other")):
        with anyio.fail_after(PATIENCE_S):
            await say(app, 1)


async def test_what_is_remembered_between_calls_is_bounded(app, monkeypatch):
    """A process that serves many conversations does not grow with them."""
    monkeypatch.setattr(app._asked, "_most", 3)
    for number in range(10):
        await app.query_memory_context(MemoryQueryRequest(f"c{number}", query="q"))
    assert ["c7", "c8", "c9"] == list(app._asked)


async def test_limits_are_told(memory, clock):
    """Issue 4: too long a query, response or id is refused, with the limit in the error."""
    settings = Settings(max_message_chars=100)
    app = AgentApp(Memory(engine_over(InMemoryStore(clock), settings, clock, COUNTER)))
    long = "字" * 101
    with pytest.raises(InvalidArgumentError, match="query has 101 characters, at most 100"):
        await app.query_memory_context(asking(long))
    with pytest.raises(InvalidArgumentError, match="user has 101 characters, at most 100"):
        await app.write_turn(MemoryWriteRequest("c", user_query=long))
    with pytest.raises(InvalidArgumentError, match="assistant has 101 characters, at most 100"):
        await app.write_turn(MemoryWriteRequest("c", agent_response=long))
    for ids in ({"conversation_id": "x" * 256}, {"user_id": "x" * 256}, {"agent_code": "x" * 256}):
        with pytest.raises(InvalidArgumentError, match="256 characters, at most 255"):
            await app.write_turn(
                MemoryWriteRequest(**{"conversation_id": "c", "agent_response": "答", **ids})
            )
    with pytest.raises(InvalidArgumentError, match="NUL"):
        await app.query_memory_context(asking("a\0b"))
