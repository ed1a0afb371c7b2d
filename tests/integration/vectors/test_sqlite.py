"""Vectors in a SQLite file: several processes, bounded memory, kill -9."""

import multiprocessing
import time

import apsw
import numpy as np
import pytest

from pagefile.ports import EmbeddingModel, SinceRequest, VectorRow
from pagefile.records import Scope
from pagefile.stores import StoreOptions, open_store
from pagefile.stores.sqlite.vectors import Blocks
from pagefile.testing.contracts.vectors import MODEL, said, seqs, vector
from pagefile.testing.drafts import AT, CHAT, done

from . import putting

#: Each writer is a process of its own, forked from one that has everything imported.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([putting.__name__])
NORMAL = StoreOptions(synchronous="normal")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path, clock):
    store = await open_store(f"sqlite:///{path}", clock=clock, options=NORMAL)
    yield store
    await store.close()


@pytest.fixture
async def other(path, store, clock):
    """The same file as another process has it."""
    other = await open_store(f"sqlite:///{path}", clock=clock, options=NORMAL)
    yield other
    await other.close()


async def test_what_another_process_does_is_seen(store, other):
    """New vectors, replaced ones, erased ones, another conversation, one that went with the log; nothing of nobody's."""
    mine, theirs = store.vectors(), other.vectors()
    user, query = Scope("tenant", "ada"), vector(1, 0, 0, 0)
    await theirs.put(MODEL, [await said(other, CHAT, seq, (1, seq, 0, 0)) for seq in (1, 2, 3)])
    assert [1, 2, 3] == seqs(await mine.search(MODEL, user, query, 10))
    await theirs.put(MODEL, [VectorRow(CHAT, 3, "turn-3", AT, vector(1, 0, 0, 0))])
    assert [3, 1, 2] == seqs(await mine.search(MODEL, user, query, 10))
    await theirs.put(MODEL, [VectorRow(CHAT, 3, "turn-3", AT, vector(0, 0, 0, 0))])
    assert [1, 2] == seqs(await mine.search(MODEL, user, query, 10))

    nobodys = Scope("tenant", None, "nobody's")
    await theirs.put(MODEL, [await said(other, nobodys, 1, (1, 0, 0, 0))])
    assert ["chat", "chat"] == [near.conversation for near in await mine.search(MODEL, user, query, 10)]
    late = Scope("tenant", "ada", "late")
    await theirs.put(MODEL, [await said(other, late, 1, (1, 0, 0, 0))])
    found = await mine.search(MODEL, user, query, 10)
    assert ["late", "chat", "chat"] == [near.conversation for near in found]

    await theirs.erase(CHAT)
    assert ["late"] == [near.conversation for near in await mine.search(MODEL, user, query, 10)]
    await other.erase(user)
    assert [] == await mine.search(MODEL, user, query, 10)
    assert 1 == (await mine.collections())[0].vectors
    await other.erase(nobodys)
    assert 0 == (await mine.collections())[0].vectors


async def test_what_comes_back_under_the_same_name_is_another(store):
    """A conversation erased with the log takes its vectors along, also the ones a late writer brings."""
    index = store.vectors()
    row = await said(store, CHAT, 1, (1, 0, 0, 0))
    await index.put(MODEL, [row])
    assert [1] == seqs(await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10))
    await store.erase(CHAT)
    await index.put(MODEL, [row])
    await store.log.append(done("another", scope=CHAT))
    await index.put(MODEL, [row])
    assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)


async def test_vectors_are_half_precision_of_unit_length(store, path):
    """As its columns say, for any program to read."""
    await store.vectors().put(MODEL, [await said(store, CHAT, 1, (3, 4, 0, 0))])
    row = apsw.Connection(str(path)).execute("SELECT * FROM conversation_episodes").get
    place, turn, conversation, tenant, seq, user, model, blob, created = row
    assert (1, "turn-1", "chat", "tenant", 1, "ada", MODEL.key) == (
        place,
        turn,
        conversation,
        tenant,
        seq,
        user,
        model,
    )
    assert pytest.approx([0.6, 0.8, 0, 0], abs=1e-3) == np.frombuffer(blob, "<f2").tolist()
    assert int(AT.timestamp()) == created


