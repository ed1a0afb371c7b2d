"""Appending and advancing turns; checkpoints and resets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import anyio
import pytest

from pagefile import ports
from pagefile.errors import ConflictError, ErasedError, InvalidArgumentError, NotFoundError
from pagefile.ports import Store
from pagefile.records import CHECKPOINT_QUERY, Checkpoint, Reset, Scope, Step, Turn
from pagefile.testing.contracts.base import Contract, changes_nothing, everything, head_of, refused, write
from pagefile.testing.drafts import AT, aborted, added, checkpoint, completed, done, opened, reset, step, view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, ANYBODY, CHAT, ELSE, FIRM_CHAT, STRANGER, TENANT

#: A conversation's owner, and a scope that is not.
_STRANGERS = [(CHAT, STRANGER), (CHAT, ANYBODY), (ANYBODY, CHAT)]


class TurnLogContract(Contract):
    """`TurnLog.append` and `TurnLog.advance`."""

    async def test_seq_counts_what_ended_without_gaps(self, store: Store) -> None:
        """`seq` is 1, 2, 3 … over ended turns, checkpoints and resets."""
        await write(store, done("a"), opened("b"), done("c"), aborted("b"), checkpoint("d", 2), reset("e"))
        places = [(entry.id, entry.seq) for entry in await everything(store)]
        assert places == [("a", 1), ("c", 2), ("b", 3), ("d", 4), ("e", 5)]

    async def test_many_writers_leave_no_gap(self, store: Store) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(store.log.append, done(f"t{number}"))
        entries = await everything(store)
        assert [entry.seq for entry in entries] == list(range(1, 51))
        assert {entry.id for entry in entries} == {f"t{number}" for number in range(50)}

    async def test_created_rises_even_when_the_clock_does_not(self, store: Store, clock: FakeClock) -> None:
        """`created` is strictly increasing with `seq`."""
        for requests in ((done("a"), done("b")), (opened("c"), done("d")), (completed("c"), reset("e"))):
            await write(store, *requests)
            clock.advance(-3600)
        times = [entry.created for entry in await everything(store)]
        assert times == sorted(set(times))
        assert times[0] == AT

    async def test_created_is_the_time_of_writing(self, store: Store, clock: FakeClock) -> None:
        """`created` is when it was written, `at` when it was said."""
        clock.advance(60)
        turn = await store.log.append(done("a", at=AT - timedelta(days=1)))
        assert (turn.created, turn.at) == (clock.now(), AT - timedelta(days=1))

    async def test_what_append_returns_is_what_is_read(self, store: Store) -> None:
        steps = [step("1", "晴"), step("2", "", given=["x", 1, 2.5, None, True])]
        metadata: dict[str, Any] = {"编号": [1, {"x": None}], "f": 0.5}
        given = done("a", "你好 🙂\n'\"\\", "答\t案", steps=steps, metadata=metadata)
        turn = await store.log.append(given)
        assert await everything(store) == [turn]
        said = given.user, given.assistant, given.steps
        assert turn == Turn("a", CHAT, 1, "done", *said, AT, AT, 3, 4, 10, "test", given.metadata)

    async def test_times_come_back_in_utc(self, store: Store) -> None:
        east = timezone(timedelta(hours=8))
        turn = await store.log.append(done("a", at=datetime(2026, 2, 9, 16, 0, tzinfo=east)))
        assert (turn.at, turn.at.tzinfo) == (AT, UTC)
        assert await everything(store) == [turn]

    async def test_one_side_may_be_missing(self, store: Store) -> None:
        """A missing user or assistant text is not the same as an empty one."""
        await write(store, done("a", None, ""), done("b", "", None))
        assert [(turn.user, turn.assistant) for turn in await everything(store)] == [(None, ""), ("", None)]

    async def test_the_same_turn_twice_is_stored_once(self, store: Store) -> None:
        """The same id with the same texts and steps returns what is stored."""
        first = await store.log.append(done("a", steps=[step()]))
        again = await store.log.append(done("a", steps=[step()], at=AT + timedelta(hours=1), tokens=99))
        assert [again] == [first] == await everything(store)
        assert (await head_of(store)).live_tokens == 10

    async def test_a_repeat_returns_the_turn_whatever_its_status(self, store: Store) -> None:
        """Beginning an open turn again returns it; an aborted one is returned as aborted."""
        first, again, ended, after = await write(store, opened("a"), opened("a"), aborted("a"), opened("a"))
        assert (again, after) == (first, ended)

    async def test_a_turn_begun_again_is_the_turn_however_far_it_is(self, store: Store) -> None:
        """With steps, done or aborted: only the question is compared, and nothing changes; `done` compares the whole turn."""
        _, stepped, again = await write(store, opened("a"), added("a"), opened("a"))
        answered, once_more = await write(store, completed("a"), opened("a"))
        assert (again, once_more) == (stepped, answered)
        *_, given_up, again = await write(store, opened("b"), added("b"), aborted("b"), opened("b"))
        assert again == given_up
        assert await everything(store) == [answered, given_up]
        others = opened("a", "else"), opened("b", "else"), done("a"), done("b")
        await changes_nothing(store, ConflictError, *map(store.log.append, others))

    @pytest.mark.parametrize(
        "other", [done("a", "else"), done("a", assistant="else"), done("a", steps=[step()]), done("a", None)]
    )
    async def test_the_same_id_with_another_text_conflicts(
        self, store: Store, other: ports.TurnDraft
    ) -> None:
        await store.log.append(done("a"))
        await changes_nothing(store, ConflictError, store.log.append(other))

    async def test_ids_are_per_conversation_and_tenant(self, store: Store) -> None:
        """The same turn id may exist in another conversation, the same conversation id in another tenant."""
        for scope in (CHAT, ELSE, FIRM_CHAT):
            turn = await store.log.append(done("a", f"{scope}", scope=scope))
            assert (turn.seq, turn.scope) == (1, scope)
            assert await everything(store, scope) == [turn]

    @pytest.mark.parametrize(("owner", "stranger"), _STRANGERS)
    async def test_a_conversation_belongs_to_who_used_it_first(
        self, store: Store, owner: Scope, stranger: Scope
    ) -> None:
        """A user, or permanently no user: all others get `ConflictError` for every kind of write, read and erasure."""
        await write(store, done("a", scope=owner), opened("b", scope=owner))
        await refused(
            ConflictError,
            store.log.append(done("c", scope=stranger)),
            store.log.append(done("a", scope=stranger)),
            store.log.advance(completed("b", scope=stranger)),
            store.log.mark(reset("d", scope=stranger)),
            store.log.mark(checkpoint("e", 1, scope=stranger)),
            store.log.claim(stranger),
            store.log.restore([replace(entry, scope=stranger) for entry in await everything(store, owner)]),
            store.sessions.put(stranger, {"x": 1}),
            store.sessions.get(stranger),
            store.reader.view(ports.ViewRequest(stranger, 100, 1)),
            store.reader.entries(ports.EntryQuery(stranger)),
            store.erase(stranger),
        )
        assert [entry.id for entry in await everything(store, owner)] == ["a", "b"]
        assert await store.reader.owner(stranger) == owner

    @pytest.mark.parametrize(("owner", "stranger"), _STRANGERS)
    async def test_a_list_shows_a_stranger_nothing(self, store: Store, owner: Scope, stranger: Scope) -> None:
        """Naming another's conversation returns nothing; the tenant's own list includes it."""
        await store.log.append(done("a", scope=owner))
        await store.watermarks.advance(owner, "tier", 1, epoch=None)
        ref = ports.TurnRef("chat", 1)
        assert await store.reader.heads(ports.ConversationQuery(stranger)) == []
        assert await store.source.since(ports.SinceRequest(stranger, {})) == []
        assert await store.source.around(stranger, [ref]) == []
        assert await store.terms.since(ports.SinceRequest(stranger, {}), "v1") == []
        assert await store.watermarks.known(stranger, "tier") == {}
        assert [head.scope for head in await store.reader.heads(ports.ConversationQuery(TENANT))] == [owner]
        assert [near.turn.scope for near in await store.source.around(TENANT, [ref])] == [owner]

    async def test_the_error_does_not_name_the_owner(self, store: Store) -> None:
        """Nor does it reveal whether a conversation belongs to another user or to none."""
        await write(store, done("a", scope=CHAT), done("a", scope=Scope("tenant", None, "else")))
        told: list[str] = []
        for scope in (STRANGER, Scope("tenant", STRANGER.user, "else"), ANYBODY):
            with pytest.raises(ConflictError) as refusal:
                await store.log.claim(scope)
            told.append(str(refusal.value))
        theirs, nobodys, unnamed = told
        assert nobodys.replace("'else'", "'chat'") == theirs
        assert "name the user" in unnamed
        assert "ada" not in theirs + unnamed

    @pytest.mark.parametrize("owner", [CHAT, ANYBODY])
    async def test_a_conversation_can_be_claimed(self, store: Store, owner: Scope) -> None:
        """Before anything is written, it exists, is empty, and keeps its owner. Claiming is idempotent."""
        assert await store.reader.owner(owner) is None
        await store.log.claim(owner)
        head = await head_of(store, owner)
        assert (head.scope, head.exists, head.last_seq) == (owner, True, 0)
        await store.log.claim(owner)
        assert await head_of(store, owner) == head
        assert await store.reader.owner(STRANGER) == owner
        assert (await store.log.append(done("a", scope=owner))).scope == owner

    async def test_a_claim_from_before_an_erasure_is_refused(self, store: Store) -> None:
        """A user erased meanwhile does not come back with an empty conversation."""
        epoch = await store.reader.epoch()
        await store.erase(ADA)
        await refused(ErasedError, store.log.claim(CHAT, epoch=epoch))
        assert await store.reader.owner(CHAT) is None

    async def test_labels_stay_until_others_are_given(self, store: Store) -> None:
        """From the first turn on, even an open one; each label separately; lists show them too."""
        first = ports.Labels("alpha", "zh", "Asia/Shanghai")
        await store.log.append(replace(opened("a"), labels=first))
        assert ports.labels_of(await head_of(store)) == first
        await write(store, completed("a"), done("b"))
        assert ports.labels_of(await head_of(store)) == first
        await store.log.append(replace(done("c"), labels=ports.Labels(language="en")))
        (head,) = await store.reader.heads(ports.ConversationQuery(CHAT))
        assert ports.labels_of(head) == ports.Labels("alpha", "en", "Asia/Shanghai")
        assert (await store.log.append(done("d", scope=ELSE))).seq == 1
        assert ports.labels_of(await head_of(store, ELSE)) == ports.NO_LABELS

    async def test_a_turn_needs_a_conversation(self, store: Store) -> None:
        await refused(InvalidArgumentError, store.log.append(done("a", scope=ADA)))

    async def test_what_is_not_json_is_refused(self, store: Store) -> None:
        bad = done("a", metadata={"x": float("nan")})
        await changes_nothing(store, InvalidArgumentError, store.log.append(bad))

    async def test_an_open_turn_takes_its_place_when_it_ends(self, store: Store, clock: FakeClock) -> None:
        """Steps and the answer are added; `seq` and `created` are assigned at the end."""
        begun, _ = await write(store, opened("a"), done("b"))
        assert (begun.seq, begun.status, begun.tokens) == (None, "open", 5)
        clock.advance(5)
        stepped = await store.log.advance(added("a"))
        assert (stepped.seq, stepped.steps, stepped.tokens) == (None, (step(),), 11)
        clock.advance(5)
        ended = await store.log.advance(completed("a", "the answer"))
        assert (ended.seq, ended.status, ended.assistant, ended.tokens) == (2, "done", "the answer", 16)
        assert (ended.created, ended.assistant_tokens, ended.steps) == (clock.now(), 4, (step(),))
        first, second = await everything(store)
        assert (first.id, second) == ("b", ended)

    async def test_a_step_added_twice_is_one_step(self, store: Store) -> None:
        """The turn is returned unchanged, whatever the second's counts and page; nothing is counted twice."""
        _, first = await write(store, opened("a"), added("a", step(given={"x": (1, 2)})))
        again = replace(step(given={"x": [1, 2]}), call_tokens=9, result_tokens=9, page="another")
        assert await store.log.advance(added("a", again, tokens=99)) == first
        assert (await store.log.advance(completed("a"))).steps == first.steps

    @pytest.mark.parametrize(
        "other",
        [step(result="rain"), step("call-2"), step(given={"city": "北京"}), replace(step(), tool="radar")],
    )
    async def test_another_result_under_the_same_call_id_is_a_step_of_its_own(
        self, store: Store, other: Step
    ) -> None:
        """So is another call id, input or tool: parallel calls may share an id."""
        *_, turn = await write(store, opened("a"), added("a"), added("a", other), added("a"))
        assert (turn.steps, turn.tokens) == ((step(), other), 17)

    async def test_every_field_of_a_step_comes_back(self, store: Store) -> None:
        """Including its pages and the number of lost characters."""
        result = Step("search", None, "📎", "1", 2, 3)
        paged = replace(result, page="p", whole=False, page_tokens=900, page_chars=50_000)
        lost = replace(result, input={}, result="head … tail", lost_chars=7)
        inputs = replace(result, input={"script": "…"}, input_pages={"/script": "q"})
        await store.log.append(done("a", steps=[paged, lost, inputs, step()]))
        assert (await store.reader.view(view())).turns[0].steps == (paged, lost, inputs, step())

    async def test_what_the_user_said_is_counted_although_no_answer_came(self, store: Store) -> None:
        """An open turn is not counted yet, and one that was given up counts with the tokens of its user's side."""
        counts = [(opened("a"), (0, 0, 0)), (added("a"), (0, 0, 0)), (aborted("a"), (1, 1, 7))]
        counts += [(done("b"), (2, 2, 17)), (opened("c"), (2, 2, 17)), (aborted("c", tokens=0), (3, 2, 17))]
        for request, counted in counts:
            await write(store, request)
            head = await head_of(store)
            assert (head.exists, head.last_seq, head.turns, head.live_tokens) == (True, *counted)

    async def test_ending_twice_the_same_way_is_ending_once(self, store: Store) -> None:
        """Completing twice with the same text and aborting twice return the stored turn."""
        await write(store, opened("a"), opened("b"))
        ends = completed("a"), aborted("b")
        assert await write(store, *ends) == await write(store, *ends)
        assert (await head_of(store)).turns == 2

    async def test_a_turn_that_ended_does_not_change(self, store: Store) -> None:
        """Any other change of it raises `ConflictError`."""
        await write(store, opened("a"), opened("b"), completed("a"), aborted("b"))
        changes = completed("a", "else"), aborted("a"), added("a"), completed("b"), added("b")
        await changes_nothing(store, ConflictError, *map(store.log.advance, changes))

    async def test_an_unknown_turn_cannot_move_on(self, store: Store) -> None:
        """It raises `NotFoundError`, also if the conversation is unknown or the id is a marker's."""
        await refused(NotFoundError, store.log.advance(completed("a")))
        await store.log.mark(reset("r"))
        await refused(NotFoundError, *(store.log.advance(completed(turn_id)) for turn_id in ("a", "r")))

    async def test_a_reader_sees_what_a_write_returned(self, store: Store) -> None:
        for number in range(20):
            await store.log.append(done(f"t{number}"))
            assert (await head_of(store)).last_seq == number + 1


