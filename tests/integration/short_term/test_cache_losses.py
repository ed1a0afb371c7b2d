"""Redis is only a cache: however it is lost in the middle of a conversation, the next context is the same."""

import logging
from contextlib import asynccontextmanager

import anyio
import pytest
from redis.asyncio import Redis

from pagefile import Memory
from pagefile.standalone import AgentApp, SessionValue, UserProfile
from pagefile.stores.redis import RedisOptions, RedisSessions
from tests.waiting import PATIENCE_S, until

from .talking import CONVERSATION, ask, say

TTL_S = 0.2


@asynccontextmanager
async def talking(url, cache):
    """A conversation with a checkpoint, safety data and turns since; and an app that reads the same with no cache."""
    async with Memory.open(url, sessions=cache) as memory, Memory.open(url) as uncached:
        app = AgentApp(memory)
        profile = UserProfile(allergies=["青霉素"])
        await app.set_short_memory(CONVERSATION, SessionValue(user_snapshot=profile))
        for number in range(12):
            await say(app, number)
        await app.checkpoint_short_memory(CONVERSATION, "用户头晕。", 3)
        await say(app, 12)
        # What recall brings depends on the index: it is complete before anything is compared.
        await memory.settle()
        yield app, AgentApp(uncached), memory.conversation(CONVERSATION)


async def everything(app):
    """All that a caller sees of the conversation."""
    return await ask(app), await app.get_short_memory(CONVERSATION)


async def messages(chat):
    return (await chat.context("q")).messages


@asynccontextmanager
async def unchanged(app, uncached, chat):
    """What happens inside changes nothing that is read, now and after the next turn; the database alone says the same."""
    before, window = await everything(app), await messages(chat)
    assert "历史摘要: 用户头晕。" in before[0].history
    yield
    assert before == await everything(app)
    assert window == await messages(chat)
    await say(app, 13)
    assert "AI: 答13" in (await ask(app)).history
    assert await everything(uncached) == await everything(app)


async def test_put_by_another_process(url, valkey):
    """What one process sets, another that trusts its cached value reads at once, in the history and in the session."""
    async with (
        talking(url, valkey.url) as (app, uncached, chat),
        Memory.open(url, sessions=valkey.url) as other,
    ):
        assert "花生" not in (await ask(app)).history
        value = {"user_snapshot": {"allergies": ["花生"]}, "global_state": {"current_intent": "预约"}}
        await other.conversation(CONVERSATION).put_session(value)
        assert "过敏史: 花生" in (await ask(app)).history
        assert "花生" in str(await messages(chat))
        session = await app.get_short_memory(CONVERSATION)
        assert (["花生"], "预约") == (session.user_snapshot.allergies, session.global_state.current_intent)
        assert await everything(uncached) == await everything(app)


async def test_stopped(url, valkey, caplog):
    """S1-52: the server is gone in the middle, for many calls; then it is back, empty."""
    async with talking(url, valkey.url) as (app, uncached, chat):
        async with unchanged(app, uncached, chat):
            valkey.kill()
        assert 1 == sum("cannot be used" in record.message for record in caplog.records)
        valkey.start()
        async with unchanged(app, uncached, chat):
            pass
    assert all(record.levelno <= logging.WARNING for record in caplog.records)


@pytest.mark.waits
async def test_hanging(url, valkey):
    """It takes connections and answers nothing: one short timeout, and the same context."""
    async with talking(url, valkey.url) as (app, uncached, chat), unchanged(app, uncached, chat):
        valkey.pause()
        try:
            with anyio.fail_after(PATIENCE_S):
                await ask(app)
        finally:
            valkey.resume()


@pytest.mark.parametrize("times", [1, 3])
async def test_flushed(url, valkey, times):
    """Every key is gone, once or again and again."""
    async with (
        talking(url, valkey.url) as (app, uncached, chat),
        unchanged(app, uncached, chat),
        Redis.from_url(valkey.url) as redis,
    ):
        for _ in range(times):
            await redis.flushall()
            await ask(app)
        await redis.flushall()


async def is_empty(redis):
    return not await redis.dbsize()


@pytest.mark.waits
async def test_expired(url, valkey):
    """A session that nobody used for its time to live is no reset."""
    cache = RedisSessions(valkey.url, options=RedisOptions(ttl_s=TTL_S))
    async with (
        talking(url, cache) as (app, uncached, chat),
        unchanged(app, uncached, chat),
        Redis.from_url(valkey.url) as redis,
    ):
        await app.get_short_memory(CONVERSATION)
        await until(lambda: is_empty(redis))