async def test_memory_is_bounded(store):
    """The longest unused are let go of, and read again when they are asked for."""
    model = EmbeddingModel("wide", 1000)
    index = store.vectors(cache_bytes=800_000)
    for user in range(8):
        scope = Scope("t", f"user-{user}", f"chat-{user}")
        await store.log.append(done("turn-1", scope=scope))
        await index.put(model, [VectorRow(scope, 1, "turn-1", AT, np.ones(1000, np.float32))])
    for _ in range(2):
        for user in range(8):
            found = await index.search(model, Scope("t", f"user-{user}"), np.ones(1000, np.float32), 3)
            assert [f"chat-{user}"] == [near.conversation for near in found]
            assert (await index.describe())["cached"] <= 4


def test_the_longest_unused_goes_first():
    """Not the oldest."""
    blocks = Blocks(most_bytes=2 * Blocks(0).of(("m", "t", "a", None), 8).bytes)
    for user in "abac":
        blocks.of(("m", "t", user, None), 8)
    kept = blocks.of(("m", "t", "a", None), 8)
    blocks.trim()
    assert 2 == len(blocks)
    assert kept is blocks.of(("m", "t", "a", None), 8)


def test_one_that_is_too_large_stays_while_it_is_used():
    """To let go of it would read all of it again for every question, and take as much memory each time."""
    blocks = Blocks(most_bytes=1)
    first = blocks.of(("m", "t", "a", None), 8)
    blocks.trim()
    assert first is blocks.of(("m", "t", "a", None), 8)
    second = blocks.of(("m", "t", "b", None), 8)
    blocks.trim()
    assert 1 == len(blocks)
    assert second is blocks.of(("m", "t", "b", None), 8)


def test_without_a_cache_nothing_stays():
    """Zero bytes are none."""
    blocks = Blocks(most_bytes=0)
    blocks.of(("m", "t", "a", None), 8)
    blocks.trim()
    assert not len(blocks)


async def test_many_rows_and_many_searches_at_once(store):
    """Blocks grow under searches that run; a conversation is picked out of its owner's block."""
    index = store.vectors()
    await index.put(MODEL, [])
    rows = [await said(store, CHAT, seq, (1, seq % 7, seq % 5, 1)) for seq in range(1, 301)]
    aside = Scope("tenant", "ada", "aside")
    await index.put(MODEL, [await said(store, aside, 1, (1, 0, 0, 0))])
    for start in range(0, 300, 50):
        await index.put(MODEL, rows[start : start + 50])
        assert start + 51 == len(await index.search(MODEL, Scope("tenant", "ada"), vector(1, 1, 1, 1), 1000))
        assert start + 50 == len(await index.search(MODEL, CHAT, vector(1, 1, 1, 1), 1000))
        assert 1 == len(await index.search(MODEL, aside, vector(1, 1, 1, 1), 1000))
    assert 301 == len(await index.search(MODEL, Scope("tenant"), vector(1, 1, 1, 1), 1000))


@pytest.mark.slow
@pytest.mark.waits
async def test_kill_9_leaves_whole_vectors(path):
    """What was acknowledged is there, nothing is torn or there twice, and putting goes on where it stopped."""
    turns = 60
    store = await open_store(f"sqlite:///{path}", options=NORMAL)
    for number in range(turns):
        await store.log.append(done(f"turn-{number}", scope=Scope("tenant", "ada", f"chat-{number % 3}")))
    await store.close()
    for kill in range(8):
        receiver, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=putting.put, args=(str(path), sender), daemon=True)
        process.start()
        sender.close()
        acknowledged = receiver.recv()
        time.sleep(0.003 * kill)
        process.kill()
        process.join()
        receiver.close()
        await check_whole(path, acknowledged)
    store = await open_store(f"sqlite:///{path}", options=NORMAL)
    index = store.vectors()
    everything = await store.source.since(SinceRequest(putting.USER, {}, 1000))
    for _ in range(2):
        await index.put(putting.MODEL, [putting.row_of(turn) for turn in everything])
        assert [turns] == [collection.vectors for collection in await index.collections()]
    await store.close()


async def check_whole(path, acknowledged):
    store = await open_store(f"sqlite:///{path}", options=NORMAL)
    index = store.vectors()
    found = await index.search(putting.MODEL, putting.USER, putting.vector_of("turn-1"), 1000)
    ids = [near.turn_id for near in found]
    assert set(acknowledged) <= set(ids)
    assert len(set(ids)) == len(ids)
    for turn_id in ids:
        best, *_ = await index.search(putting.MODEL, putting.USER, putting.vector_of(turn_id), 1)
        assert turn_id == best.turn_id
        assert pytest.approx(1, abs=2e-3) == best.similarity
    await store.close()
