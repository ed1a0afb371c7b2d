"""Managing pages: pins, loads, equal calls, purging, and the terms of their passages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from pagefile.errors import HandleNotFoundError, InvalidTurnError, PagePurgedError
from pagefile.ports import PageTerms, PurgeRequest, Store
from pagefile.records import Page, Scope
from pagefile.testing.contracts.base import Contract
from pagefile.testing.contracts.pages import ADA, ANYBODY, BOB, LATER, TENANT, loadable
from pagefile.testing.drafts import AT, CHAT, page

ELSE = Scope("tenant", "ada", "else")
HIS = Scope("tenant", "bob", "his")


def names(pages: Sequence[Page]) -> list[str]:
    """The uuids, in order."""
    return [found.uuid for found in pages]


async def shelve(store: Store) -> None:
    """Pages of several owners, oldest first, three bytes each."""
    for minutes, (uuid, scope) in enumerate(
        (
            ("a", CHAT),
            ("b", ELSE),
            ("c", HIS),
            ("d", ANYBODY),
            ("e", CHAT),
            ("f", Scope("firm", "ada", "chat")),
        )
    ):
        await store.pages.put(page(uuid, uuid * 3, scope=scope, minutes=minutes, spans=((0, 1), (1, 3))))


async def purged(store: Store, scope: Scope, **conditions: object) -> list[str]:
    """The purged pages."""
    return names(await store.page_keeper.purge(replace(PurgeRequest(scope, LATER), **conditions)))


class PageKeeperContract(Contract):
    """`PageKeeper`."""

    async def test_tenants_are_those_with_a_text(self, store: Store) -> None:
        """In order; a tombstone does not count."""
        assert [] == await store.page_keeper.tenants()
        await shelve(store)
        assert ["firm", "tenant"] == await store.page_keeper.tenants()
        await purged(store, Scope("firm"), max_bytes=0)
        assert ["tenant"] == await store.page_keeper.tenants()

    async def test_a_page_is_known_without_its_text(self, store: Store) -> None:
        """Purged or not; an unknown or foreign page raises `HandleNotFoundError`."""
        await shelve(store)
        assert await store.page_keeper.page(CHAT, "b") == (await store.pages.load(CHAT, "b"))[0]
        await purged(store, TENANT, uuids=frozenset({"b"}))
        assert (await store.page_keeper.page(ADA, "b")).purged == LATER
        for scope, uuid in ((CHAT, "nope"), (BOB, "a"), (Scope("firm"), "a"), (ADA, "d")):
            with pytest.raises(HandleNotFoundError):
                await store.page_keeper.page(scope, uuid)

    async def test_pinning_is_for_whoever_may_load(self, store: Store) -> None:
        """Pinning is idempotent; an unknown, foreign or purged page raises."""
        await shelve(store)
        pinned = await store.page_keeper.pin(CHAT, "b", pinned=True)
        assert pinned.pinned
        assert await store.page_keeper.pin(CHAT, "b", pinned=True) == pinned
        assert (await store.pages.load(CHAT, "b"))[0] == pinned
        assert not (await store.page_keeper.pin(CHAT, "b", pinned=False)).pinned
        assert not (await store.page_keeper.page(CHAT, "b")).pinned
        for scope, uuid in ((CHAT, "nope"), (BOB, "a"), (Scope("firm"), "a"), (ADA, "d")):
            with pytest.raises(HandleNotFoundError):
                await store.page_keeper.pin(scope, uuid, pinned=True)
        await purged(store, CHAT, uuids=frozenset({"a"}))
        with pytest.raises(PagePurgedError):
            await store.page_keeper.pin(CHAT, "a", pinned=True)

    async def test_touching_counts_loads(self, store: Store) -> None:
        """Once each time a page is named; missing, purged and foreign ones are ignored, and the time never goes back."""
        await shelve(store)
        await purged(store, CHAT, uuids=frozenset({"e"}))
        await store.page_keeper.touch(CHAT, ["a", "nope", "b", "c", "e", "a"], LATER)
        await store.page_keeper.touch(CHAT, ["a"], AT)
        await store.page_keeper.touch(CHAT, [], AT)
        counted = [(found.uuid, found.loads, found.last_load) for found in await store.pages.list(TENANT)]
        assert counted == [
            ("e", 0, None),
            ("d", 0, None),
            ("c", 0, None),
            ("b", 1, LATER),
            ("a", 3, LATER),
        ]

    async def test_pinned_pages_are_of_a_conversation_or_a_user(self, store: Store) -> None:
        """Oldest first; a conversation's include those without a user, never another user's."""
        await shelve(store)
        for uuid in "edcba":
            await store.page_keeper.pin(TENANT, uuid, pinned=True)
        await store.page_keeper.pin(TENANT, "e", pinned=False)
        for scope, uuids in (
            (CHAT, "ad"),
            (ELSE, "b"),
            (ADA, "ab"),
            (Scope("tenant", "bob", "chat"), "d"),
            (ANYBODY, "d"),
            (TENANT, "abcd"),
            (Scope("firm"), ""),
        ):
            assert names(await store.page_keeper.pinned(scope)) == list(uuids)

    async def test_an_equal_call_gives_the_newest_page(self, store: Store) -> None:
        """Created at or after a given time, loadable from the scope and not purged; without a hash there is no match."""
        for minutes, (uuid, scope, call_hash) in enumerate(
            (("a", CHAT, "x"), ("b", ELSE, "x"), ("c", HIS, "x"), ("d", CHAT, "y"), ("e", CHAT, ""))
        ):
            await store.pages.put(page(uuid, uuid, scope=scope, minutes=minutes, call_hash=call_hash))

        async def equal(scope: Scope, call_hash: str, minutes: int = 0) -> str | None:
            found = await store.page_keeper.equal_call(scope, call_hash, AT + timedelta(minutes=minutes))
            return found and found.uuid

        assert (await equal(CHAT, "x"), await equal(ADA, "x"), await equal(BOB, "x")) == ("b", "b", "c")
        assert (await equal(ANYBODY, "x"), await equal(TENANT, "x"), await equal(CHAT, "y")) == (
            None,
            "c",
            "d",
        )
        assert (await equal(ADA, "x", 1), await equal(ADA, "x", 2)) == ("b", None)
        assert (await equal(CHAT, ""), await equal(CHAT, "z"), await equal(Scope("firm"), "x")) == (None,) * 3
        await purged(store, ADA, uuids=frozenset({"b"}))
        assert await equal(CHAT, "x") == "a"

    async def test_purging_leaves_a_tombstone(self, store: Store) -> None:
        """With everything but the text and passages; purging is idempotent."""
        await shelve(store)
        await store.page_keeper.touch(CHAT, ["a"], AT)
        before = await store.page_keeper.page(CHAT, "a")
        request = PurgeRequest(CHAT, LATER, frozenset({"a", "b", "nope"}))
        gone = await store.page_keeper.purge(request)
        assert gone == [replace(before, purged=LATER)]
        assert await store.page_keeper.purge(request) == []
        assert await store.page_keeper.page(CHAT, "a") == gone[0]
        assert await store.page_index.read(CHAT, ["a"]) == []
        assert await loadable(store, TENANT, "abcde") == set("bcde")

    async def test_purging_by_age_and_by_name(self, store: Store) -> None:
        """A page that meets any condition is purged, oldest first; one created exactly at the limit stays. No condition purges nothing."""
        await shelve(store)
        assert await purged(store, TENANT) == []
        before = AT + timedelta(minutes=1)
        assert await purged(store, TENANT, before=before, uuids=frozenset({"d", "c", "f"})) == ["a", "c", "d"]
        assert await loadable(store, TENANT, "abcde") == set("be")
        assert await loadable(store, Scope("firm"), "f") == {"f"}

    async def test_purging_by_size_takes_the_oldest(self, store: Store) -> None:
        """The remaining pages of the scope take at most `max_bytes`; pinned pages count but stay."""
        await shelve(store)
        assert await purged(store, TENANT, max_bytes=15) == []
        await store.page_keeper.pin(TENANT, "a", pinned=True)
        assert await purged(store, TENANT, max_bytes=14) == ["b"]
        assert await purged(store, TENANT, max_bytes=8, uuids=frozenset({"e"})) == ["c", "e"]
        assert await purged(store, TENANT, max_bytes=0) == ["d"]
        assert await loadable(store, TENANT, "abcde") == {"a"}

    async def test_purging_keeps_to_its_scope(self, store: Store) -> None:
        """A conversation's are its own pages and those without a user there; never another user's."""
        await shelve(store)
        assert await purged(store, BOB, before=LATER, uuids=frozenset("abde")) == ["c"]
        assert await purged(store, Scope("tenant", "bob", "chat"), max_bytes=0) == ["d"]
        assert await purged(store, CHAT, max_bytes=3) == ["a"]
        assert await purged(store, ADA, max_bytes=0) == ["b", "e"]

    async def test_pages_are_erased_alone(self, store: Store) -> None:
        """Including pinned ones and tombstones, without a trace; others' pages stay, and so does a text shared with another page."""
        await shelve(store)
        await store.page_keeper.pin(TENANT, "a", pinned=True)
        await purged(store, TENANT, uuids=frozenset({"b"}))
        assert 0 == await store.page_keeper.erase(BOB, ["a", "b", "nowhere"])
        assert 2 == await store.page_keeper.erase(TENANT, ["a", "b", "a"])
        assert await loadable(store, TENANT, "abcde") == set("cde")
        for uuid in "ab":
            with pytest.raises(HandleNotFoundError):
                await store.page_keeper.page(TENANT, uuid)
        assert "a" not in await store.page_index.uuids(TENANT)
        assert await loadable(store, Scope("firm"), "f") == {"f"}

    async def test_pinned_pages_are_never_purged(self, store: Store) -> None:
        """By no condition, until they are unpinned."""
        await shelve(store)
        await store.page_keeper.pin(CHAT, "a", pinned=True)
        everything = {"uuids": frozenset({"a"}), "before": LATER, "max_bytes": 0}
        assert await purged(store, ELSE, **everything) == ["b"]
        assert await purged(store, CHAT, **everything) == ["d", "e"]
        await store.page_keeper.pin(CHAT, "a", pinned=False)
        assert await purged(store, CHAT, **everything) == ["a"]

    async def test_a_text_goes_with_the_last_page_that_holds_it(self, store: Store) -> None:
        """Until then it counts for each of them."""
        for uuid, scope in (("a", CHAT), ("b", HIS)):
            await store.pages.put(page(uuid, "same", scope=scope))
        assert await purged(store, TENANT, max_bytes=4) == ["a"]
        assert (await store.pages.load(HIS, "b"))[1] == "same"
        assert (await store.erase(CHAT)).counts["blobs"] == 0
        assert await purged(store, HIS, max_bytes=3) == ["b"]
        assert (await store.erase(HIS)).counts["blobs"] == 0

    async def test_tombstones_are_erased(self, store: Store) -> None:
        """Erasing removes everything."""
        await shelve(store)
        await purged(store, CHAT, uuids=frozenset({"a"}))
        counts = (await store.erase(ADA)).counts
        assert (counts["tool_result_archive"], counts["blobs"], counts["archive_passage"]) == (3, 2, 4)
        with pytest.raises(HandleNotFoundError, match="no archived page"):
            await store.pages.load(TENANT, "a")


