"""Reading the log: windows, lists, how indexes catch up, and what tiers derive from turns."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pagefile.errors import NotFoundError
from pagefile.ports import (
    ConversationQuery,
    EntryQuery,
    LogView,
    MatchQuery,
    SinceRequest,
    Store,
    TurnPlace,
    TurnRef,
    TurnTerms,
)
from pagefile.records import NEVER, ConversationInfo, Scope, Step, Turn
from pagefile.testing.contracts.base import Contract, head_of, refused, view_of, write
from pagefile.testing.drafts import aborted, added, checkpoint, done, opened, reset, view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, BOB, CHAT, FIRM, TENANT


async def talk(store: Store, count: int, *, tokens: int = 10, scope: Scope = CHAT) -> None:
    """Records turns t1, t2 …"""
    await write(store, *(done(f"t{number}", tokens=tokens, scope=scope) for number in range(1, count + 1)))


async def seen(store: Store, *, budget: int, least: int = 0) -> list[int | None]:
    """The positions of the turns a window gets."""
    return [turn.seq for turn in (await store.reader.view(view(budget=budget, least=least))).turns]


class LogReaderContract(Contract):
    """`LogReader`."""

    async def test_a_conversation_nobody_wrote_to_is_empty(self, store: Store) -> None:
        """An empty view without an error, and reading creates nothing."""
        found = await view_of(store)
        assert found == LogView(ConversationInfo(CHAT, None, NEVER, NEVER, 0, 0, 0, 0, 0, 0), None, ())
        assert not found.head.exists
        assert await store.reader.entries(EntryQuery(CHAT)) == []
        assert await store.reader.heads(ConversationQuery(TENANT)) == []

    async def test_turns_are_found_by_what_was_said(self, store: Store) -> None:
        """Every word, whoever said it, whatever the case of its letters; by tool, by time and by place; newest first."""
        step = Step("read_file", {"path": "rates.py"}, "VAT 19 %", "c1")
        await write(
            store,
            done("a", user="Order X-5128, please", assistant="It left Leipzig."),
            done("b", user="谢谢，订单到了", assistant="不客气"),
            replace(done("c", user="Which rate?", assistant="19 %"), steps=(step,)),
            opened("d", user="order again"),
        )
        name = CHAT.conversation or ""

        async def found(*words: str, **more: Any) -> list[int]:
            query = MatchQuery(CHAT.tenant, [name, "nowhere"], words, **more)
            return [one.seq for one in await store.reader.matching(query)]

        assert await found("x-5128", "LEIPZIG") == [1]
        assert await found("x-5128", "nowhere") == []
        assert await found("订单") == [2]
        assert await found("vat") == [3]
        assert await found() == [3, 2, 1]
        assert await found(before_seq=3, after_seq=1) == [2]
        assert await found(tool="read_file") == [3]
        assert await found(tool="read") == []
        turns = [one for one in await store.reader.entries(EntryQuery(CHAT)) if isinstance(one, Turn)]
        assert await found(since=turns[0].at, until=turns[0].at) == []
        assert await found(since=turns[0].at) == [3, 2, 1]
        assert await store.reader.matching(MatchQuery("elsewhere", [name])) == []

    async def test_turns_are_located_by_their_id(self, store: Store) -> None:
        """With the owner of their conversation and their position; those of others are left out."""
        await write(store, done("a"), opened("b"))
        mine = {"a": TurnPlace(CHAT, 1), "b": TurnPlace(CHAT, None)}
        assert await store.reader.located(Scope(CHAT.tenant), ["a", "b", "c"]) == mine
        assert await store.reader.located(Scope(CHAT.tenant, CHAT.user), ["a", "b"]) == mine
        assert await store.reader.located(Scope(CHAT.tenant, "somebody else"), ["a"]) == {}
        assert await store.reader.located(Scope("elsewhere"), ["a"]) == {}
        assert await store.reader.located(Scope(CHAT.tenant), []) == {}

    async def test_a_view_stops_before_the_budget_is_exceeded(self, store: Store) -> None:
        """The newest live turns, oldest first, until the next would exceed it."""
        await talk(store, 5)
        fitting = {30: [3, 4, 5], 39: [3, 4, 5], 9: [], 10_000: [1, 2, 3, 4, 5]}
        assert fitting == {budget: await seen(store, budget=budget) for budget in fitting}

    async def test_a_view_has_at_least_the_turns_asked_for(self, store: Store) -> None:
        """`min_turns` are read whatever they cost."""
        await talk(store, 5)
        assert await seen(store, budget=0, least=2) == [4, 5]
        assert await seen(store, budget=30, least=2) == [3, 4, 5]
        assert await seen(store, budget=0, least=99) == [1, 2, 3, 4, 5]

    async def test_a_view_has_no_gaps(self, store: Store) -> None:
        """A small turn before a large one is not picked out."""
        await write(store, done("a", tokens=1), done("b", tokens=100), done("c", tokens=10))
        assert await seen(store, budget=50) == [3]

    async def test_a_view_has_only_live_turns(self, store: Store) -> None:
        """Nothing before the reset or the checkpoint, and no turn without words of the user."""
        await talk(store, 2)
        await write(store, reset("r"), done("a"), done("b"), opened("c"), opened("d"))
        await write(store, aborted("d", tokens=0), checkpoint("k", 4))
        found = await view_of(store)
        assert [turn.id for turn in found.turns] == ["b"]
        assert (found.head.reset_seq, found.head.covered_through_seq, found.head.turns) == (3, 4, 2)

    async def test_a_view_has_what_users_said_without_an_answer(self, store: Store) -> None:
        """Of a turn that was given up only the user's side, in its place; beside it other open turns, oldest first."""
        await write(store, done("a"), opened("b"), added("b"), opened("c"), opened("d"), aborted("b"))
        found = await store.reader.view(view(open_turn="c"))
        assert [(turn.id, turn.status, turn.tokens) for turn in found.turns] == [
            ("a", "done", 10),
            ("b", "aborted", 7),
        ]
        assert (found.turns[1].text, found.turns[1].steps) == (found.turns[1].user, ())
        assert [turn.id for turn in found.running] == ["d"]
        assert [turn.id for turn in (await view_of(store)).running] == ["c", "d"]
        await write(store, reset("r"), opened("e"))
        found = await store.reader.view(view(open_turn="c"))
        assert (found.open_turn and found.open_turn.id, [turn.id for turn in found.running]) == ("c", ["e"])

    async def test_a_view_brings_the_open_turn_it_is_for(self, store: Store) -> None:
        """With its steps so far; a missing or ended one raises `NotFoundError`."""
        await refused(NotFoundError, store.reader.view(view(open_turn="a")))
        _, stepped = await write(store, opened("a"), added("a"))
        assert (await store.reader.view(view(open_turn="a"))).open_turn == stepped
        assert (await view_of(store)).open_turn is None
        await store.log.advance(aborted("a"))
        for turn_id in ("a", "b"):
            await refused(NotFoundError, store.reader.view(view(open_turn=turn_id)))

    async def test_the_head_knows_the_agent_and_the_times(self, store: Store, clock: FakeClock) -> None:
        """The latest agent, when the conversation began, and when it was last written to."""
        await store.log.append(done("a", agent="triage"))
        clock.advance(10)
        await store.log.append(done("b"))
        head = await head_of(store)
        assert (head.agent, (head.updated - head.created).total_seconds()) == ("triage", 10)
        clock.advance(-60)
        await store.log.append(opened("c", agent="pharmacy"))
        after = await head_of(store)
        assert (after.agent, after.updated) == ("pharmacy", head.updated)

    async def test_a_view_is_one_snapshot(self, store: Store) -> None:
        """Counters and turns are consistent, whatever is written meanwhile."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, store, *(done(f"t{number}") for number in range(60)))
            for _ in range(30):
                found = await view_of(store)
                assert found.head.live_turns == len(found.turns) == found.head.last_seq
                assert found.head.live_tokens == sum(turn.tokens for turn in found.turns)

    async def test_entries_ascend_and_open_turns_are_last(self, store: Store) -> None:
        """Ascending by `seq`; turns without one come last, in the order they began."""
        await write(store, opened("x"), opened("y"))
        await talk(store, 2)
        assert [one.id for one in await store.reader.entries(EntryQuery(CHAT))] == ["t1", "t2", "x", "y"]

    async def test_entries_are_chosen_by_kind_and_status(self, store: Store) -> None:
        """Statuses filter turns only."""
        await talk(store, 1)
        await write(store, opened("x"), opened("y"), aborted("y"), checkpoint("k", 1), reset("r"))

        async def ids(query: EntryQuery) -> list[str]:
            return [entry.id for entry in await store.reader.entries(query)]

        assert await ids(EntryQuery(CHAT)) == ["t1", "y", "x"]
        assert await ids(EntryQuery(CHAT, statuses=frozenset({"done"}))) == ["t1"]
        assert await ids(EntryQuery(CHAT, statuses=frozenset({"aborted", "open"}))) == ["y", "x"]
        markers = EntryQuery(CHAT, frozenset({"checkpoint", "reset"}), statuses=frozenset({"open"}))
        assert await ids(markers) == ["k", "r"]
        assert await ids(EntryQuery(CHAT, frozenset())) == []

    async def test_entries_are_sliced(self, store: Store) -> None:
        """`after_seq` continues, `limit` stops, `newest` takes the last ones, still ascending."""
        await talk(store, 5)
        await store.log.append(opened("x"))

        async def ids(*, after: int = 0, limit: int = 100, newest: bool = False) -> list[str]:
            query = EntryQuery(CHAT, after_seq=after, limit=limit, newest=newest)
            return [entry.id for entry in await store.reader.entries(query)]

        assert await ids(after=3) == ["t4", "t5", "x"]
        assert await ids(after=1, limit=2) == ["t2", "t3"]
        assert await ids(limit=3, newest=True) == ["t4", "t5", "x"]
        assert await ids(after=4, limit=3, newest=True) == ["t5", "x"]
        assert await ids(limit=1, newest=True) == ["x"]
        assert await ids(limit=0) == await ids(limit=0, newest=True) == []

    async def test_heads_are_listed_latest_first(self, store: Store, clock: FakeClock) -> None:
        """Most recently written first, by name if the times are equal."""
        for name in ("b", "a", "c"):
            await talk(store, 1, scope=Scope("tenant", "ada", name))
        clock.advance(1)
        await store.log.append(done("again", scope=Scope("tenant", "ada", "b")))
        heads = await store.reader.heads(ConversationQuery(ADA))
        assert [(head.scope.conversation, head.turns) for head in heads] == [("b", 2), ("a", 1), ("c", 1)]

    async def test_heads_are_of_a_tenant_a_user_or_one_conversation(self, store: Store) -> None:
        """Each scope lists only its own."""
        scopes = [Scope("tenant", "ada", "a"), Scope("tenant", "bob", "b"), Scope("tenant", None, "c")]
        for scope in (*scopes, Scope("firm", "ada", "a")):
            await talk(store, 1, scope=scope)

        async def listed(scope: Scope) -> list[Scope]:
            return [head.scope for head in await store.reader.heads(ConversationQuery(scope))]

        assert await listed(TENANT) == scopes
        assert await listed(ADA) == scopes[:1]
        for scope in scopes:
            assert await listed(scope) == [scope]
        for foreign in ((None, "b"), ("bob", "a"), ("bob", "c")):
            assert await listed(Scope("tenant", *foreign)) == []
        assert await listed(Scope("nobody")) == []

    async def test_a_list_of_heads_goes_on_behind_a_conversation(
        self, store: Store, clock: FakeClock
    ) -> None:
        """The pages together are the whole list; an `after` that is not in it raises `NotFoundError`."""
        names = [f"c{number}" for number in range(7)]
        for number, name in enumerate(names):
            await talk(store, 1, scope=Scope("tenant", "ada", name))
            clock.advance(number % 2)
        whole = await store.reader.heads(ConversationQuery(TENANT))
        found: list[ConversationInfo] = []
        query = ConversationQuery(TENANT, limit=2)
        while slice_ := await store.reader.heads(query):
            found += slice_
            query = replace(query, after=found[-1].scope.conversation)
        assert found == whole
        assert sorted(head.scope.conversation or "" for head in found) == names
        for after, scope in (("nope", TENANT), ("c1", BOB)):
            await refused(NotFoundError, store.reader.heads(ConversationQuery(scope, after=after)))


A, B, C = (Scope("tenant", user, name) for user, name in (("ada", "a"), ("bob", "b"), ("ada", "c")))


class Filled(Contract):
    """Three conversations of two users; each has three done turns, one without a word of the user, and an open one."""

    @pytest.fixture
    async def filled(self, store: Store) -> Store:
        for scope in (C, A, B):
            await write(store, done("1", scope=scope), done("2", scope=scope), opened("x", scope=scope))
            await write(
                store, aborted("x", scope=scope, tokens=0), done("3", scope=scope), opened("y", scope=scope)
            )
        return store


async def found(
    store: Store, scope: Scope, known: Mapping[str, int] | None = None, limit: int = 100
) -> list[tuple[str | None, int | None]]:
    """The positions of the turns."""
    turns = await store.source.since(SinceRequest(scope, known or {}, limit))
    return [(turn.scope.conversation, turn.seq) for turn in turns]


class TurnSourceContract(Filled):
    """`TurnSource`."""

    async def test_since_gives_done_turns_by_conversation_and_place(self, filled: Store) -> None:
        """Ordered by conversation id, then `seq`; without open turns and those in which no user spoke."""
        assert await found(filled, ADA) == [(name, seq) for name in "ac" for seq in (1, 2, 4)]
        assert await found(filled, TENANT) == [(name, seq) for name in "abc" for seq in (1, 2, 4)]
        assert await found(filled, FIRM) == []

    async def test_since_leaves_out_what_is_known(self, filled: Store) -> None:
        """Only what came after the highest known `seq` of each conversation."""
        assert await found(filled, ADA, {"a": 2, "c": 4}) == [("a", 4)]
        assert await found(filled, TENANT, {"a": 4, "b": 1, "c": 99}) == [("b", 2), ("b", 4)]

    async def test_since_stops_at_the_limit(self, filled: Store) -> None:
        """Continuing with what is then known gives the rest."""
        assert await found(filled, TENANT, limit=4) == [("a", 1), ("a", 2), ("a", 4), ("b", 1)]
        assert await found(filled, TENANT, {"a": 4, "b": 1}, 2) == [("b", 2), ("b", 4)]
        assert await found(filled, TENANT, limit=0) == []

    async def test_since_of_one_conversation(self, filled: Store) -> None:
        """A scope with a conversation gives only that one, and nothing of another user's."""
        assert await found(filled, C) == [("c", 1), ("c", 2), ("c", 4)]
        assert await found(filled, Scope("tenant", None, "b")) == []
        assert await found(filled, Scope("tenant", "ada", "b")) == []

    async def test_what_had_no_answer_is_found_by_what_the_user_said(self, store: Store) -> None:
        """A turn that was given up is listed and read with its user's side only."""
        await write(store, done("1"), opened("2"), added("2"), aborted("2"), done("3"))
        (given_up,) = await store.source.since(SinceRequest(CHAT, {"chat": 1}, 1))
        assert (given_up.id, given_up.status, given_up.steps) == ("2", "aborted", ())
        (near,) = await store.source.around(CHAT, [TurnRef("chat", 2)])
        assert (near.turn, near.before and near.before.id, near.after and near.after.id) == (
            given_up,
            "1",
            "3",
        )

    async def test_since_includes_what_was_reset_away(self, store: Store) -> None:
        """Turns before a reset or a checkpoint left the window, not the memory."""
        await write(store, done("1"), checkpoint("k", 1), done("2"), reset("r"), done("3"))
        turns = await store.source.since(SinceRequest(CHAT, {}))
        assert [(turn.id, turn.seq) for turn in turns] == [("1", 1), ("2", 3), ("3", 5)]
        assert {turn.scope for turn in turns} == {CHAT}

    async def test_around_gives_turns_with_their_neighbours(self, filled: Store) -> None:
        """In the requested order; neighbours are the adjacent turns that count."""
        refs = [TurnRef("c", 4), TurnRef("a", 1), TurnRef("c", 2)]
        near = await filled.source.around(ADA, refs)
        assert [(place.turn.scope, place.turn.seq) for place in near] == [(C, 4), (A, 1), (C, 2)]
        places = [(place.before and place.before.seq, place.after and place.after.seq) for place in near]
        assert places == [(2, None), (None, 2), (1, 4)]

    async def test_around_leaves_out_what_is_not_there(self, filled: Store) -> None:
        """Turns that are gone, have no word of the user, or belong to another one."""
        refs = [TurnRef("a", 3), TurnRef("a", 9), TurnRef("nope", 1), TurnRef("b", 1), TurnRef("a", 2)]
        near = await filled.source.around(ADA, refs)
        assert [(place.turn.scope.conversation, place.turn.seq) for place in near] == [("a", 2)]
        assert await filled.source.around(A, [TurnRef("c", 1)]) == []
        assert await filled.source.around(TENANT, []) == []

    async def test_at_gives_the_same_turns_alone(self, filled: Store) -> None:
        """In the requested order, without what is not there, is another user's, or of another conversation than the scope's."""
        refs = [
            TurnRef("c", 4),
            TurnRef("a", 1),
            TurnRef("b", 1),
            TurnRef("a", 9),
            TurnRef("c", 2),
            TurnRef("a", 1),
        ]
        for scope in (ADA, A, TENANT):
            near = await filled.source.around(scope, refs)
            assert await filled.source.at(scope, refs) == [one.turn for one in near]
        assert await filled.source.at(TENANT, []) == []


