"""How indexes catch up and hits get their text."""

from collections.abc import Mapping

from pagefile.ports import SinceRequest, Store, TurnRef
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import CHAT, aborted, checkpoint, done, opened, reset

A, B, C = (Scope("tenant", user, name) for user, name in (("ada", "a"), ("bob", "b"), ("ada", "c")))


async def fill(store: Store) -> None:
    """Three conversations of two users; each has three done turns, an aborted one and an open one."""
    for scope in (C, A, B):
        for turn_id in ("1", "2", "x", "3"):
            await store.log.append(
                opened(turn_id, scope=scope) if turn_id == "x" else done(turn_id, scope=scope)
            )
            if turn_id == "x":
                await store.log.advance(aborted("x", scope=scope))
        await store.log.append(opened("y", scope=scope))


async def found(
    store: Store, scope: Scope, known: Mapping[str, int] | None = None, limit: int = 100
) -> list[tuple[str | None, int | None]]:
    """The positions of the turns."""
    turns = await store.source.since(SinceRequest(scope, known or {}, limit))
    return [(turn.scope.conversation, turn.seq) for turn in turns]


class TurnSourceContract(Contract):
    """`TurnSource`."""

    async def test_since_gives_done_turns_by_conversation_and_place(self, store: Store) -> None:
        """Ordered by conversation id, then `seq`; without open or aborted turns."""
        await fill(store)
        assert await found(store, Scope("tenant", "ada")) == [
            (name, seq) for name in "ac" for seq in (1, 2, 4)
        ]
        assert await found(store, Scope("tenant")) == [(name, seq) for name in "abc" for seq in (1, 2, 4)]
        assert await found(store, Scope("firm")) == []

    async def test_since_leaves_out_what_is_known(self, store: Store) -> None:
        """Only what came after the highest known `seq` of each conversation."""
        await fill(store)
        assert await found(store, Scope("tenant", "ada"), {"a": 2, "c": 4}) == [("a", 4)]
        assert await found(store, Scope("tenant"), {"a": 4, "b": 1, "c": 99}) == [("b", 2), ("b", 4)]

    async def test_since_stops_at_the_limit(self, store: Store) -> None:
        """Continuing with what is then known gives the rest."""
        await fill(store)
        assert await found(store, Scope("tenant"), limit=4) == [("a", 1), ("a", 2), ("a", 4), ("b", 1)]
        assert await found(store, Scope("tenant"), {"a": 4, "b": 1}, 2) == [("b", 2), ("b", 4)]
        assert await found(store, Scope("tenant"), limit=0) == []

    async def test_since_of_one_conversation(self, store: Store) -> None:
        """A scope with a conversation gives only that one, and nothing of another user's."""
        await fill(store)
        assert await found(store, C) == [("c", 1), ("c", 2), ("c", 4)]
        assert await found(store, Scope("tenant", None, "b")) == []
        assert await found(store, Scope("tenant", "ada", "b")) == []

    async def test_since_includes_what_was_reset_away(self, store: Store) -> None:
        """Turns before a reset or a checkpoint left the window, not the memory."""
        await store.log.append(done("1"))
        await store.log.mark(checkpoint("k", 1))
        await store.log.append(done("2"))
        await store.log.mark(reset("r"))
        await store.log.append(done("3"))
        turns = await store.source.since(SinceRequest(CHAT, {}))
        assert [(turn.id, turn.seq, turn.scope) for turn in turns] == [
            ("1", 1, CHAT),
            ("2", 3, CHAT),
            ("3", 5, CHAT),
        ]

    async def test_around_gives_turns_with_their_neighbours(self, store: Store) -> None:
        """In the requested order; neighbours are the adjacent done turns."""
        await fill(store)
        refs = [TurnRef("c", 4), TurnRef("a", 1), TurnRef("c", 2)]
        near = await store.source.around(Scope("tenant", "ada"), refs)
        assert [(place.turn.scope, place.turn.seq) for place in near] == [(C, 4), (A, 1), (C, 2)]
        places = [(place.before and place.before.seq, place.after and place.after.seq) for place in near]
        assert places == [(2, None), (None, 2), (1, 4)]

    async def test_around_leaves_out_what_is_not_there(self, store: Store) -> None:
        """Turns that are gone, were aborted, or belong to another user."""
        await fill(store)
        refs = [TurnRef("a", 3), TurnRef("a", 9), TurnRef("nope", 1), TurnRef("b", 1), TurnRef("a", 2)]
        near = await store.source.around(Scope("tenant", "ada"), refs)
        assert [(place.turn.scope.conversation, place.turn.seq) for place in near] == [("a", 2)]
        assert await store.source.around(A, [TurnRef("c", 1)]) == []
        assert await store.source.around(Scope("tenant"), []) == []
