"""Restoring a conversation."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest

from pagefile.errors import ConflictError, ErasedError, InvalidArgumentError
from pagefile.ports import Labels, Store, labels_of
from pagefile.records import Entry, JsonObject, Scope, utc
from pagefile.testing.contracts.base import Contract, changes_nothing, everything, head_of, session_of, write
from pagefile.testing.drafts import aborted, checkpoint, done, opened, reset, step, view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, CHAT

COPY = Scope("copy", "ada", "chat")


class RestoreContract(Contract):
    """`TurnLog.restore`."""

    @pytest.fixture
    async def original(self, store: Store, clock: FakeClock) -> list[Any]:
        """A conversation with entries of every kind."""
        first = done("a", steps=[step()], metadata={"n": 1})
        await write(store, first, done("b"), checkpoint("k1", 1), reset("r"))
        clock.advance(5)
        await write(store, done("c", tokens=21), opened("x"), aborted("x"), done("d", tokens=34))
        await write(store, checkpoint("k2", 5), opened("y"))
        return await everything(store)

    @pytest.fixture
    def copied(self, original: list[Any]) -> list[Any]:
        """The same entries in another tenant."""
        return [replace(entry, scope=COPY) for entry in original]

    async def test_into_an_empty_conversation_everything_is_as_it_was(
        self, store: Store, clock: FakeClock, copied: list[Any]
    ) -> None:
        """Entries keep `seq` and `created`; counters, checkpoint and session follow from them."""
        clock.advance(86_400)
        assert await store.log.restore(copied) == len(copied)
        assert await everything(store, COPY) == copied
        old, new = await store.reader.view(view()), await store.reader.view(view(scope=COPY))
        assert [turn.id for turn in new.turns] == [turn.id for turn in old.turns] == ["x", "d"]
        made: Any = new.checkpoint
        assert (made.id, made.version, made.covered_turns) == ("k2", 2, 1)
        assert replace(new.head, scope=CHAT, created=old.head.created, updated=old.head.updated) == old.head
        assert await store.sessions.get(COPY) == await store.sessions.get(CHAT)

    async def test_an_empty_conversation_gets_its_agent_and_its_session(
        self, store: Store, clock: FakeClock, copied: list[Any]
    ) -> None:
        """Exactly as given, and the conversation continues from there; times are still those of the entries."""
        value: JsonObject = {"own": ["甲", 1.5, None], "user_snapshot": {"allergies": ["青霉素"]}}
        clock.advance(86_400)
        labels = Labels("alpha", "en", "UTC")
        assert await store.log.restore(copied, agent="triage", session=value, labels=labels) == len(copied)
        assert labels_of(await head_of(store, COPY)) == labels
        assert await store.sessions.get(COPY) == value
        seen = await store.reader.view(view(scope=COPY))
        assert (seen.head.agent, seen.profile) == ("triage", value["user_snapshot"])
        assert seen.head.updated == max(entry.created for entry in copied)
        await store.log.append(done("e", scope=COPY))
        assert (await session_of(store, COPY))["own"] == value["own"]

    async def test_a_session_that_is_there_stays(self, store: Store, copied: list[Any]) -> None:
        """Put by an application or made by turns: the one that comes with the entries is ignored."""
        await store.sessions.put(COPY, {"own": 1})
        await store.log.restore(copied, agent="triage", session={"own": 2})
        found = await session_of(store, COPY)
        assert found["own"] == 1
        assert await store.log.restore(copied, agent="other", session={"own": 3}) == 0
        assert await store.sessions.get(COPY) == found
        assert (await head_of(store, COPY)).agent == "triage"

    async def test_life_goes_on_after_restoring(
        self, store: Store, clock: FakeClock, copied: list[Any]
    ) -> None:
        """The next turn takes the next position, with a later time than all before it."""
        clock.advance(-86_400)
        await store.log.restore(copied)
        turn = await store.log.append(done("e", scope=COPY))
        last = max(entry.created for entry in copied if entry.seq is not None)
        assert (turn.seq, turn.created > last) == (9, True)

    async def test_the_hour_that_a_clock_change_repeats_is_two_hours(self, store: Store) -> None:
        """Two times that differ only in `fold` are equal in Python, and an hour apart."""
        first = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        times = [first, first.replace(fold=1)]
        turns = await write(store, done("a"), done("b"))
        restored = [replace(turn, scope=COPY, at=at) for turn, at in zip(turns, times, strict=True)]
        await store.log.restore(restored)
        found = (await store.reader.view(view(scope=COPY))).turns
        assert [utc(turn.at) for turn in found] == [utc(at) for at in times]
        assert found[1].at - found[0].at == timedelta(hours=1)

    async def test_restoring_twice_is_restoring_once(self, store: Store, copied: list[Any]) -> None:
        await store.log.restore(copied)
        before = await head_of(store, COPY)
        assert await store.log.restore(copied) == 0
        assert await everything(store, COPY) == copied
        assert await head_of(store, COPY) == before
        assert await store.log.restore([]) == 0

    async def test_into_a_conversation_with_entries_new_turns_are_appended(
        self, store: Store, copied: list[Any]
    ) -> None:
        """Turns with new ids take the next positions; markers are left out."""
        await write(store, done("a", steps=[step()], scope=COPY), done("z", scope=COPY))
        assert await store.log.restore(copied) == 5
        entries = await everything(store, COPY)
        places = [(entry.id, entry.seq) for entry in entries]
        assert places == [("a", 1), ("z", 2), ("b", 3), ("c", 4), ("x", 5), ("d", 6), ("y", None)]
        ended = [entry.created for entry in entries if entry.seq is not None]
        assert ended == sorted(set(ended))
        head = await head_of(store, COPY)
        assert (head.turns, head.live_tokens) == (6, 10 + 10 + 10 + 21 + 7 + 34)

    async def test_a_turn_with_another_text_conflicts(self, store: Store, copied: list[Any]) -> None:
        await store.log.append(done("d", "else", scope=COPY))
        await changes_nothing(store, ConflictError, store.log.restore(copied), scope=COPY)

    async def test_what_does_not_belong_together_is_refused(self, store: Store, copied: list[Any]) -> None:
        """Two conversations, a gap, a duplicate id, time going backwards: `InvalidArgumentError`, and nothing is written."""
        first = copied[0]
        together = (
            [*copied, replace(first, id="q", scope=CHAT)],
            copied[1:],
            [*copied, replace(first, seq=9, created=copied[-1].created + timedelta(days=1))],
            [replace(first, created=first.created + timedelta(days=1)), *copied[1:]],
            [replace(first, seq=None), *copied[1:]],
        )
        await changes_nothing(store, InvalidArgumentError, *map(store.log.restore, together), scope=COPY)

    async def test_what_must_be_new_is_not_mixed(self, store: Store, copied: list[Any]) -> None:
        """With `expect_empty`, the first of several concurrent restores into one conversation succeeds, the others conflict."""
        others = [replace(entry, id=f"{entry.id}-2") for entry in copied]
        outcomes: list[object] = []

        async def restore(entries: list[Entry]) -> None:
            try:
                outcomes.append(await store.log.restore(entries, expect_empty=True))
            except ConflictError as error:
                outcomes.append(str(error))

        async with anyio.create_task_group() as together:
            together.start_soon(restore, copied)
            together.start_soon(restore, others)
        assert sorted(map(type, outcomes), key=str) == [int, str]
        assert "There is a conversation 'chat' already" in str(outcomes)
        assert await everything(store, COPY) in (copied, others)

    async def test_watermarks_come_with_the_entries(self, store: Store, copied: list[Any]) -> None:
        """Atomically, so that no tier reads what counts as read; not into a conversation that has entries."""
        await store.log.restore(copied, marks={"facts": 5, "other": 1})
        assert await store.watermarks.known(COPY, "facts") == {"chat": 5}
        assert await store.watermarks.known(COPY, "other") == {"chat": 1}
        await store.log.restore(copied, marks={"facts": 7})
        assert await store.watermarks.known(COPY, "facts") == {"chat": 5}

    async def test_what_was_erased_since_is_not_restored(self, store: Store, original: list[Any]) -> None:
        """It raises `ErasedError` if the epoch it was read in is given."""
        epoch = (await store.reader.view(view())).head.epoch
        copy = Scope("tenant", "ada", "copy")
        await store.erase(ADA)
        entries = [replace(entry, scope=copy) for entry in original]
        await changes_nothing(store, ErasedError, store.log.restore(entries, epoch=epoch), scope=copy)
        assert await store.log.restore(entries) == len(entries)
