"""Reading raw rows, and repairing derived data."""

from dataclasses import replace
from typing import Any

import pytest

from pagefile.ports import After, Auditor, Store, TurnTerms
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract, write
from pagefile.testing.drafts import AT, checkpoint, done, fact, page, reset
from pagefile.testing.scopes import CHAT, TENANT


class AuditorContract(Contract):
    """`Auditor`."""

    @pytest.fixture
    def audit(self, store: Store) -> Any:
        """The store's auditor, which must exist."""
        assert store.audit is not None
        return store.audit

    async def test_a_conversation_is_kept_with_its_counts(self, store: Store, audit: Auditor) -> None:
        """The counts match the log, along with the current summary and the tiers' watermarks."""
        *_, mark = await write(store, *map(done, "abc"), checkpoint("k", 2))
        await store.watermarks.advance(CHAT, "tier", 2, epoch=None)
        kept: Any = await audit.conversation(CHAT)
        counters = kept.counters
        assert (counters.last_seq, counters.covered_through_seq) == (4, 2)
        assert (counters.turns, counters.live_turns) == (3, 1)
        assert (counters.checkpoint_id, counters.checkpoint_version) == ("k", 1)
        assert counters.last_created == mark.created
        assert (kept.scope, kept.marks, kept.summary) == (CHAT, {"tier": 2}, mark)
        await store.log.mark(reset("r"))
        kept = await audit.conversation(CHAT)
        assert kept.summary is None

    async def test_lists_go_on_behind_a_place(self, store: Store, audit: Auditor) -> None:
        """Ordered by tenant and name, for one tenant or all; each is listed once."""
        scopes = [Scope(tenant, None, name) for tenant in ("a", "b") for name in ("x", "y", "z")]
        await write(store, *(done("t", scope=scope) for scope in scopes))
        found: list[Scope] = []
        after = After(limit=2)
        while slice_ := await audit.conversations(after):
            found += [kept.scope for kept in slice_]
            after = After(found[-1].tenant, found[-1].conversation or "", limit=2)
        assert found == scopes
        assert [kept.scope for kept in await audit.conversations(After("b", "", "b"))] == scopes[3:]
        assert await audit.size(None) == 6
        assert await audit.size("b") == 3

    async def test_entries_are_read_in_slices_with_open_ones_last(self, store: Store, audit: Auditor) -> None:
        """Each with its author; a single entry can be read by id."""
        _, *turns, mark = await write(
            store, replace(done("open"), status="open"), *map(done, ("t0", "t1", "t2")), checkpoint("k", 1)
        )
        rows = await audit.entries(CHAT, after_seq=0, limit=3)
        assert [row.entry for row in rows] == turns
        assert {row.writer for row in rows} == {CHAT.user}
        rest = await audit.entries(CHAT, after_seq=3, limit=3)
        places = [(row.id, row.kind, row.seq) for row in rest]
        assert places == [("k", "checkpoint", 4), ("open", "turn", None)]
        assert rest[0].entry == mark
        found = [await audit.entry(CHAT, name) for name in ("t1", "nowhere")]
        assert [one and one.entry for one in found] == [turns[1], None]

    async def test_pages_are_kept_with_what_their_texts_take(self, store: Store, audit: Auditor) -> None:
        """Including tombstones; a missing page has no length."""
        tombstone = replace(page("q"), page=replace(page("q").page, purged=AT))
        stored, gone = await write(store, page("p", "the text", spans=[(0, 8)]), tombstone)
        kept = await audit.pages(After())
        assert [(one.uuid, one.page) for one in kept] == [("p", stored), ("q", gone)]
        assert [one.blob_bytes for one in kept] == [stored.stored_bytes, None]
        lengths = await audit.lengths(CHAT.tenant, ["p", "q", "r"])
        assert {uuid: one.purged for uuid, one in lengths.items()} == {"p": None, "q": AT}
        await audit.set_spans(CHAT.tenant, "p", [(0, 3), (3, 8)])
        assert (await store.page_index.read(TENANT, ["p"]))[0].spans == ((0, 3), (3, 8))
        await audit.set_bytes(CHAT.tenant, "p")
        assert (await audit.pages(After()))[0].page == stored

    async def test_users_have_facts(self, store: Store, audit: Auditor) -> None:
        """Each user is listed once, ordered by tenant and id."""
        await write(store, fact("f"), fact("g"))
        (owner,) = await audit.users(After())
        assert (owner.tenant, owner.conversation) == (CHAT.tenant, None)

    async def test_a_watermark_may_be_put_back(self, store: Store, audit: Auditor) -> None:
        """Only an auditor can do that."""
        await store.log.append(done("t"))
        await store.watermarks.advance(CHAT, "tier", 99, epoch=None)
        await audit.set_mark(CHAT, "tier", 1)
        assert await store.watermarks.known(CHAT, "tier") == {CHAT.conversation: 1}

    async def test_a_good_store_has_no_orphans_and_no_errors(self, store: Store, audit: Auditor) -> None:
        """Whatever was written and erased."""
        await write(store, done("t0"), done("t1"))
        await store.terms.write(TENANT, [TurnTerms("chat", 1, "t0", AT, "a", "b")], "words")
        await store.watermarks.advance(CHAT, "tier", 2, epoch=None)
        await store.pages.put(page("p", "the text", spans=[(0, 8)]))
        for _ in range(2):
            assert await audit.orphans(None, limit=10) == []
            assert await audit.lost(None) == []
            assert await audit.errors(full=True) == []
            assert await audit.drop([]) == 0
            await store.erase(TENANT)
        assert await audit.conversations(After()) == []

    async def test_a_conversation_that_never_was_is_not_there(self, audit: Auditor) -> None:
        """Nor does it have entries."""
        assert await audit.conversation(CHAT) is None
        assert await audit.entries(CHAT, after_seq=0, limit=5) == []
