"""Checkpoints and resets."""

import anyio
import pytest

from pagefile.errors import ConflictError
from pagefile.ports import Store
from pagefile.records import CHECKPOINT_QUERY, Checkpoint, Reset
from pagefile.testing.contracts.base import Contract, everything, head_of, refused, write
from pagefile.testing.drafts import aborted, checkpoint, done, opened, reset, view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import CHAT


class MarkerContract(Contract):
    """`TurnLog.mark`."""

    async def test_a_checkpoint_says_what_it_covers(self, store: Store, clock: FakeClock) -> None:
        """It counts the done turns it covers and has its own position in the log."""
        await write(store, done("a"), done("b"), opened("c"), aborted("c"), done("d"))
        clock.advance(1)
        entry = await store.log.mark(checkpoint("k", 3))
        assert entry == Checkpoint(
            id="k",
            scope=CHAT,
            seq=5,
            version=1,
            summary="what was said",
            covered_through_seq=3,
            covered_turns=2,
            created=clock.now(),
            tokens=7,
            counter="test",
            anchors=("42 mg",),
            archive_refs=("page-1",),
        )
        assert (await everything(store))[-1] == entry
        assert (await store.reader.view(view())).checkpoint == entry

    async def test_counters_follow_the_checkpoint(self, store: Store) -> None:
        """Covered turns are no longer live; turns written later are."""
        await write(store, *map(done, "abc"), checkpoint("k", 2))
        head = await head_of(store)
        assert (head.turns, head.live_turns, head.live_tokens, head.covered_through_seq) == (3, 1, 10, 2)
        await write(store, done("d"))
        assert ((head := await head_of(store)).turns, head.live_turns, head.live_tokens) == (4, 2, 20)

    async def test_versions_count_one_by_one(self, store: Store) -> None:
        """Each checkpoint builds on the newest; all of them stay in the log."""
        await write(store, *map(done, "abc"), checkpoint("k1", 1, summary="one"))
        await store.log.mark(checkpoint("k2", 1, 1, summary="one, said better"))
        await store.log.mark(checkpoint("k3", 3, 2, summary="two"))
        found = [entry for entry in await everything(store) if isinstance(entry, Checkpoint)]
        assert [(entry.version, entry.summary, entry.covered_turns) for entry in found] == [
            (1, "one", 1),
            (2, "one, said better", 1),
            (3, "two", 3),
        ]
        assert (await store.reader.view(view())).checkpoint == found[-1]

    @pytest.mark.parametrize(
        ("covered", "version"),
        [(2, 0), (2, 2), (1, 1), (5, 1), (0, 1)],
        ids=["old", "new", "less", "more", "none"],
    )
    async def test_a_checkpoint_out_of_date_conflicts(self, store: Store, covered: int, version: int) -> None:
        """Based on another version, covering less than the newest or more than exists: `ConflictError`."""
        await write(store, *map(done, "abc"), checkpoint("k", 2))
        before, log = await head_of(store), await everything(store)
        await refused(ConflictError, store.log.mark(checkpoint("k2", covered, version)))
        assert (await head_of(store), await everything(store)) == (before, log)

    async def test_a_checkpoint_of_nothing_conflicts(self, store: Store) -> None:
        """An empty conversation has nothing to cover."""
        await refused(ConflictError, store.log.mark(checkpoint("k", 0)))
        assert not (await head_of(store)).exists

    async def test_a_checkpoint_from_before_the_reset_conflicts(self, store: Store) -> None:
        """One that covers only what was reset comes too late."""
        await write(store, done("a"), done("b"), reset("r"), done("c"))
        await refused(ConflictError, store.log.mark(checkpoint("k", 2)))
        entry = await store.log.mark(checkpoint("k", 4))
        assert isinstance(entry, Checkpoint)
        assert entry.covered_turns == 1

    async def test_a_reset_empties_the_window_and_keeps_the_log(self, store: Store, clock: FakeClock) -> None:
        """Earlier turns stay in the log and leave the window."""
        await write(store, done("a"), done("b"))
        entry = await store.log.mark(reset("r"))
        assert entry == Reset("r", CHAT, 3, entry.created)
        head = await head_of(store)
        assert (head.reset_seq, head.turns, head.live_turns, head.live_tokens) == (3, 0, 0, 0)
        assert [item.id for item in await everything(store)] == ["a", "b", "r"]
        await write(store, done("c"))
        assert [turn.id for turn in (await store.reader.view(view())).turns] == ["c"]

    async def test_a_reset_forgets_the_checkpoint_and_the_version_goes_on(self, store: Store) -> None:
        """The next checkpoint builds on none, and its version still increases."""
        await write(store, done("a"), checkpoint("k1", 1), reset("r"))
        seen = await store.reader.view(view())
        assert (seen.checkpoint, seen.head.covered_through_seq) == (None, 0)
        await write(store, done("b"))
        entry = await store.log.mark(checkpoint("k2", 4))
        assert isinstance(entry, Checkpoint)
        assert entry.version == 2

    async def test_the_same_marker_twice_is_stored_once(self, store: Store) -> None:
        """A marker with the same id and contents returns what is stored; a taken id conflicts."""
        await write(store, done("a"))
        mark, anew = await store.log.mark(checkpoint("k", 1)), await store.log.mark(reset("r"))
        assert await store.log.mark(checkpoint("k", 1)) == mark
        assert await store.log.mark(reset("r")) == anew
        for taken in (reset("a"), reset("k"), checkpoint("a", 1), checkpoint("k", 1, summary="else")):
            await refused(ConflictError, store.log.mark(taken))
        await refused(ConflictError, store.log.append(done("k", CHECKPOINT_QUERY, "历史摘要: what was said")))
        assert len(await everything(store)) == 3

    async def test_a_conversation_may_begin_with_a_reset(self, store: Store) -> None:
        """A reset is a write like any other."""
        assert (await store.log.mark(reset("r"))).seq == 1
        assert (await head_of(store)).exists

    async def test_a_reset_that_meets_an_erasure_is_before_or_after_it(self, store: Store) -> None:
        """It is erased too, or begins the conversation again: there is never an entry without a conversation."""
        for _ in range(10):
            await write(store, done("a"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.erase, CHAT)
                tasks.start_soon(store.log.mark, reset("r"))
            there = ["reset"] if (await head_of(store)).exists else []
            assert there == ["reset" for entry in await everything(store) if isinstance(entry, Reset)]
            # An uncounted entry would already hold this position.
            assert len(there) + 1 == (await store.log.append(done("b"))).seq
            await store.erase(CHAT)
