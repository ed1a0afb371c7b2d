"""Short-term memory as stories, on SQLite and on PostgreSQL with Redis: a long consultation, restarts, lost caches, many writers."""

import re
import runpy
import sqlite3
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from redis import Redis

from pagefile import Memory
from pagefile.standalone import (
    FULL_HISTORY,
    SUMMARY_N,
    AgentApp,
    AgentRequest,
    MemoryQueryRequest,
    MemoryWriteRequest,
    NewAgentApp,
    SessionValue,
    UserProfile,
    format_prompt,
)
from pagefile.stores.redis import RedisOptions, sessions
from tests.integration.postgres.serving import fresh_url
from tests.integration.schemas import CHECKPOINTS, SEGMENT
from tests.servers.valkey import ValkeyServer
from tests.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "zh" / "short_term_memory.py"
KEY = "short_term_memory:session:conv-123"


@pytest.fixture(scope="module")
def valkey():
    with ValkeyServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql and redis"])
def place(request, tmp_path):
    """Where the conversation is kept: the arguments of `Memory.open`."""
    if request.param == "sqlite":
        return {"url": f"sqlite:///{tmp_path}/agent.db"}
    return request.getfixturevalue("cached_place")


@pytest.fixture
def cached_place(valkey, monkeypatch):
    # A busy machine answers later than a cache may.
    monkeypatch.setattr(sessions, "RedisOptions", partial(RedisOptions, timeout_s=10))
    with other_program(valkey) as redis:
        redis.flushall()
    return {"url": fresh_url(), "sessions": valkey.url}


@pytest.fixture
def opened(place):
    """Opens the same memory, again and again."""
    return lambda: Memory.open(**place)


@contextmanager
def other_program(server):
    with Redis.from_url(server.url, decode_responses=True) as redis:
        yield redis


def asking(query="", **options):
    return MemoryQueryRequest("conv-123", query=query, **options)


async def say(app, *numbers):
    for number in numbers:
        await app.write_turn(
            MemoryWriteRequest("conv-123", user_query=f"问{number}", agent_response=f"答{number}")
        )


def lines(*numbers):
    return [line for number in numbers for line in (f"用户: 问{number}", f"AI: 答{number}")]


# -- the example -------------------------------------------------------------------------------------------------------


def test_the_documents_example(place, capsys, monkeypatch):
    """The whole example, with checkpoints, never over its window."""
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), *place.values()])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    told = capsys.readouterr().out
    assert told.startswith("用户: 我最近感觉头晕，应该怎么办？\nAI回复: 先坐下休息")
    assert "用户: 我还有高血压，需要注意什么？\nAI回复: 低盐饮食" in told
    assert "用户: 我最早说的是什么症状？\nAI回复: 您最早说的是头晕，并且有高血压。" in told
    assert told.endswith("当前模式: SUMMARY_N\n轮次计数: 27\n")
    shares = [int(share) for share in re.findall(r"([0-9]+)%", told)]
    assert 27 == len(shares)
    assert max(shares) < 90
    summaries = re.findall(r"摘要: (.*)", told)
    # They are written beside the conversation: one that is done early makes one more of them due.
    assert len(summaries) in {4, 5}
    assert all(summary.startswith("用户主诉头晕、高血压；血压从149/94降到") for summary in summaries)
    assert "error" not in told


# -- stories -----------------------------------------------------------------------------------------------------------


