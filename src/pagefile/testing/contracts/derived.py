"""The tiers' watermarks, and the terms of turns."""

from pagefile.ports import SinceRequest, Store, TurnTerms
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract
from pagefile.testing.contracts.source import A, B, C, fill
from pagefile.testing.drafts import CHAT, checkpoint, done, reset


class WatermarksContract(Contract):
    """`Watermarks`."""

    async def test_nothing_is_known_at_first(self, store: Store) -> None:
        """A tier that has never read anything has no watermarks and is behind on everything."""
        await fill(store)
        assert await store.watermarks.known(Scope("tenant"), "t") == {}
        behind = await store.watermarks.behind("t")
        assert [(one.scope, one.seq, one.last_seq) for one in behind] == [(A, 0, 4), (B, 0, 4), (C, 0, 4)]

    async def test_it_rises_and_never_falls(self, store: Store) -> None:
        """A lower position is ignored: a late writer undoes nothing."""
        await fill(store)
        await store.watermarks.advance(A, "t", 3, epoch=None)
        await store.watermarks.advance(A, "t", 2, epoch=None)
        assert await store.watermarks.known(A, "t") == {"a": 3}
        await store.watermarks.advance(A, "t", 4, epoch=None)
        assert await store.watermarks.known(A, "t") == {"a": 4}

    async def test_tiers_and_scopes_are_apart(self, store: Store) -> None:
        """A tier sees only its own marks, for a tenant, a user or a conversation."""
        await fill(store)
        for scope, seq in ((A, 1), (B, 2), (C, 4)):
            await store.watermarks.advance(scope, "t", seq, epoch=None)
        await store.watermarks.advance(A, "other", 4, epoch=None)
        assert await store.watermarks.known(Scope("tenant"), "t") == {"a": 1, "b": 2, "c": 4}
        assert await store.watermarks.known(Scope("tenant", "ada"), "t") == {"a": 1, "c": 4}
        assert await store.watermarks.known(Scope("tenant", "ada", "b"), "t") == {}
        assert await store.watermarks.known(Scope("tenant", None, "b"), "t") == {}
        assert await store.watermarks.known(B, "t") == {"b": 2}
        assert await store.watermarks.known(Scope("firm"), "t") == {}

    async def test_behind_is_what_was_written_since(self, store: Store) -> None:
        """Turns, checkpoints and resets advance a log; a tier at its end is not behind."""
        await fill(store)
        for scope in (A, B, C):
            await store.watermarks.advance(scope, "t", 4, epoch=None)
        assert await store.watermarks.behind("t") == []
        await store.log.append(done("4", scope=B))
        await store.log.mark(reset("r", scope=C))
        behind = await store.watermarks.behind("t")
        assert [(one.scope, one.seq, one.last_seq) for one in behind] == [(B, 4, 5), (C, 4, 5)]
        assert [one.scope for one in await store.watermarks.behind("t", limit=1)] == [B]
        assert await store.watermarks.behind("t", tenant="firm") == []
        assert len(await store.watermarks.behind("t", tenant="tenant")) == 2

    async def test_what_is_gone_has_no_watermark(self, store: Store) -> None:
        """Erasing removes them, and a missing conversation gets none."""
        await fill(store)
        await store.watermarks.advance(A, "t", 4, epoch=None)
        await store.watermarks.advance(Scope("tenant", "ada", "nope"), "t", 4, epoch=None)
        assert await store.watermarks.known(Scope("tenant"), "t") == {"a": 4}
        receipt = await store.erase(A)
        assert receipt.counts["watermarks"] == 1
        await store.watermarks.advance(A, "t", 4, epoch=None)
        assert await store.watermarks.known(Scope("tenant"), "t") == {}

    async def test_a_tier_begins_anew(self, store: Store) -> None:
        """Dropping resets one tier everywhere, and returns the number of conversations affected."""
        await fill(store)
        for scope in (A, B):
            await store.watermarks.advance(scope, "t", 4, epoch=None)
            await store.watermarks.advance(scope, "other", 4, epoch=None)
        assert await store.watermarks.tiers() == ["other", "t"]
        assert await store.watermarks.drop("t") == 2
        assert await store.watermarks.drop("t") == 0
        assert await store.watermarks.known(Scope("tenant"), "t") == {}
        assert await store.watermarks.known(Scope("tenant"), "other") == {"a": 4, "b": 4}


