"""What was acknowledged survives kill -9, and many processes may write at once."""

import multiprocessing
import random
import time
from itertools import pairwise

import pytest

from pagefile.ports import EntryQuery, ViewRequest
from pagefile.stores import open_store

from .writer_process import CHAT, draft, write

KILLS = 50
#: Each writer is a process of its own, forked from one that has everything imported.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([write.__module__])


def started(path, name, count):
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=write, args=(str(path), name, count, sender), daemon=True)
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


async def log_of(path):
    store = await open_store(f"sqlite:///{path}")
    try:
        entries = await store.reader.entries(EntryQuery(CHAT, limit=1_000_000))
        head = (await store.reader.view(ViewRequest(CHAT, 0, 0))).head
        session = await store.sessions.get(CHAT)
    finally:
        await store.close()
    return entries, head, session


def check(entries, head, session, acknowledged):
    ids = [entry.id for entry in entries]
    assert acknowledged <= set(ids), "an acknowledged turn is lost"
    assert len(ids) == len(set(ids)), "a turn is there twice"
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert all(early.created < late.created for early, late in pairwise(entries))
    for entry in entries:
        whole = draft(entry.id)
        assert (entry.user, entry.assistant, entry.steps) == (whole.user, whole.assistant, whole.steps), (
            "torn"
        )
    assert (head.turns, head.live_turns, head.live_tokens) == (len(ids), len(ids), 3 * len(ids))
    if ids:
        assert session["flow_context"]["turn_count"] == len(ids)


@pytest.mark.slow
@pytest.mark.waits
async def test_acknowledged_turns_survive_kill_9(path):
    """Killed fifty times at any moment: nothing acknowledged is lost, nothing is torn, nothing is there twice."""
    dice = random.Random(20260209)
    acknowledged = set()
    for round_ in range(KILLS):
        process, receiver = started(path, f"r{round_}", 1_000_000)
        if round_ % 5:
            # Most kills hit the stream of writes, some the opening of the file.
            acknowledged.add(receiver.recv())
        time.sleep(dice.uniform(0, 0.05))
        process.kill()
        process.join()
        process.close()
        acknowledged |= received(receiver)
        check(*await log_of(path), acknowledged)
    assert len(acknowledged) > KILLS


@pytest.mark.slow
@pytest.mark.waits
async def test_four_processes_write_one_conversation(path):
    """No turn is lost, no place is empty or taken twice, and time rises with the places."""
    writers = [started(path, f"p{number}", 60) for number in range(4)]
    acknowledged = set()
    for process, receiver in writers:
        acknowledged |= received(receiver)
        process.join(timeout=60)
        assert process.exitcode == 0
    entries, head, session = await log_of(path)
    assert len(acknowledged) == len(entries) == 240
    check(entries, head, session, acknowledged)
    for number in range(4):
        mine = [entry.id for entry in entries if entry.id.startswith(f"p{number}-")]
        assert mine == [f"p{number}-{turn}" for turn in range(60)]
