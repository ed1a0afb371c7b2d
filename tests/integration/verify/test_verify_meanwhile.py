"""Verify beside others: writers, a session cache, a store that cannot be looked into."""

from itertools import count

import anyio
import apsw
import pytest

from pagefile import Memory, SettingsError
from pagefile.engine.verification import verify
from pagefile.records import Scope
from pagefile.stores import head_version
from tests.servers.valkey import ValkeyServer
from tests.waiting import until

from .damage import LOOKING, SETTINGS, opened


@pytest.mark.waits
async def test_turns_that_come_in_meanwhile_are_no_damage(tmp_path):
    """A conversation that grows while it is read is read again; nothing wrong is ever told."""
    url = f"sqlite:///{tmp_path}/a.db"
    written = 0
    reports = []
    async with opened(url) as memory, opened(url) as other, anyio.create_task_group() as writing:

        async def write():
            nonlocal written
            for written in count(1):
                chat = other.conversation(f"c{written % 3}", user_id="u")
                await chat.record(f"turn {written}", "yes")
                if written % 20 == 19:
                    await chat.checkpoint(f"summary {written}", recent_turns=1)

        writing.start_soon(write)
        await until(lambda: written > 3)
        while len(reports) < 6:
            before = written
            report = await verify(memory.engine, repair=True)
            assert report.findings == ()
            # Only those count beside which something was written.
            if written > before:
                reports.append(report)
        writing.cancel_scope.cancel()
    assert all(report.checked["turns"] > 0 for report in reports)


@pytest.mark.slow
async def test_a_cache_that_holds_something_else_is_emptied(tmp_path):
    """Only what is of the present version counts; after a repair the database's own value is read."""
    url = f"sqlite:///{tmp_path}/a.db"
    with ValkeyServer() as server:
        async with Memory.open(url, settings=LOOKING, sessions=server.url) as memory:
            engine = memory.engine
            await memory.conversation("c", user_id="u").record("hello", "hi")
            scope = Scope("default", "u", "c")
            value = await engine.sessions.get(scope)
            assert (await verify(engine)).findings == ()
            (head,) = await memory.conversations(user_id="u")
            version = head_version(head)
            await engine.cache.drop(scope)
            assert await engine.cache.put(scope, {**value, "own": "stale"}, version=version)
            (found,) = (await verify(engine)).findings
            assert (found.level, found.kind, found.conversation) == ("derived", "session-cache", "c")
            assert (await verify(engine, repair=True)).whole
            assert await engine.sessions.get(scope) == value
            await engine.cache.drop(scope)
            assert await engine.cache.put(scope, {"own": "old"}, version=version - 1)
            assert (await verify(engine)).findings == ()


async def test_a_store_without_an_auditor_says_so():
    """Somebody's own store works without one."""
    async with opened("memory://") as memory:
        memory.engine.store.audit = None
        with pytest.raises(SettingsError, match="cannot be verified"):
            await verify(memory.engine)


async def test_an_empty_memory_is_whole():
    """There is nothing to be wrong."""
    async with opened("memory://") as memory:
        assert (await verify(memory.engine, full=True, repair=True)).whole


@pytest.mark.waits
async def test_a_fact_does_not_come_back_after_its_conversation_was_erased(tmp_path):
    """An extractor thinks for a while; what it read was erased meanwhile, and nothing of it is kept."""
    async with opened(f"sqlite:///{tmp_path}/a.db", SETTINGS) as memory:
        extractor = memory.engine.kit.extractor
        reading, erased, extract = anyio.Event(), anyio.Event(), extractor.extract

        async def slowly(said):
            reading.set()
            await erased.wait()
            return await extract(said)

        extractor.extract = slowly
        await memory.conversation("c", user_id="u").record("我对青霉素过敏。", "好")
        async with anyio.create_task_group() as together:
            together.start_soon(memory.engine.worker.lines["facts"].settle)
            await reading.wait()
            await memory.forget(conversation_id="c", user_id="u")
            await memory.conversation("c", user_id="v").record("somebody else starts over", "yes")
            erased.set()
        await memory.settle()
        assert await memory.facts(user_id="u") == []
        assert (await verify(memory.engine, full=True)).findings == ()


async def test_what_was_found_before_the_time_was_over_is_told(tmp_path):
    """`doctor` looks for five seconds: on a slow machine it called intact what it had just seen to be damaged."""
    url = f"sqlite:///{tmp_path}/a.db"
    async with opened(url) as memory:
        for name in ("a", "b", "c"):
            await memory.conversation(name, user_id="u").record("hello", "hi")
        connection = apsw.Connection(f"{tmp_path}/a.db")
        connection.execute("UPDATE ai_message SET query = 'bye' WHERE conversation_id = 'a'")
        connection.close()
        limit = anyio.CancelScope()

        def progress(done, _total):
            # At the rows of the second conversation.
            if done > 1:
                limit.cancel()

        report = await verify(memory.engine, progress=progress, within=limit)
        assert limit.cancelled_caught
        assert ["a"] == [one.conversation for one in report.findings if one.level == "damage"]
        assert report.checked["conversations"] < 3
