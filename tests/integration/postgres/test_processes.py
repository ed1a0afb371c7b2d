"""Many processes write at once, and some of them die."""

import multiprocessing
import random
import time
from itertools import pairwise

import anyio
import pytest

from pagefile.ports import EntryQuery, ViewRequest
from pagefile.records import Scope
from pagefile.testing.drafts import done, view
from tests.waiting import PATIENCE_S, until

from .writer_process import CHAT, draft, write

KILLS = 10
#: Each writer is a process of its own, forked from one that has everything imported.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([write.__module__, "pagefile.stores.postgres.store"])


def started(url, name, count, at_once=1):
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=write, args=(url, name, count, at_once, sender), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def received(receiver):
    """Every name that was sent; the last one may have been cut off."""
    names = set()
    try:
        while True:
            names.add(receiver.recv())
    except EOFError:
        receiver.close()
    return names


async def served(plain):
    """Whom the server serves, by its processes."""
    rows = await plain.fetch("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
    return {row["pid"] for row in rows}


async def all_gone(plain, but):
    return await served(plain) <= but


async def check(store, acknowledged):
    """Nothing is lost, torn or there twice; no place is empty, and every counter is right."""
    entries = await store.reader.entries(EntryQuery(CHAT, limit=1_000_000))
    ids = [entry.id for entry in entries]
    assert acknowledged <= set(ids), "an acknowledged turn is lost"
    assert len(ids) == len(set(ids)), "a turn is there twice"
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert all(early.created < late.created for early, late in pairwise(entries))
    for entry in entries:
        whole = draft(entry.id)
        said = (entry.user, entry.assistant, entry.steps)
        assert said == (whole.user, whole.assistant, whole.steps), "torn"
    head = (await store.reader.view(ViewRequest(CHAT, 0, 0))).head
    assert (head.turns, head.live_turns, head.live_tokens) == (len(ids), len(ids), 3 * len(ids))
    if ids:
        assert (await store.sessions.get(CHAT))["flow_context"]["turn_count"] == len(ids)
    return ids


@pytest.mark.slow
@pytest.mark.waits
async def test_four_processes_write_one_conversation(url, store):
    """Each of them several turns at once: 1 … N without a gap, and time rises with the places."""
    writers = [started(url, f"p{number}", 30, at_once=5) for number in range(4)]
    acknowledged = set()
    for process, receiver in writers:
        acknowledged |= received(receiver)
        process.join(timeout=60)
        assert process.exitcode == 0
    assert len(acknowledged) == len(await check(store, acknowledged)) == 120


@pytest.mark.slow
@pytest.mark.waits
async def test_acknowledged_turns_survive_kill_9(url, store, plain):
    """Killed ten times at any moment: what was acknowledged is there, whole and once, and the next writer goes on."""
    dice = random.Random(20260209)
    acknowledged = set()
    for round_ in range(KILLS):
        others = await served(plain)
        process, receiver = started(url, f"r{round_}", 1_000_000, at_once=1 + round_ % 3)
        if round_ % 5:
            # Most kills hit the stream of writes, some the opening.
            acknowledged.add(receiver.recv())
        time.sleep(dice.uniform(0, 0.05))
        process.kill()
        process.join()
        process.close()
        acknowledged |= received(receiver)
        # The server may still commit what a process asked for that was killed.
        await until(lambda others=others: all_gone(plain, others))
        await check(store, acknowledged)
    assert len(acknowledged) > KILLS


@pytest.mark.slow
@pytest.mark.waits
async def test_processes_may_open_a_new_database_at_once(url):
    """One makes the tables, the others wait for it."""
    writers = [started(url, f"p{number}", 1) for number in range(4)]
    for process, receiver in writers:
        assert len(received(receiver)) == 1
        process.join(timeout=60)
        assert process.exitcode == 0


@pytest.mark.waits
async def test_conversations_do_not_wait_for_each_other(store, plain):
    """While a transaction holds one conversation, another is written and both are read."""
    other = Scope("tenant", "ada", "else")
    await store.log.append(done("a"))
    await store.log.append(done("b", scope=other))
    async with plain.transaction():
        await plain.execute("SELECT 1 FROM conversations WHERE conversation_id = 'chat' FOR UPDATE")
        with anyio.fail_after(PATIENCE_S):
            assert (await store.log.append(done("c", scope=other))).seq == 2
            assert (await store.reader.view(view())).head.last_seq == 1
        async with anyio.create_task_group() as group:
            group.start_soon(store.log.append, done("d"))
            await until(lambda: plain.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            group.cancel_scope.cancel()
        assert (await store.reader.view(view())).head.last_seq == 1
    # Whoever stopped waiting does not know whether the turn was written; the places have no gap either way.
    await store.log.append(done("e"))
    entries = await store.reader.entries(EntryQuery(CHAT))
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
