"""The store of `memory://`: a database of its own, in the process alone."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pagefile.errors import ConflictError
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from pagefile.testing.drafts import CHAT, done, view


async def test_two_stores_share_nothing():
    """Each begins empty, whatever another one of the process holds."""
    first, second = InMemoryStore(FakeClock()), InMemoryStore(FakeClock())
    await first.log.append(done("a"))
    assert () == (await second.reader.view(view())).turns


async def test_a_write_that_fails_leaves_nothing():
    """Like everywhere: all of a verb or nothing."""
    store = InMemoryStore(FakeClock())
    await store.log.append(done("a", user="first"))
    before = await store.reader.view(view())
    with pytest.raises(ConflictError):
        await store.log.append(done("a", user="second"))
    assert before == await store.reader.view(view())


def test_event_loops_of_several_threads_may_share_a_store():
    """As they could when it was a dict: every turn gets its place."""
    store = InMemoryStore(FakeClock())

    def write(thread):
        async def turns():
            for number in range(20):
                await store.log.append(done(f"{thread}-{number}"))

        asyncio.run(turns())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    turns = asyncio.run(store.reader.view(view())).turns
    assert list(range(1, 81)) == [turn.seq for turn in turns]
    assert {CHAT} == {turn.scope for turn in turns}