def _terms(name: str, seq: int, said: str, answered: str = "") -> TurnTerms:
    return TurnTerms(name, seq, "", done("x").at, said, answered)


async def _kept(
    store: Store, scope: Scope, analyzer: str = "v1"
) -> list[tuple[str, int, str | None, str | None]]:
    found = await store.terms.since(SinceRequest(scope, {}), analyzer)
    return [(one.conversation, one.seq, one.said, one.answered) for one in found]


class TermStoreContract(Contract):
    """`TermStore`."""

    async def test_turns_without_terms_are_told(self, store: Store) -> None:
        """The same turns in the same order as from the source, with positions and times but no terms yet."""
        await fill(store)
        for scope in (Scope("tenant"), Scope("tenant", "ada"), C, Scope("firm")):
            turns = await store.source.since(SinceRequest(scope, {"a": 1}))
            found = await store.terms.since(SinceRequest(scope, {"a": 1}), "v1")
            assert [(one.conversation, one.seq, one.turn_id, one.at) for one in found] == [
                (turn.scope.conversation, turn.seq, turn.id, turn.at) for turn in turns
            ]
            assert {(one.said, one.answered) for one in found} <= {(None, None)}

    async def test_terms_are_kept_and_replaced(self, store: Store) -> None:
        """Terms are read as written, byte for byte; the last write wins."""
        await fill(store)
        await store.terms.write(A, [_terms("a", 1, "old"), _terms("a", 2, "", "导演 是 谁")], "v1")
        await store.terms.write(A, [_terms("a", 1, "lost"), _terms("a", 1, "new words", "more")], "v1")
        assert await _kept(store, A) == [
            ("a", 1, "new words", "more"),
            ("a", 2, "", "导演 是 谁"),
            ("a", 4, None, None),
        ]

    async def test_terms_of_another_analyzer_count_as_none(self, store: Store) -> None:
        """With another analyzer a turn is returned again; its terms then replace the old ones."""
        await fill(store)
        await store.terms.write(A, [_terms("a", 1, "first")], "v1")
        assert (await _kept(store, A, "v2"))[0] == ("a", 1, None, None)
        await store.terms.write(A, [_terms("a", 1, "second")], "v2")
        assert (await _kept(store, A, "v2"))[0] == ("a", 1, "second", "")
        assert (await _kept(store, A, "v1"))[0] == ("a", 1, None, None)

    async def test_since_goes_on_behind_what_is_known(self, store: Store) -> None:
        """Limited, and continued like the source's."""
        await fill(store)
        first = await store.terms.since(SinceRequest(Scope("tenant"), {}, 4), "v1")
        assert [(one.conversation, one.seq) for one in first] == [("a", 1), ("a", 2), ("a", 4), ("b", 1)]
        rest = await store.terms.since(SinceRequest(Scope("tenant"), {"a": 4, "b": 1}, 2), "v1")
        assert [(one.conversation, one.seq) for one in rest] == [("b", 2), ("b", 4)]
        assert await store.terms.since(SinceRequest(Scope("tenant"), {}, 0), "v1") == []

    async def test_turns_that_are_gone_keep_nothing(self, store: Store) -> None:
        """Positions without a turn are ignored, and erasing removes the terms."""
        await fill(store)
        await store.terms.write(
            A, [_terms("a", 1, "one"), _terms("a", 99, "x"), _terms("nope", 1, "y")], "v1"
        )
        await store.terms.write(Scope("firm"), [_terms("a", 1, "foreign")], "v1")
        assert (await _kept(store, A))[0] == ("a", 1, "one", "")
        receipt = await store.erase(A)
        assert receipt.counts["turn_terms"] == 1
        await store.log.append(done("1", scope=A))
        assert await _kept(store, A) == [("a", 1, None, None)]

    async def test_what_a_reset_hides_from_windows_keeps_its_terms(self, store: Store) -> None:
        """A reset removes turns from the window, not from memory."""
        await store.log.append(done("1"))
        await store.log.mark(checkpoint("k", 1))
        await store.log.mark(reset("r"))
        await store.log.append(done("2"))
        found = await store.terms.since(SinceRequest(CHAT, {}), "v1")
        assert [(one.turn_id, one.seq) for one in found] == [("1", 1), ("2", 4)]
