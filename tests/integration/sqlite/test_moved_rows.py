"""SQLite moves rows between its pages and leaves what they were where they were: nothing of them outlasts an erasure."""

import re
from random import Random
from time import monotonic, sleep

import pytest
from anyio import CancelScope

from pagefile import Memory
from pagefile.records import Scope
from pagefile.stores.sqlite import store as sqlite_store
from tests.findings.security.looking import PLAIN, files_with

pytestmark = pytest.mark.anyio
#: One that leaves copies behind: which rows are moved depends on the sizes of all of them.
SEED = 7
USERS = [f"user{number:02}-of-moved-rows" for number in range(40)]


async def interleaved(memory, chance):
    """Short turns of many users, one beside the other in the file."""
    for number in range(12):
        for user in chance.sample(USERS, len(USERS)):
            words = " ".join(f"{user} says" for _ in range(chance.randrange(1, 20)))
            await memory.conversation(f"of {user}", user_id=user).record(words, words, id=f"{number} {user}")


async def erased(memory, chance):
    """Half of them; whoever goes later was moved when others went."""
    gone = chance.sample(USERS, 20)
    return gone, [await memory.engine.erase(Scope("default", user)) for user in gone]


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_left_of_rows_that_were_moved(tmp_path, seed):
    chance = Random(seed)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await interleaved(memory, chance)
        gone, receipts = await erased(memory, chance)
        assert {()} == {receipt.pending for receipt in receipts}
        assert [] == [user for user in gone if files_with(tmp_path, user)]
    assert [] == [user for user in gone if files_with(tmp_path, user)]


async def test_a_file_that_is_too_large_to_rewrite_is_told(tmp_path, monkeypatch):
    """The receipt says what is left, and the command that it names removes it."""
    monkeypatch.setattr(sqlite_store, "REWRITTEN_BYTES", 2**10)
    chance = Random(SEED)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await interleaved(memory, chance)
        gone, receipts = await erased(memory, chance)
        assert {(sqlite_store.MOVED,)} == {receipt.pending for receipt in receipts}
        assert [] != [user for user in gone if files_with(tmp_path, user)]
        receipt = await memory.engine.erase(Scope("default", gone[0]), scrub=True)
        assert () == receipt.pending
    assert [] == [user for user in gone if files_with(tmp_path, user)]


async def test_writers_do_not_wait_for_somebody_who_erases_again_and_again(tmp_path, monkeypatch):
    """The file is rewritten in two hundredths of the time, after half a second at once; what was put off is done when it is closed."""
    took: list[float] = []

    def slow(place, rewrite=sqlite_store.rewrite):
        took.append(0.2)
        sleep(took[-1])
        rewrite(place)

    monkeypatch.setattr(sqlite_store, "rewrite", slow)
    chance = Random(SEED)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await interleaved(memory, chance)
        began = monotonic()
        receipts = [await memory.engine.erase(Scope("default", user)) for user in USERS[:20]]
        told = re.fullmatch(
            re.escape(sqlite_store.MOVED_YET).replace(r"\{seconds\}", r"(\d+)"), *receipts[-1].pending
        )
        # From 0.1 s too much, to all that was taken beyond half a second.
        assert told
        assert 1 <= int(told[1]) <= 1 + (sum(took) - 0.5) / 0.02 + 10
        assert sum(took) <= 0.5 + 2 * 0.2 + 0.02 * (monotonic() - began)
    assert [] == [user for user in USERS[:20] if files_with(tmp_path, user)]


async def test_many_erasures_that_are_cancelled_leave_nothing_either(tmp_path):
    """The file is rewritten after the last of them."""
    chance = Random(SEED)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await interleaved(memory, chance)
        with CancelScope() as scope:
            async with memory.engine.store.many_erasures():
                gone, _ = await erased(memory, chance)
                assert [] != [user for user in gone if files_with(tmp_path, user)]
                scope.cancel()
        assert [] == [user for user in gone if files_with(tmp_path, user)]


async def test_what_remains_after_many_erasures_is_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sqlite_store, "REWRITTEN_BYTES", 2**10)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        await memory.conversation("of ada", user_id="ada").record("hello", "there")
        async with memory.engine.store.many_erasures():
            await memory.engine.erase(Scope("default", "ada"))
    assert f"after 1 erasure(s) something may remain: {sqlite_store.MOVED}" in caplog.text
