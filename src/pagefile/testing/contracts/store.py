"""Erasing, describing, closing."""

import pytest

from pagefile.errors import ClosedError, ConflictError, HandleNotFoundError
from pagefile.ports import EntryQuery, HeadQuery, PurgeRequest, SinceRequest, Store, TurnTerms
from pagefile.records import Scope
from pagefile.testing.clock import FakeClock
from pagefile.testing.contracts.base import Contract, everything, head_of
from pagefile.testing.drafts import AT, CHAT, call, checkpoint, done, fact, opened, page, picturing, view

ADA, BOB, TENANT = Scope("tenant", "ada"), Scope("tenant", "bob"), Scope("tenant")
_NOTHING = {
    "ai_message": 0,
    "conversations": 0,
    "conversation_summaries": 0,
    "facts": 0,
    "fact_revisions": 0,
    "tool_result_archive": 0,
    "archive_passage": 0,
    "blobs": 0,
    "context_calls": 0,
    "sessions": 0,
    "watermarks": 0,
    "turn_terms": 0,
    "items": 0,
    "attachments": 0,
}


async def furnish(store: Store, scope: Scope, mark: str) -> None:
    """Writes something to every port."""
    await store.log.append(picturing(f"{mark}1", mark.encode(), scope=scope))
    await store.log.append(opened(f"{mark}2", scope=scope))
    await store.log.mark(checkpoint(f"{mark}3", 1, scope=scope))
    await store.facts.put(fact(f"{mark}-fact", scope=scope))
    await store.pages.put(page(f"{mark}-page", f"text {mark}", scope=scope, spans=((0, 4),)))
    await store.calls.add([call(f"{mark}-call", scope=scope)], keep=10)
    await store.watermarks.advance(scope, "tier", 1, epoch=None)
    await store.terms.write(scope, [TurnTerms(scope.conversation or "", 1, "", AT, "said", "")], "v1")


async def left(store: Store, scope: Scope) -> list[int]:
    """How much a scope still has."""
    return [
        len(await store.reader.heads(HeadQuery(scope))),
        len(await store.source.since(SinceRequest(scope, {}))),
        len(await store.facts.list(scope)),
        len(await store.pages.list(scope)),
        len(await store.calls.list(scope)),
    ]


class StoreContract(Contract):
    """`Store` itself."""

    async def test_erasing_a_conversation_takes_all_of_it(self, store: Store, clock: FakeClock) -> None:
        """Every table is counted; the user's other conversations stay."""
        other = Scope("tenant", "ada", "else")
        await furnish(store, CHAT, "a")
        await furnish(store, other, "b")
        receipt = await store.erase(CHAT)
        one = dict.fromkeys(_NOTHING, 1)
        assert receipt.counts == {**one, "ai_message": 3, "items": 0, "blobs": 2}
        assert (receipt.scope, receipt.at, receipt.total) == (CHAT, clock.now(), 16)
        assert await everything(store) == []
        assert not (await head_of(store)).exists
        assert await store.sessions.get(CHAT) is None
        with pytest.raises(HandleNotFoundError):
            await store.pages.load(CHAT, "a-page")
        assert await left(store, ADA) == [1, 1, 1, 1, 1]
        assert len(await everything(store, other)) == 3

    async def test_erasing_a_user_takes_all_their_conversations(self, store: Store) -> None:
        """Including facts, pages and calls; other users and tenants stay."""
        await furnish(store, CHAT, "a")
        await furnish(store, Scope("tenant", "ada", "else"), "b")
        await furnish(store, Scope("tenant", "bob", "his"), "c")
        await furnish(store, Scope("firm", "ada", "chat"), "d")
        await store.facts.put(fact("loose", scope=ADA))
        receipt = await store.erase(ADA)
        assert (receipt.counts["conversations"], receipt.counts["facts"]) == (2, 3)
        assert await left(store, ADA) == [0, 0, 0, 0, 0]
        assert await left(store, BOB) == [1, 1, 1, 1, 1]
        assert await left(store, Scope("firm", "ada")) == [1, 1, 1, 1, 1]

    async def test_erasing_a_tenant_takes_everything_of_it(self, store: Store) -> None:
        """With and without users."""
        await furnish(store, CHAT, "a")
        await furnish(store, Scope("tenant", "bob", "his"), "b")
        await store.log.append(done("t", scope=Scope("tenant", None, "nobody")))
        await store.calls.add([call("x", scope=TENANT)], keep=5)
        await furnish(store, Scope("firm", "ada", "chat"), "c")
        receipt = await store.erase(TENANT)
        assert (receipt.counts["conversations"], receipt.counts["context_calls"]) == (3, 3)
        assert await left(store, TENANT) == [0, 0, 0, 0, 0]
        assert await left(store, Scope("firm")) == [1, 1, 1, 1, 1]

    async def test_erasing_nothing_counts_nothing(self, store: Store) -> None:
        """Erasing is idempotent."""
        await furnish(store, CHAT, "a")
        await store.erase(ADA)
        for scope in (ADA, CHAT, TENANT):
            assert (await store.erase(scope)).counts == _NOTHING

    async def test_a_conversation_of_another_user_is_not_erased(self, store: Store) -> None:
        """It raises `ConflictError`, and nothing is erased."""
        await furnish(store, CHAT, "a")
        with pytest.raises(ConflictError):
            await store.erase(Scope("tenant", "bob", "chat"))
        assert await left(store, ADA) == [1, 1, 1, 1, 1]

    async def test_a_conversation_can_begin_again_after_erasing(self, store: Store) -> None:
        """From the first position, for any user."""
        await furnish(store, CHAT, "a")
        await store.erase(CHAT)
        bob = Scope("tenant", "bob", "chat")
        turn = await store.log.append(done("a1", scope=bob))
        assert (turn.seq, turn.scope) == (1, bob)

    async def test_a_store_describes_itself(self, store: Store) -> None:
        """Its kind and location."""
        described = await store.describe()
        assert {"backend", "version", "place", "bytes", "read_only"} <= described.keys()
        assert described["read_only"] is False

    async def test_closing_twice_is_closing_once(self, store: Store, clock: FakeClock) -> None:
        """Afterwards every verb raises `ClosedError`."""
        await store.log.append(done("a"))
        await store.close()
        await store.close()
        for verb in (
            store.log.append(done("b")),
            store.log.restore([]),
            store.reader.view(view()),
            store.reader.entries(EntryQuery(CHAT)),
            store.source.since(SinceRequest(CHAT, {})),
            store.facts.list(ADA),
            store.pages.load(CHAT, "p"),
            store.pages.put(page("p")),
            store.page_keeper.page(CHAT, "p"),
            store.page_keeper.touch(CHAT, [], clock.now()),
            store.page_keeper.purge(PurgeRequest(CHAT, clock.now())),
            store.page_index.uuids(CHAT),
            store.page_index.write(CHAT, "p", []),
            store.media.load(CHAT, "hash"),
            store.calls.list(CHAT),
            store.sessions.get(CHAT),
            store.sessions.put(CHAT, {}),
            store.erase(CHAT),
            store.describe(),
        ):
            with pytest.raises(ClosedError):
                await verb
