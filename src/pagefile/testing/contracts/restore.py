"""Restoring a conversation."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import anyio

from pagefile.errors import ConflictError, ErasedError, InvalidArgumentError
from pagefile.ports import Labels, Store, labels_of
from pagefile.records import Entry, JsonObject, Scope, utc
from pagefile.testing.contracts.base import Contract, everything, head_of, refused, session_of, write
from pagefile.testing.drafts import aborted, checkpoint, done, opened, reset, step, view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, CHAT

COPY = Scope("copy", "ada", "chat")


async def mixed_entries(store: Store, clock: FakeClock) -> list[Entry]:
    """A conversation with entries of every kind."""
    await write(store, done("a", steps=[step()], metadata={"n": 1}), done("b"), checkpoint("k1", 1))
    await store.log.mark(reset("r"))
    clock.advance(5)
    await write(store, done("c", tokens=21), opened("x"), aborted("x"), done("d", tokens=34))
    await write(store, checkpoint("k2", 5), opened("y"))
    return await everything(store)


def copied(entries: list[Entry]) -> list[Entry]:
    """The same entries in another tenant."""
    return [replace(entry, scope=COPY) for entry in entries]


class RestoreContract(Contract):
    """`TurnLog.restore`."""

    async def test_into_an_empty_conversation_everything_is_as_it_was(
        self, store: Store, clock: FakeClock
    ) -> None:
        """Entries keep `seq` and `created`; counters, checkpoint and session follow from them."""
        original = await mixed_entries(store, clock)
        clock.advance(86_400)
        assert await store.log.restore(copied(original)) == len(original)
        assert await everything(store, COPY) == copied(original)
        old, new = await store.reader.view(view()), await store.reader.view(view(scope=COPY))
        assert [turn.id for turn in new.turns] == [turn.id for turn in old.turns] == ["d"]
        made: Any = new.checkpoint
        assert (made.id, made.version, made.covered_turns) == ("k2", 2, 1)
        head = replace(new.head, scope=CHAT, created=old.head.created, updated=old.head.updated)
        assert head == old.head
        assert await store.sessions.get(COPY) == await store.sessions.get(CHAT)

    async def test_an_empty_conversation_gets_its_agent_and_its_session(
        self, store: Store, clock: FakeClock
    ) -> None:
        """Exactly as given, and the conversation continues from there; times are still those of the entries."""
        original = copied(await mixed_entries(store, clock))
        value: JsonObject = {"own": ["甲", 1.5, None], "user_snapshot": {"allergies": ["青霉素"]}}
        clock.advance(86_400)
        labels = Labels("alpha", "en", "UTC")
        new = await store.log.restore(original, agent="triage", session=value, labels=labels)
        assert new == len(original)
        assert labels_of(await head_of(store, COPY)) == labels
        assert await store.sessions.get(COPY) == value
        seen = await store.reader.view(view(scope=COPY))
        assert (seen.head.agent, seen.profile) == ("triage", value["user_snapshot"])
        assert seen.head.updated == max(entry.created for entry in original)
        await store.log.append(done("e", scope=COPY))
        assert (await session_of(store, COPY))["own"] == value["own"]

    async def test_a_session_that_is_there_stays(self, store: Store, clock: FakeClock) -> None:
        """Put by an application or made by turns: the one that comes with the entries is ignored."""
        original = copied(await mixed_entries(store, clock))
        await store.sessions.put(COPY, {"own": 1})
        await store.log.restore(original, agent="triage", session={"own": 2})
        found = await session_of(store, COPY)
        assert found["own"] == 1
        assert await store.log.restore(original, agent="other", session={"own": 3}) == 0
        assert await store.sessions.get(COPY) == found
        assert (await head_of(store, COPY)).agent == "triage"

    async def test_life_goes_on_after_restoring(self, store: Store, clock: FakeClock) -> None:
        """The next turn takes the next position, with a later time than all before it."""
        original = await mixed_entries(store, clock)
        clock.advance(-86_400)
        await store.log.restore(copied(original))
        turn = await store.log.append(done("e", scope=COPY))
        assert turn.seq == 9
        assert turn.created > max(entry.created for entry in original if entry.seq is not None)

    async def test_the_hour_that_a_clock_change_repeats_is_two_hours(self, store: Store) -> None:
        """Two times that differ only in `fold` are equal in Python, and an hour apart."""
        first = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        times = [first, first.replace(fold=1)]
        turns = [await store.log.append(done(turn_id)) for turn_id in ("a", "b")]
        restored = [replace(turn, scope=COPY, at=at) for turn, at in zip(turns, times, strict=True)]
        await store.log.restore(restored)
        found = (await store.reader.view(view(scope=COPY))).turns
        assert [utc(turn.at) for turn in found] == [utc(at) for at in times]
        assert found[1].at - found[0].at == timedelta(hours=1)

    async def test_restoring_twice_is_restoring_once(self, store: Store, clock: FakeClock) -> None:
        """The second time nothing is new."""
        original = copied(await mixed_entries(store, clock))
        await store.log.restore(original)
        before = await head_of(store, COPY)
        assert await store.log.restore(original) == 0
        assert await everything(store, COPY) == original
        assert await head_of(store, COPY) == before
        assert await store.log.restore([]) == 0

    async def test_into_a_conversation_with_entries_new_turns_are_appended(
        self, store: Store, clock: FakeClock
    ) -> None:
        """Turns with new ids take the next positions; markers are left out."""
        original = copied(await mixed_entries(store, clock))
        await write(store, done("a", steps=[step()], scope=COPY), done("z", scope=COPY))
        assert await store.log.restore(original) == 5
        entries = await everything(store, COPY)
        places = [(entry.id, entry.seq) for entry in entries]
        assert places == [("a", 1), ("z", 2), ("b", 3), ("c", 4), ("x", 5), ("d", 6), ("y", None)]
        ended = [entry.created for entry in entries if entry.seq is not None]
        assert ended == sorted(set(ended))
        head = await head_of(store, COPY)
        assert (head.turns, head.live_tokens) == (5, 10 + 10 + 10 + 21 + 34)

    async def test_a_turn_with_another_text_conflicts(self, store: Store, clock: FakeClock) -> None:
        """It raises `ConflictError`, and nothing is written."""
        original = copied(await mixed_entries(store, clock))
        await store.log.append(done("d", "else", scope=COPY))
        before = await everything(store, COPY)
        await refused(ConflictError, store.log.restore(original))
        assert await everything(store, COPY) == before

    async def test_what_does_not_belong_together_is_refused(self, store: Store, clock: FakeClock) -> None:
        """Two conversations, a gap, a duplicate id, time going backwards: `InvalidArgumentError`, and nothing is written."""
        original = copied(await mixed_entries(store, clock))
        first = original[0]
        for entries in (
            [*original, replace(first, id="q", scope=CHAT)],
            original[1:],
            [*original, replace(first, seq=9, created=original[-1].created + timedelta(days=1))],
            [replace(first, created=first.created + timedelta(days=1)), *original[1:]],
            [replace(first, seq=None), *original[1:]],
        ):
            await refused(InvalidArgumentError, store.log.restore(entries))
        assert await everything(store, COPY) == []

    async def test_what_must_be_new_is_not_mixed(self, store: Store, clock: FakeClock) -> None:
        """With `expect_empty`, the first of several concurrent restores into one conversation succeeds, the others conflict."""
        original = copied(await mixed_entries(store, clock))
        others = [replace(entry, id=f"{entry.id}-2") for entry in original]
        outcomes: list[object] = []

        async def restore(entries: list[Entry]) -> None:
            try:
                outcomes.append(await store.log.restore(entries, expect_empty=True))
            except ConflictError as error:
                outcomes.append(str(error))

        async with anyio.create_task_group() as together:
            together.start_soon(restore, original)
            together.start_soon(restore, others)
        assert sorted(map(type, outcomes), key=str) == [int, str]
        assert "There is a conversation 'chat' already" in str(outcomes)
        assert await everything(store, COPY) in (original, others)

    async def test_watermarks_come_with_the_entries(self, store: Store, clock: FakeClock) -> None:
        """Atomically, so that no tier reads what counts as read; not into a conversation that has entries."""
        original = copied(await mixed_entries(store, clock))
        await store.log.restore(original, marks={"facts": 5, "other": 1})
        assert await store.watermarks.known(COPY, "facts") == {"chat": 5}
        assert await store.watermarks.known(COPY, "other") == {"chat": 1}
        await store.log.restore(original, marks={"facts": 7})
        assert await store.watermarks.known(COPY, "facts") == {"chat": 5}

    async def test_what_was_erased_since_is_not_restored(self, store: Store, clock: FakeClock) -> None:
        """It raises `ErasedError` if the epoch it was read in is given."""
        original = await mixed_entries(store, clock)
        epoch = (await store.reader.view(view())).head.epoch
        copy = Scope("tenant", "ada", "copy")
        await store.erase(ADA)
        entries = [replace(entry, scope=copy) for entry in original]
        await refused(ErasedError, store.log.restore(entries, epoch=epoch))
        assert await everything(store, copy) == []
        assert await store.log.restore(entries) == len(entries)