class WatermarksContract(Filled):
    """`Watermarks`."""

    async def test_nothing_is_known_at_first(self, filled: Store) -> None:
        """A tier that has never read anything has no watermarks and is behind on everything."""
        assert await filled.watermarks.known(TENANT, "t") == {}
        behind = await filled.watermarks.behind("t")
        assert [(one.scope, one.seq, one.last_seq) for one in behind] == [(A, 0, 4), (B, 0, 4), (C, 0, 4)]

    async def test_it_rises_and_never_falls(self, filled: Store) -> None:
        """A lower position is ignored: a late writer undoes nothing."""
        for seq, known in ((3, 3), (2, 3), (4, 4)):
            await filled.watermarks.advance(A, "t", seq, epoch=None)
            assert await filled.watermarks.known(A, "t") == {"a": known}

    async def test_tiers_and_scopes_are_apart(self, filled: Store) -> None:
        """A tier sees only its own marks, for a tenant, a user or a conversation."""
        for scope, seq in ((A, 1), (B, 2), (C, 4)):
            await filled.watermarks.advance(scope, "t", seq, epoch=None)
        await filled.watermarks.advance(A, "other", 4, epoch=None)
        known = {TENANT: {"a": 1, "b": 2, "c": 4}, ADA: {"a": 1, "c": 4}, B: {"b": 2}, FIRM: {}}
        known |= {Scope("tenant", user, "b"): {} for user in ("ada", None)}
        assert known == {scope: await filled.watermarks.known(scope, "t") for scope in known}

    async def test_behind_is_what_was_written_since(self, filled: Store) -> None:
        """Turns, checkpoints and resets advance a log; a tier at its end is not behind."""
        for scope in (A, B, C):
            await filled.watermarks.advance(scope, "t", 4, epoch=None)
        assert await filled.watermarks.behind("t") == []
        await write(filled, done("4", scope=B), reset("r", scope=C))
        behind = await filled.watermarks.behind("t")
        assert [(one.scope, one.seq, one.last_seq) for one in behind] == [(B, 4, 5), (C, 4, 5)]
        assert [one.scope for one in await filled.watermarks.behind("t", limit=1)] == [B]
        assert await filled.watermarks.behind("t", tenant="firm") == []
        assert len(await filled.watermarks.behind("t", tenant="tenant")) == 2

    async def test_what_is_gone_has_no_watermark(self, filled: Store) -> None:
        """Erasing removes them, and a missing conversation gets none."""
        await filled.watermarks.advance(A, "t", 4, epoch=None)
        await filled.watermarks.advance(Scope("tenant", "ada", "nope"), "t", 4, epoch=None)
        assert await filled.watermarks.known(TENANT, "t") == {"a": 4}
        assert (await filled.erase(A)).counts["watermarks"] == 1
        await filled.watermarks.advance(A, "t", 4, epoch=None)
        assert await filled.watermarks.known(TENANT, "t") == {}

    async def test_a_tier_starts_over(self, filled: Store) -> None:
        """Dropping resets one tier everywhere, and returns the number of conversations affected."""
        for scope in (A, B):
            await filled.watermarks.advance(scope, "t", 4, epoch=None)
            await filled.watermarks.advance(scope, "other", 4, epoch=None)
        assert await filled.watermarks.tiers() == ["other", "t"]
        assert await filled.watermarks.drop("t") == 2
        assert await filled.watermarks.drop("t") == 0
        assert await filled.watermarks.known(TENANT, "t") == {}
        assert await filled.watermarks.known(TENANT, "other") == {"a": 4, "b": 4}


