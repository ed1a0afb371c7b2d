"""Many write to one conversation at once, from several processes; other conversations do not notice."""

import multiprocessing

import anyio
import asyncpg
import pytest

from pagefile import Memory
from pagefile.standalone import AgentApp
from pagefile.stores.postgres.address import Place
from tests.waiting import PATIENCE_S

from .talking import CONVERSATION, ask, say, write

TURNS, WRITERS = 50, 4
#: Each writer is a process of its own, forked from one that has everything imported.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [write.__module__, "pagefile.stores.postgres.store", "pagefile.stores.redis"]
)


@pytest.mark.slow
async def test_fifty_turns_of_four_processes(url, valkey):
    """None is lost and none counted twice; the places are 1 … 50."""
    async with Memory.open(url, sessions=valkey.url) as memory:
        together = PROCESSES.Barrier(WRITERS)
        shares = [range(first, TURNS, WRITERS) for first in range(WRITERS)]
        writers = [
            PROCESSES.Process(target=write, args=(url, valkey.url, share, together), daemon=True)
            for share in shares
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            await anyio.to_thread.run_sync(writer.join, 60)
            assert 0 == writer.exitcode
        app = AgentApp(memory)
        assert TURNS == (await app.get_short_memory(CONVERSATION)).flow_context.turn_count
        turns = await memory.conversation(CONVERSATION).turns(limit=1000)
        assert list(range(1, TURNS + 1)) == [turn.seq for turn in turns]
        assert {f"问{number}" for number in range(TURNS)} == {turn.user for turn in turns}
        shown = [line for line in (await ask(app)).full_history.split("\n") if line.startswith("用户: ")]
        assert [f"用户: {turn.user}" for turn in turns] == shown


@pytest.mark.waits
async def test_a_conversation_that_is_held_up_holds_up_no_other(url, valkey):
    """While somebody's transaction has locked one conversation, others are written and read; then its turn is there too."""
    place = Place.of(url)
    async with Memory.open(url, sessions=valkey.url) as memory:
        app = AgentApp(memory)
        await say(app, 1)
        locker = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}"'})
        async with anyio.create_task_group() as group:
            lock = locker.transaction()
            await lock.start()
            await locker.execute(
                "SELECT 1 FROM conversations WHERE conversation_id = $1 FOR UPDATE", CONVERSATION
            )
            group.start_soon(say, app, 2)
            with anyio.fail_after(PATIENCE_S):
                for number in range(5):
                    await say(app, number, "another")
                assert 10 == len((await ask(app, "another")).history.split("\n"))
                assert ["用户: 问1", "AI: 答1"] == (await ask(app)).history.split("\n")
            await lock.rollback()
        await locker.close()
        assert ["用户: 问1", "AI: 答1", "用户: 问2", "AI: 答2"] == (await ask(app)).history.split("\n")