async def test_a_consultation_with_synchronous_summaries(opened):
    """Ask, summarise before answering, answer; every turn in order, whatever the cycle."""
    async with opened() as memory:
        app = NewAgentApp(memory)
        await app.CreateShortMemory(AgentRequest(ConversationId="conv-123", UserId="user-456"))
        modes, count = [], memory.engine.counter.count
        for number in range(60):
            ctx = await app.QueryMemoryContext(asking(f"问{number}", model_context_window=300))
            if ctx.ShouldCheckpointSummary:
                numbers = re.findall(r"问([0-9]+)|至([0-9]+)", ctx.FullHistory)
                await app.CheckpointShortMemory("conv-123", f"问0至{max(int(a or b) for a, b in numbers)}", 4)
                ctx = await app.QueryMemoryContext(asking(f"问{number}", model_context_window=300))
                assert lines(*range(number - 4, number)) == ctx.History.split("\n")[1:]
            assert count(format_prompt(ctx.History, ctx.Query)) <= 300
            modes.append(ctx.Mode)
            await app.WriteTurn(MemoryWriteRequest(ConversationID="conv-123", AgentResponse=f"答{number}"))
        assert sorted(modes) == modes
        assert {FULL_HISTORY, SUMMARY_N} == set(modes)
        rows = await app.query_message_by_conversation_id_asc("conv-123")
        assert [(f"问{number}", f"答{number}") for number in range(60)] == [(r.query, r.answer) for r in rows]
        assert {"user-456"} == {row.create_by for row in rows}


async def test_a_conversation_over_a_restart(opened):
    """Mode, summary, window and state are there again."""
    async with opened() as memory:
        app = AgentApp(memory)
        await app.create_short_memory(AgentRequest("conv-123", "user-456"))
        await say(app, *range(12))
        await app.checkpoint_short_memory("conv-123", "用户头晕。", 3)
        await say(app, 12)
        session = await app.get_short_memory("conv-123")
        session.user_snapshot.allergies = ["青霉素"]
        session.global_state.agent_slots = {"triage": {"step": [1, {"深": None}]}}
        await app.set_short_memory("conv-123", session)
        before = await app.query_memory_context(asking("q"))
    async with opened() as memory:
        assert before == await AgentApp(memory).query_memory_context(asking("q"))
    assert ["历史摘要: 用户头晕。", "过敏史: 青霉素", *lines(9, 10, 11, 12)] == before.history.split("\n")


async def test_many_writers_in_two_memories(opened):
    """Fifty turns of two processes' worth of apps, and one of them summarises meanwhile."""
    async with opened() as here, opened() as there:
        apps = [AgentApp(here), AgentApp(there)]
        await say(apps[0], *range(10))
        token = (await apps[0].query_memory_context(asking("q"))).read_token
        async with anyio.create_task_group() as group:
            for number in range(10, 60):
                group.start_soon(say, apps[number % 2], number)
            group.start_soon(apps[1].checkpoint_short_memory, "conv-123", "到问9为止", 52, token)
            group.start_soon(apps[0].checkpoint_short_memory, "conv-123", "到问9为止", 51, token)
        session = await apps[0].get_short_memory("conv-123")
        assert 60 == session.flow_context.turn_count
        context = await apps[1].query_memory_context(asking("q"))
        shown = {line for line in context.full_history.split("\n") if line.startswith("用户: ")}
        assert {f"用户: 问{number}" for number in range(10, 60)} <= shown


async def test_a_conversation_starts_over_for_everybody(opened):
    """Who deletes or creates it in one process resets it in the other; the rows stay."""
    async with opened() as here, opened() as there:
        app, other = AgentApp(here), AgentApp(there)
        await app.create_short_memory(AgentRequest("conv-123", "user-456"))
        await say(app, 1, 2)
        client = await other.GetRedisClient()
        await client.Del(KEY)
        assert "" == (await app.query_memory_context(asking())).history
        await say(app, 3)
        await other.create_short_memory(AgentRequest("conv-123", "user-456"))
        assert ("", 0) == (
            (await app.query_memory_context(asking())).history,
            (await app.get_short_memory("conv-123")).flow_context.turn_count,
        )
        assert 3 == len(await app.query_message_by_conversation_id_asc("conv-123"))


async def test_a_window_of_the_engine_has_the_safety_data_too(opened):
    """Whoever uses `chat.context()` on the same conversation sees the same red lines."""
    async with opened() as memory:
        app = AgentApp(memory)
        await app.set_short_memory("conv-123", SessionValue(user_snapshot=UserProfile(allergies=["青霉素"])))
        await say(app, 1)
        window = await memory.conversation("conv-123").context("问2")
        assert "过敏史: 青霉素" in str(window.messages[0]["content"])


