"""The session of short-term memory in Redis: what another program reads there, what a read costs, and what an outage leaves."""

import json
from contextlib import asynccontextmanager
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit

import anyio
import pytest

from pagefile import Memory
from pagefile.standalone import (
    SESSION_KEY,
    AgentApp,
    MemoryQueryRequest,
    MemoryWriteRequest,
)
from pagefile.stores.redis import RedisOptions, RedisSessions
from tests.findings.marks import finding, load
from tests.integration.postgres.serving import server as shared_server
from tests.servers.postgres import PostgresServer


async def talk(app, turns):
    for number in range(turns):
        said = MemoryWriteRequest(
            "c",
            user_id="u",
            agent_code="triage_agent",
            user_query=f"问{number}",
            agent_response=f"答{number}",
        )
        await app.write_turn(said)


# -- F3: the cache makes a read cheaper ------------------------------------------------------------------------------------


class Wire:
    """Stands between a program and PostgreSQL, and counts what the program sends."""

    def __init__(self, url):
        self.sent = 0
        self._target = urlsplit(url)

    @asynccontextmanager
    async def laid(self):
        """The URL of the same database by way of this wire."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._serve)
            yield self._target._replace(
                netloc=self._target.netloc.replace(f":{self._target.port}", f":{port}")
            ).geturl()
            group.cancel_scope.cancel()

    async def _serve(self, client):
        database = await anyio.connect_tcp("127.0.0.1", self._target.port)
        async with client, database, anyio.create_task_group() as group:
            group.start_soon(self._carry, client, database, 1)
            group.start_soon(self._carry, database, client, 0)

    async def _carry(self, source, target, counts):
        try:
            async for data in source:
                self.sent += counts
                await target.send(data)
            await target.send_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


async def trips_of_reads(url, sessions):
    """What ten reads of a session send to the database."""
    wire = Wire(url)
    async with wire.laid() as wired, Memory.open(wired, sessions=sessions, embedder="none") as memory:
        app = AgentApp(memory)
        for _ in range(20):  # Statements are prepared, and the cache is filled.
            await app.get_short_memory("c")
        await memory.settle()
        before = wire.sent
        for _ in range(10):
            await app.get_short_memory("c")
        return wire.sent - before


@finding("history-F3")
async def test_a_session_in_redis_spares_the_database(postgres_url, valkey_url):
    """Reading a session that is in Redis asks the database for less than reading it without Redis."""
    async with Memory.open(postgres_url, sessions=valkey_url, embedder="none") as memory:
        await talk(AgentApp(memory), 12)
    with_redis = await trips_of_reads(postgres_url, valkey_url)
    without = await trips_of_reads(postgres_url, None)
    assert with_redis < without


@load
@finding("history-F3")
@pytest.mark.parametrize("call", ["query", "session"])
async def test_redis_makes_reads_faster(postgres_url, valkey_url, call, counted):
    """A read of a conversation is faster with Redis than without."""
    tries, wrong = 8, 0
    async with (
        Memory.open(postgres_url, sessions=valkey_url, embedder="none") as cached,
        Memory.open(postgres_url, embedder="none") as plain,
    ):
        await talk(AgentApp(cached), 40)
        await AgentApp(cached).checkpoint_short_memory("c", "用户头晕。", 8)
        for _ in range(tries):
            times = [await times_of_reads(AgentApp(memory), call) for memory in (cached, plain)]
            wrong += median(times[0]) >= median(times[1])
    counted(tries=tries, wrong=wrong)
    assert 0 == wrong


async def times_of_reads(app, call):
    times = []
    for _ in range(100):
        began = perf_counter()
        if call == "query":
            await app.query_memory_context(MemoryQueryRequest("c", query="q"))
        else:
            await app.get_short_memory("c")
        times.append(perf_counter() - began)
    return times


# -- F10: what another program reads ---------------------------------------------------------------------------------------


async def stored_and_shown(redis, app):
    """A session's message context in Redis and in Python."""
    stored = json.loads(await redis.get(SESSION_KEY % "c"))
    return stored, (await app.get_short_memory("c")).to_json()


@pytest.fixture
async def app(postgres_url, valkey_url):
    async with Memory.open(postgres_url, sessions=valkey_url, embedder="none") as memory:
        app = AgentApp(memory)
        # Nobody calls create_short_memory(): the first turn makes the session.
        await talk(app, 12)
        await app.query_memory_context(MemoryQueryRequest("c"))
        yield app


@finding("history-F10")
async def test_redis_has_the_window(redis, app):
    """The recent messages that Python shows are in Redis too."""
    stored, shown = await stored_and_shown(redis, app)
    assert shown["message_context"]["window_messages"]
    assert shown["message_context"]["window_messages"] == stored["message_context"]["window_messages"]


@finding("history-F10")
async def test_redis_has_the_cached_checkpoint(redis, app):
    """After a checkpoint its text is in Redis, and id, summary and mode agree with Python."""
    await app.checkpoint_short_memory("c", "用户头晕。", 4)
    await app.query_memory_context(MemoryQueryRequest("c"))
    stored, shown = await stored_and_shown(redis, app)
    expected = shown["message_context"]
    assert expected["cached_checkpoint"]
    names = ("summary", "mode", "checkpoint_message_id", "cached_checkpoint")
    assert {name: expected[name] for name in names} == {
        name: stored["message_context"].get(name) for name in names
    }


@finding("history-F10")
async def test_redis_leaves_out_what_is_empty(redis, app):
    """Without a checkpoint Redis has no `checkpoint_message_id`, as the document's JSON leaves it out."""
    stored, shown = await stored_and_shown(redis, app)
    assert 12 == stored["flow_context"]["turn_count"]
    assert "checkpoint_message_id" not in shown["message_context"]
    assert "checkpoint_message_id" not in stored["message_context"]


@finding("history-F10")
async def test_redis_has_the_keys_of_shared_entities(redis, app):
    """The shared entities in Redis have the document's keys."""
    stored, shown = await stored_and_shown(redis, app)
    assert shown["global_state"]["shared"]
    assert shown["global_state"]["shared"] == stored["global_state"]["shared"]


# -- F13: the database is down, Redis is up --------------------------------------------------------------------------------


@finding("history-F13")
async def test_allergies_outlive_the_database(valkey_url, redis):
    """While the database is down, allergies that are in Redis are in the history."""
    shared_server()  # Skips where there is no PostgreSQL.
    with PostgresServer() as postgres:
        url = postgres.url("redline")
        # Long enough for a busy machine.
        cache = RedisSessions(valkey_url, options=RedisOptions(timeout_s=10))
        async with Memory.open(url, sessions=cache, embedder="none") as memory:
            app = AgentApp(memory)
            await talk(app, 1)
            session = await app.get_short_memory("c")
            session.user_snapshot.allergies = ["青霉素"]
            await app.set_short_memory("c", session)
            await app.get_short_memory("c")
            postgres.stop("QUIT")
            stored = await redis.get(SESSION_KEY % "c")
            context = await app.query_memory_context(MemoryQueryRequest("c", query="我可以吃阿莫西林吗"))
    assert "青霉素" in stored
    assert "青霉素" in context.history