class MarkerContract(Contract):
    """`TurnLog.mark`."""

    async def test_a_checkpoint_says_what_it_covers(self, store: Store, clock: FakeClock) -> None:
        """It counts the turns it covers, those without an answer too, and has its own position in the log."""
        await write(store, done("a"), done("b"), opened("c"), aborted("c"), done("d"))
        clock.advance(1)
        entry = await store.log.mark(replace(checkpoint("k", 3), fallback_reason="TimeoutError: "))
        place = {"seq": 5, "version": 1, "covered_through_seq": 3, "covered_turns": 3}
        carried = {"anchors": ("42 mg",), "archive_refs": ("page-1",), "fallback_reason": "TimeoutError: "}
        given = {"summary": "what was said", "created": clock.now(), "tokens": 7, "counter": "test"}
        told: dict[str, Any] = {**place, **given, **carried}
        assert entry == Checkpoint("k", CHAT, **told)
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
        marks = checkpoint("k1", 1, summary="one"), checkpoint("k2", 1, 1, summary="one, said better")
        await write(store, *map(done, "abc"), *marks, checkpoint("k3", 3, 2, summary="two"))
        found = (await everything(store))[3:]
        told = [(entry.version, entry.summary, entry.covered_turns) for entry in found]
        assert told == [(1, "one", 1), (2, "one, said better", 1), (3, "two", 3)]
        assert (await store.reader.view(view())).checkpoint == found[-1]

    @pytest.mark.parametrize(
        ("covered", "version"),
        [(2, 0), (2, 2), (1, 1), (5, 1), (0, 1)],
        ids=["old", "new", "less", "more", "none"],
    )
    async def test_a_checkpoint_out_of_date_conflicts(self, store: Store, covered: int, version: int) -> None:
        """Based on another version, covering less than the newest or more than exists: `ConflictError`."""
        await write(store, *map(done, "abc"), checkpoint("k", 2))
        await changes_nothing(store, ConflictError, store.log.mark(checkpoint("k2", covered, version)))

    async def test_a_checkpoint_of_nothing_conflicts(self, store: Store) -> None:
        await refused(ConflictError, store.log.mark(checkpoint("k", 0)))
        assert not (await head_of(store)).exists

    async def test_a_checkpoint_from_before_the_reset_conflicts(self, store: Store) -> None:
        """One that covers only what was reset comes too late."""
        await write(store, done("a"), done("b"), reset("r"), done("c"))
        await refused(ConflictError, store.log.mark(checkpoint("k", 2)))
        (entry,) = await write(store, checkpoint("k", 4))
        assert entry.covered_turns == 1

    async def test_a_reset_empties_the_window_and_keeps_the_log(self, store: Store, clock: FakeClock) -> None:
        *_, entry = await write(store, done("a"), done("b"), reset("r"))
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
        _, entry = await write(store, done("b"), checkpoint("k2", 4))
        assert entry.version == 2

    async def test_the_same_marker_twice_is_stored_once(self, store: Store) -> None:
        """A marker with the same id and contents returns what is stored; a taken id conflicts."""
        await write(store, done("a"))
        marks = checkpoint("k", 1), reset("r")
        assert await write(store, *marks) == await write(store, *marks)
        assert len(await everything(store)) == 3
        taken = reset("a"), reset("k"), checkpoint("a", 1), checkpoint("k", 1, summary="else")
        turn = store.log.append(done("k", CHECKPOINT_QUERY, "历史摘要: what was said"))
        await changes_nothing(store, ConflictError, *map(store.log.mark, taken), turn)

    async def test_a_conversation_may_begin_with_a_reset(self, store: Store) -> None:
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