# -- the cache ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["expired", "flushed", "overwritten"])
@pytest.mark.waits
async def test_a_lost_cache_changes_nothing(cached_place, valkey, loss):
    """Expiry is no reset, and what somebody else writes there is not believed."""
    async with Memory.open(**cached_place) as memory:
        app = AgentApp(memory)
        await say(app, *range(12))
        await app.checkpoint_short_memory("conv-123", "用户头晕。", 3)
        before = await app.query_memory_context(asking("q"))
        await memory.settle()
        with other_program(valkey) as redis:
            assert 0 < redis.ttl(KEY) <= 1800
            if loss == "expired":
                assert redis.pexpire(KEY, 1)
                await until(lambda: not redis.exists(KEY))
            elif loss == "flushed":
                redis.flushall()
            else:
                redis.set(KEY, "{}")
        assert before == await app.query_memory_context(asking("q"))


async def test_the_session_is_in_redis_under_the_documents_key(cached_place, valkey):
    """Plain JSON for any program."""
    async with Memory.open(**cached_place) as memory:
        app = AgentApp(memory)
        await say(app, 1)
        await app.get_short_memory("conv-123")
        with other_program(valkey) as redis:
            assert '"turn_count":1' in redis.get(KEY)


async def test_setting_a_session_gives_it_another_half_hour(cached_place, valkey):
    """As a turn does, and reading does not."""
    async with Memory.open(**cached_place) as memory:
        app = AgentApp(memory)
        await say(app, 1)
        session = await app.get_short_memory("conv-123")
        await memory.settle()
        with other_program(valkey) as redis:
            assert redis.expire(KEY, 60)
            await app.get_short_memory("conv-123")
            assert redis.ttl(KEY) <= 60
            session.global_state.current_intent = "consult"
            await app.set_short_memory("conv-123", session)
            assert 1790 < redis.ttl(KEY) <= 1800
            assert '"current_intent":"consult"' in redis.get(KEY)


# -- the document's SQL ------------------------------------------------------------------------------------------------


async def test_the_documents_statements_run_word_for_word(tmp_path):
    """On the database file itself, and they say what the API says."""
    path = tmp_path / "agent.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        app = AgentApp(memory)
        await app.create_short_memory(AgentRequest("conv-123", "user-456"))
        await say(app, *range(12))
        await app.checkpoint_short_memory("conv-123", "第一", 3)
        await say(app, 12)
        await app.checkpoint_short_memory("conv-123", "第二", 2)
        await say(app, 13, 14)
        newest = (await app.get_short_memory("conv-123")).message_context.checkpoint_message_id
        segment = await app.query_message_by_conversation_id_asc_from_checkpoint("conv-123", newest)
        checkpoints = await memory.conversation("conv-123", user_id="user-456").checkpoints()
    with sqlite3.connect(path) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(ai_message)")]
        found = database.execute(CHECKPOINTS).fetchall()
        since = database.execute(SEGMENT.replace("checkpoint-message-id", newest)).fetchall()
        by = database.execute("SELECT DISTINCT create_by FROM ai_message WHERE kind = 'turn'").fetchall()
    database.close()
    assert [
        "message_id", "conversation_id", "query", "answer", "create_time", "create_by", "update_time", "update_by",
    ] == columns[:8]  # fmt: skip
    assert [(c.id, "conv-123", f"历史摘要: {c.summary}") for c in checkpoints] == [row[:3] for row in found]
    assert ["历史摘要: 第一", "历史摘要: 第二"] == [row[2] for row in found]
    assert [(m.message_id, "conv-123", m.query, m.answer) for m in segment] == [row[:4] for row in since]
    assert ["问13", "问14"] == [row[2] for row in since]
    assert [("user-456",)] == by