class PageIndexContract(Contract):
    """`PageIndex`."""

    async def test_living_pages_of_a_scope_oldest_first(self, store: Store) -> None:
        """Of a conversation, a user or a tenant; without purged ones."""
        await shelve(store)
        for scope, uuids in ((CHAT, "ade"), (ADA, "abe"), (ANYBODY, "d"), (TENANT, "abcde"), (BOB, "c")):
            assert await store.page_index.uuids(scope) == list(uuids)
        await purged(store, TENANT, uuids=frozenset("ac"))
        assert await store.page_index.uuids(TENANT) == ["b", "d", "e"]

    async def test_terms_come_back_as_they_were_written(self, store: Store) -> None:
        """None before they are written; writing again replaces them."""
        await shelve(store)
        spans = ((0, 1), (1, 3))
        assert await store.page_index.read(CHAT, ["a"]) == [PageTerms("a", spans, None)]
        for terms in (("", "头晕 血压"), ("x", "")):
            await store.page_index.write(CHAT, "a", terms)
            assert await store.page_index.read(CHAT, ["a"]) == [PageTerms("a", spans, terms)]

    async def test_passages_are_read_in_the_order_asked_for(self, store: Store) -> None:
        """Missing, purged and foreign pages are left out."""
        await shelve(store)
        await purged(store, CHAT, uuids=frozenset({"a"}))
        read = await store.page_index.read(CHAT, ["e", "nope", "a", "c", "d", "b"])
        assert [found.uuid for found in read] == ["e", "d", "b"]
        assert await store.page_index.read(CHAT, []) == []

    async def test_a_page_without_passages_has_nothing_to_index(self, store: Store) -> None:
        """Its terms exist and are empty."""
        await store.pages.put(page("p"))
        await store.page_index.write(CHAT, "p", [])
        assert await store.page_index.read(CHAT, ["p"]) == [PageTerms("p", (), ())]

    async def test_terms_are_one_for_each_passage(self, store: Store) -> None:
        """Any other number raises `InvalidTurnError` and changes nothing."""
        await shelve(store)
        for terms in ([], ["x"], ["x", "y", "z"]):
            with pytest.raises(InvalidTurnError):
                await store.page_index.write(CHAT, "a", terms)
        assert (await store.page_index.read(CHAT, ["a"]))[0].terms is None

    async def test_writing_to_a_page_that_is_gone_does_nothing(self, store: Store) -> None:
        """Unknown, purged or foreign."""
        await shelve(store)
        await purged(store, CHAT, uuids=frozenset({"a"}))
        for scope, uuid in ((CHAT, "nope"), (CHAT, "a"), (BOB, "b"), (Scope("firm"), "b")):
            await store.page_index.write(scope, uuid, ["x", "y"])
        assert (await store.page_index.read(ADA, ["b"]))[0].terms is None