def _terms(name: str, seq: int, said: str, answered: str = "") -> TurnTerms:
    return TurnTerms(name, seq, "", done("x").at, said, answered)


async def _kept(
    store: Store, scope: Scope, analyzer: str = "v1"
) -> list[tuple[str, int, str | None, str | None]]:
    found = await store.terms.since(SinceRequest(scope, {}), analyzer)
    return [(one.conversation, one.seq, one.said, one.answered) for one in found]


class TermStoreContract(Filled):
    """`TermStore`."""

    async def test_turns_without_terms_are_told(self, filled: Store) -> None:
        """The same turns in the same order as from the source, with positions and times but no terms yet."""
        for scope in (TENANT, ADA, C, FIRM):
            turns = await filled.source.since(SinceRequest(scope, {"a": 1}))
            found = await filled.terms.since(SinceRequest(scope, {"a": 1}), "v1")
            assert [(one.conversation, one.seq, one.turn_id, one.at) for one in found] == [
                (turn.scope.conversation, turn.seq, turn.id, turn.at) for turn in turns
            ]
            assert {(one.said, one.answered) for one in found} <= {(None, None)}

    async def test_terms_are_kept_and_replaced(self, filled: Store) -> None:
        """Terms are read as written, byte for byte; the last write wins."""
        await filled.terms.write(A, [_terms("a", 1, "old"), _terms("a", 2, "", "导演 是 谁")], "v1")
        await filled.terms.write(A, [_terms("a", 1, "lost"), _terms("a", 1, "new words", "more")], "v1")
        written = ("a", 1, "new words", "more"), ("a", 2, "", "导演 是 谁")
        assert await _kept(filled, A) == [*written, ("a", 4, None, None)]

    async def test_terms_of_another_analyzer_count_as_none(self, filled: Store) -> None:
        """With another analyzer a turn is returned again; its terms then replace the old ones."""
        await filled.terms.write(A, [_terms("a", 1, "first")], "v1")
        assert (await _kept(filled, A, "v2"))[0] == ("a", 1, None, None)
        await filled.terms.write(A, [_terms("a", 1, "second")], "v2")
        assert (await _kept(filled, A, "v2"))[0] == ("a", 1, "second", "")
        assert (await _kept(filled, A, "v1"))[0] == ("a", 1, None, None)

    async def test_since_goes_on_behind_what_is_known(self, filled: Store) -> None:
        """Limited, and continued like the source's."""
        first = await filled.terms.since(SinceRequest(TENANT, {}, 4), "v1")
        assert [(one.conversation, one.seq) for one in first] == [("a", 1), ("a", 2), ("a", 4), ("b", 1)]
        rest = await filled.terms.since(SinceRequest(TENANT, {"a": 4, "b": 1}, 2), "v1")
        assert [(one.conversation, one.seq) for one in rest] == [("b", 2), ("b", 4)]
        assert await filled.terms.since(SinceRequest(TENANT, {}, 0), "v1") == []

    async def test_turns_that_are_gone_keep_nothing(self, filled: Store) -> None:
        """Positions without a turn are ignored, and erasing removes the terms."""
        gone = _terms("a", 99, "x"), _terms("nope", 1, "y")
        await filled.terms.write(A, [_terms("a", 1, "one"), *gone], "v1")
        await filled.terms.write(FIRM, [_terms("a", 1, "foreign")], "v1")
        assert (await _kept(filled, A))[0] == ("a", 1, "one", "")
        assert (await filled.erase(A)).counts["turn_terms"] == 1
        await filled.log.append(done("1", scope=A))
        assert await _kept(filled, A) == [("a", 1, None, None)]

    async def test_what_a_reset_hides_from_windows_keeps_its_terms(self, store: Store) -> None:
        """A reset removes turns from the window, not from memory."""
        await write(store, done("1"), checkpoint("k", 1), reset("r"), done("2"))
        found = await store.terms.since(SinceRequest(CHAT, {}), "v1")
        assert [(one.turn_id, one.seq) for one in found] == [("1", 1), ("2", 4)]
