"""Reading the log."""

import anyio
import pytest

from pagefile.errors import ConflictError, NotFoundError
from pagefile.ports import EntryQuery, HeadQuery, LogView, Store
from pagefile.records import NEVER, Head, Scope
from pagefile.testing.clock import FakeClock
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import CHAT, aborted, added, checkpoint, done, opened, reset, view

OTHER = Scope("tenant", "bob", "chat")


async def talk(store: Store, count: int, *, tokens: int = 10, scope: Scope = CHAT) -> None:
    """Records turns t1, t2 …"""
    for number in range(1, count + 1):
        await store.log.append(done(f"t{number}", tokens=tokens, scope=scope))


async def seen(store: Store, *, budget: int, least: int = 0) -> list[int | None]:
    """The positions of the turns a window gets."""
    return [turn.seq for turn in (await store.reader.view(view(budget=budget, least=least))).turns]


class LogReaderContract(Contract):
    """`LogReader`."""

    async def test_a_conversation_nobody_wrote_to_is_empty(self, store: Store) -> None:
        """An empty view without an error, and reading creates nothing."""
        found = await store.reader.view(view())
        assert found == LogView(Head(CHAT, None, NEVER, NEVER, 0, 0, 0, 0, 0, 0), None, ())
        assert not found.head.exists
        assert await store.reader.entries(EntryQuery(CHAT)) == []
        assert await store.reader.heads(HeadQuery(Scope("tenant"))) == []

    async def test_a_view_stops_before_the_budget_is_exceeded(self, store: Store) -> None:
        """The newest live turns, oldest first, until the next would exceed it."""
        await talk(store, 5)
        assert await seen(store, budget=30) == [3, 4, 5]
        assert await seen(store, budget=39) == [3, 4, 5]
        assert await seen(store, budget=9) == []
        assert await seen(store, budget=10_000) == [1, 2, 3, 4, 5]

    async def test_a_view_has_at_least_the_turns_asked_for(self, store: Store) -> None:
        """`min_turns` are read whatever they cost."""
        await talk(store, 5)
        assert await seen(store, budget=0, least=2) == [4, 5]
        assert await seen(store, budget=30, least=2) == [3, 4, 5]
        assert await seen(store, budget=0, least=99) == [1, 2, 3, 4, 5]

    async def test_a_view_has_no_gaps(self, store: Store) -> None:
        """A small turn before a large one is not picked out."""
        for turn_id, tokens in (("a", 1), ("b", 100), ("c", 10)):
            await store.log.append(done(turn_id, tokens=tokens))
        assert await seen(store, budget=50) == [3]

    async def test_a_view_has_only_live_done_turns(self, store: Store) -> None:
        """Nothing before the reset or the checkpoint, no open or aborted turn."""
        await talk(store, 2)
        await store.log.mark(reset("r"))
        await store.log.append(done("a"))
        await store.log.append(done("b"))
        await store.log.append(opened("c"))
        await store.log.append(opened("d"))
        await store.log.advance(aborted("d"))
        await store.log.mark(checkpoint("k", 4))
        found = await store.reader.view(view())
        assert [turn.id for turn in found.turns] == ["b"]
        assert (found.head.reset_seq, found.head.covered_through_seq, found.head.turns) == (3, 4, 2)

    async def test_a_view_brings_the_open_turn_it_is_for(self, store: Store) -> None:
        """With its steps so far; a missing or ended one raises `NotFoundError`."""
        with pytest.raises(NotFoundError):
            await store.reader.view(view(open_turn="a"))
        await store.log.append(opened("a"))
        stepped = await store.log.advance(added("a"))
        assert (await store.reader.view(view(open_turn="a"))).open_turn == stepped
        assert (await store.reader.view(view())).open_turn is None
        await store.log.advance(aborted("a"))
        for turn_id in ("a", "b"):
            with pytest.raises(NotFoundError):
                await store.reader.view(view(open_turn=turn_id))

    async def test_a_conversation_of_another_user_conflicts(self, store: Store) -> None:
        """Not even for a reader that names no user."""
        await talk(store, 1)
        for scope in (OTHER, Scope("tenant", None, "chat")):
            with pytest.raises(ConflictError):
                await store.reader.view(view(scope=scope))
            with pytest.raises(ConflictError):
                await store.reader.entries(EntryQuery(scope))

    async def test_the_head_knows_the_agent_and_the_times(self, store: Store, clock: FakeClock) -> None:
        """The latest agent, when the conversation began, and when it was last written to."""
        await store.log.append(done("a", agent="triage"))
        clock.advance(10)
        await store.log.append(done("b"))
        head = (await store.reader.view(view())).head
        assert (head.agent, (head.updated - head.created).total_seconds()) == ("triage", 10)
        clock.advance(-60)
        await store.log.append(opened("c", agent="pharmacy"))
        after = (await store.reader.view(view())).head
        assert (after.agent, after.updated) == ("pharmacy", head.updated)

    async def test_a_view_is_one_snapshot(self, store: Store) -> None:
        """Counters and turns are consistent, whatever is written meanwhile."""

        async def write() -> None:
            for number in range(60):
                await store.log.append(done(f"t{number}"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for _ in range(30):
                found = await store.reader.view(view())
                assert found.head.live_turns == len(found.turns) == found.head.last_seq
                assert found.head.live_tokens == sum(turn.tokens for turn in found.turns)

    async def test_entries_ascend_and_open_turns_stand_last(self, store: Store) -> None:
        """Ascending by `seq`; turns without one come last, in the order they began."""
        await store.log.append(opened("x"))
        await store.log.append(opened("y"))
        await talk(store, 2)
        found = await store.reader.entries(EntryQuery(CHAT))
        assert [entry.id for entry in found] == ["t1", "t2", "x", "y"]

    async def test_entries_are_chosen_by_kind_and_status(self, store: Store) -> None:
        """Statuses filter turns only."""
        await talk(store, 1)
        await store.log.append(opened("x"))
        await store.log.append(opened("y"))
        await store.log.advance(aborted("y"))
        await store.log.mark(checkpoint("k", 1))
        await store.log.mark(reset("r"))

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
        heads = await store.reader.heads(HeadQuery(Scope("tenant", "ada")))
        assert [(head.scope.conversation, head.turns) for head in heads] == [("b", 2), ("a", 1), ("c", 1)]

    async def test_heads_are_of_a_tenant_a_user_or_one_conversation(self, store: Store) -> None:
        """Each scope lists only its own."""
        scopes = [Scope("tenant", "ada", "a"), Scope("tenant", "bob", "b"), Scope("tenant", None, "c")]
        for scope in (*scopes, Scope("firm", "ada", "a")):
            await talk(store, 1, scope=scope)

        async def listed(scope: Scope) -> list[Scope]:
            return [head.scope for head in await store.reader.heads(HeadQuery(scope))]

        assert await listed(Scope("tenant")) == scopes
        assert await listed(Scope("tenant", "ada")) == scopes[:1]
        assert await listed(Scope("tenant", None, "b")) == []
        assert await listed(Scope("tenant", "bob", "b")) == [scopes[1]]
        assert await listed(Scope("tenant", "bob", "a")) == []
        assert await listed(Scope("tenant", "bob", "c")) == []
        assert await listed(Scope("tenant", None, "c")) == [scopes[2]]
        assert await listed(Scope("nobody")) == []

    async def test_a_list_of_heads_goes_on_behind_a_conversation(
        self, store: Store, clock: FakeClock
    ) -> None:
        """The pages together are the whole list; an `after` that is not in it raises `NotFoundError`."""
        names = [f"c{number}" for number in range(7)]
        for number, name in enumerate(names):
            await talk(store, 1, scope=Scope("tenant", "ada", name))
            clock.advance(number % 2)
        whole = [head.scope.conversation for head in await store.reader.heads(HeadQuery(Scope("tenant")))]
        found: list[str | None] = []
        while slice_ := await store.reader.heads(
            HeadQuery(Scope("tenant"), limit=2, after=found[-1] if found else None)
        ):
            found += [head.scope.conversation for head in slice_]
        assert found == whole
        assert sorted(name for name in found if name) == names
        for after, scope in (("nope", Scope("tenant")), ("c1", Scope("tenant", "bob"))):
            with pytest.raises(NotFoundError):
                await store.reader.heads(HeadQuery(scope, after=after))
