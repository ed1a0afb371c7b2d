"""Archived pages: storing and loading them, managing them, and the terms of their passages; the images and files of turns."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from pagefile import errors
from pagefile.content import Message, ToolResult
from pagefile.ports import EmbeddingModel, EntryQuery, PageDraft, PageTerms, PurgeRequest, Store
from pagefile.records import Page, Scope
from pagefile.testing.contracts.base import Contract, changes_nothing, refused, write
from pagefile.testing.contracts.messages import CALL, SEEN
from pagefile.testing.drafts import AT, extended, opened, page, picture, picturing, step
from pagefile.testing.scopes import ADA, ANYBODY, BOB, CHAT, ELSE, FIRM, FIRM_CHAT, HIS, STRANGER, TENANT

LATER = AT + timedelta(hours=1)


async def loadable(store: Store, scope: Scope, uuids: Sequence[str]) -> set[str]:
    """The pages among these that a scope may load."""
    found: set[str] = set()
    for uuid in uuids:
        try:
            found.add((await store.pages.load(scope, uuid))[0].uuid)
        except errors.HandleNotFoundError:
            continue
    return found


class PageStoreContract(Contract):
    """`PageStore`."""

    @pytest.mark.parametrize("text", ["", "x", "长" * 50_000, "line\r\n\ttab\n", "🙂 é e\u0301"])
    async def test_a_page_comes_back_byte_for_byte(self, store: Store, text: str) -> None:
        draft = page("p", text)
        stored = await store.pages.put(draft)
        assert stored == replace(draft.page, stored_bytes=stored.stored_bytes)
        assert await store.pages.load(CHAT, "p") == (stored, text)

    async def test_every_field_of_a_page_comes_back(self, store: Store) -> None:
        """As given by the caller; only the stored size is set by the store."""
        known = replace(page("p").page, input=("x", {"y": None}), call_hash="call", thread="thread")
        given = replace(known, pinned=True, loads=3, last_load=LATER, stored_bytes=10**9)
        stored = await store.pages.put(PageDraft(given, "z" * 1000))
        assert stored == replace(given, input=["x", {"y": None}], stored_bytes=stored.stored_bytes)
        assert 0 < stored.stored_bytes < 100
        assert await store.pages.list(CHAT) == [stored]

    async def test_an_unknown_or_foreign_page_is_not_found(self, store: Store) -> None:
        await store.pages.put(page("p"))
        for scope, uuid in ((CHAT, "q"), (BOB, "p"), (FIRM_CHAT, "p")):
            await refused(errors.HandleNotFoundError, store.pages.load(scope, uuid))

    async def test_a_page_follows_its_user(self, store: Store) -> None:
        """Into every conversation; a page without a user stays in its own."""
        await write(store, page("hers"), page("nobody's", scope=ANYBODY))
        both = "hers", "nobody's"
        theirs = {CHAT: both, ADA: both[:1], ELSE: both[:1], BOB: (), STRANGER: both[1:], ANYBODY: both[1:]}
        theirs |= {Scope("tenant", None, "else"): (), TENANT: both}
        for scope, uuids in theirs.items():
            assert await loadable(store, scope, both) == set(uuids)

    async def test_equal_text_may_belong_to_many_pages(self, store: Store) -> None:
        """Erasing one of them leaves the others intact."""
        await write(store, page("p", "same", scope=ADA), page("q", "same", scope=BOB))
        assert (await store.erase(ADA)).counts["blobs"] == 0
        assert (await store.pages.load(BOB, "q"))[1] == "same"
        assert (await store.erase(BOB)).counts["blobs"] == 1

    async def test_a_uuid_is_put_once(self, store: Store) -> None:
        """Writing the same page again returns what is stored; another text conflicts."""
        draft = page("p")
        stored = await store.pages.put(draft)
        assert await store.pages.put(replace(draft, page=replace(draft.page, tokens=99))) == stored
        for other in (page("p", "else"), page("p", scope=BOB)):
            await refused(errors.ConflictError, store.pages.put(other))
        assert await store.pages.load(CHAT, "p") == (stored, draft.text)

    async def test_a_purged_page_says_what_it_was(self, store: Store) -> None:
        """`PagePurgedError` tells a model the uuid, the tool, the time and the summary; to other users it is unknown."""
        await store.pages.put(page("p"))
        await store.page_keeper.purge(PurgeRequest(CHAT, LATER, frozenset({"p"})))
        told = r"'p'.*'search'.*2026-02-09 09:00.*three reasons"
        await refused(errors.PagePurgedError, store.pages.load(CHAT, "p"), match=told)
        for scope in (BOB, FIRM):
            await refused(errors.HandleNotFoundError, store.pages.load(scope, "p"), match="no archived page")

    async def test_a_purged_page_put_again_takes_the_place_of_its_tombstone(self, store: Store) -> None:
        """It has a text, passages and a time again; another text or user still conflicts."""
        await store.pages.put(page("p", spans=((0, 3),)))
        await store.page_keeper.purge(PurgeRequest(CHAT, LATER, frozenset({"p"})))
        for other in (page("p", "else"), page("p", scope=BOB)):
            await refused(errors.ConflictError, store.pages.put(other))
        again = await store.pages.put(page("p", minutes=5, spans=((0, 9), (9, 16))))
        assert (again.purged, again.created) == (None, AT + timedelta(minutes=5))
        assert await store.pages.load(CHAT, "p") == (again, "the whole result")
        assert await store.page_index.read(CHAT, ["p"]) == [PageTerms("p", ((0, 9), (9, 16)), None)]

    async def test_a_tombstone_can_be_put(self, store: Store) -> None:
        """Unchanged, for imports; none of its text is stored."""
        given = replace(page("p").page, purged=LATER, stored_bytes=77, pinned=True)
        tombstone = await store.pages.put(PageDraft(given, "the whole result", ((0, 3),)))
        assert tombstone == replace(given, pinned=False)
        assert await store.pages.list(CHAT) == [tombstone]
        await refused(errors.PagePurgedError, store.pages.load(CHAT, "p"))
        assert await store.page_index.read(CHAT, ["p"]) == []
        living = await store.pages.put(page("p"))
        assert await store.pages.put(PageDraft(given, "")) == living

    async def test_pages_are_listed_newest_first(self, store: Store) -> None:
        """Of a conversation, a user or a tenant; `after` continues after a uuid."""
        scopes = (CHAT, CHAT, ADA, BOB, CHAT, ANYBODY)
        for uuid, minutes, scope in zip("abcdef", (1, 3, 2, 4, 3, 0), scopes, strict=True):
            await store.pages.put(page(uuid, uuid, scope=scope, minutes=minutes))

        async def listed(scope: Scope, *, limit: int = 100, after: str | None = None) -> str:
            return "".join(found.uuid for found in await store.pages.list(scope, limit=limit, after=after))

        theirs = {CHAT: "ebaf", ADA: "ebca", TENANT: "debcaf"}
        assert theirs == {scope: await listed(scope) for scope in theirs}
        assert await listed(ADA, limit=2, after="e") == "bc"
        assert await listed(TENANT, after="b") == "caf"
        assert await listed(TENANT, limit=0) == ""
        for scope, after in ((ADA, "d"), (CHAT, "c"), (TENANT, "nope")):
            await refused(errors.NotFoundError, store.pages.list(scope, after=after))


def names(pages: Sequence[Page]) -> list[str]:
    return [found.uuid for found in pages]


class StoredPages(Contract):
    """Pages of several owners, oldest first, three bytes each."""

    @pytest.fixture
    async def filled_store(self, store: Store) -> Store:
        scopes = (CHAT, ELSE, HIS, ANYBODY, CHAT, FIRM_CHAT)
        for uuid, minutes, scope in zip("abcdef", range(6), scopes, strict=True):
            await store.pages.put(page(uuid, uuid * 3, scope=scope, minutes=minutes, spans=((0, 1), (1, 3))))
        return store


async def purged(store: Store, scope: Scope, **conditions: object) -> list[str]:
    return names(await store.page_keeper.purge(replace(PurgeRequest(scope, LATER), **conditions)))


class PageKeeperContract(StoredPages):
    """`PageKeeper`."""

    async def test_tenants_are_those_with_a_text(self, filled_store: Store) -> None:
        """In order; a tombstone does not count."""
        assert ["firm", "tenant"] == await filled_store.page_keeper.tenants()
        for scope, left in ((FIRM, ["tenant"]), (TENANT, [])):
            await purged(filled_store, scope, max_bytes=0)
            assert left == await filled_store.page_keeper.tenants()

    async def test_a_page_is_known_without_its_text(self, filled_store: Store) -> None:
        """Purged or not; an unknown or foreign page raises `HandleNotFoundError`."""
        assert await filled_store.page_keeper.page(CHAT, "b") == (await filled_store.pages.load(CHAT, "b"))[0]
        await purged(filled_store, TENANT, uuids=frozenset({"b"}))
        assert (await filled_store.page_keeper.page(ADA, "b")).purged == LATER
        for scope, uuid in ((CHAT, "nope"), (BOB, "a"), (FIRM, "a"), (ADA, "d")):
            await refused(errors.HandleNotFoundError, filled_store.page_keeper.page(scope, uuid))

    async def test_pages_are_named_together(self, filled_store: Store) -> None:
        """Purged or not, oldest first; unknown and foreign ones are left out."""
        await purged(filled_store, TENANT, uuids=frozenset({"b"}))
        found = await filled_store.page_keeper.named(ADA, ["e", "b", "nope", "c", "b"])
        assert names(found) == ["b", "e"]
        assert found[0] == await filled_store.page_keeper.page(ADA, "b")
        assert await filled_store.page_keeper.named(ADA, []) == []

    async def test_pages_are_found_by_their_text(self, store: Store) -> None:
        """Of whoever may load them, by the hash of the text, oldest first, as long as they have one."""
        key = hashlib.sha256(b"same").hexdigest()
        for minutes, (uuid, scope) in enumerate((("b", CHAT), ("a", ELSE), ("c", HIS))):
            await store.pages.put(page(uuid, "same", scope=scope, minutes=minutes))
        await store.pages.put(page("d", "other"))
        assert names(await store.page_keeper.holding(ADA, [key, "0" * 64])) == ["b", "a"]
        assert names(await store.page_keeper.holding(FIRM, [key])) == []
        await purged(store, ADA, uuids=frozenset({"b"}))
        assert names(await store.page_keeper.holding(ADA, [key])) == ["a"]

    async def test_spared_pages_go_only_by_name(self, filled_store: Store) -> None:
        """By age and by size they stay, and `due` says so beforehand."""
        spared, before = frozenset({"a", "b"}), AT + timedelta(minutes=3)
        request = PurgeRequest(TENANT, LATER, None, before, spared=spared)
        assert names(await filled_store.page_keeper.due(request)) == ["c"]
        assert names(await filled_store.page_keeper.purge(request)) == ["c"]
        assert await purged(filled_store, TENANT, max_bytes=0, spared=spared) == ["d", "e"]
        assert await purged(filled_store, TENANT, uuids=frozenset({"a"}), spared=spared) == ["a"]

    async def test_pinning_is_for_whoever_may_load(self, filled_store: Store) -> None:
        """Pinning is idempotent; an unknown, foreign or purged page raises."""
        for pinned in (True, True, False):
            found = await filled_store.page_keeper.pin(CHAT, "b", pinned=pinned)
            assert found.pinned is pinned
            assert (
                (await filled_store.pages.load(CHAT, "b"))[0]
                == found
                == await filled_store.page_keeper.page(CHAT, "b")
            )
        for scope, uuid in ((CHAT, "nope"), (BOB, "a"), (FIRM, "a"), (ADA, "d")):
            await refused(errors.HandleNotFoundError, filled_store.page_keeper.pin(scope, uuid, pinned=True))
        await purged(filled_store, CHAT, uuids=frozenset({"a"}))
        await refused(errors.PagePurgedError, filled_store.page_keeper.pin(CHAT, "a", pinned=True))

    async def test_touching_counts_loads(self, filled_store: Store) -> None:
        """Once each time a page is named; missing, purged and foreign ones are ignored, and the time never goes back."""
        await purged(filled_store, CHAT, uuids=frozenset({"e"}))
        await filled_store.page_keeper.touch(CHAT, ["a", "nope", "b", "c", "e", "a"], LATER)
        await filled_store.page_keeper.touch(CHAT, ["a"], AT)
        await filled_store.page_keeper.touch(CHAT, [], AT)
        counted = [
            (found.uuid, found.loads, found.last_load) for found in await filled_store.pages.list(TENANT)
        ]
        assert counted == [("e", 0, None), ("d", 0, None), ("c", 0, None), ("b", 1, LATER), ("a", 3, LATER)]

    async def test_pinned_pages_are_of_a_conversation_or_a_user(self, filled_store: Store) -> None:
        """Oldest first; a conversation's include those without a user, never another user's."""
        for uuid in "edcba":
            await filled_store.page_keeper.pin(TENANT, uuid, pinned=True)
        await filled_store.page_keeper.pin(TENANT, "e", pinned=False)
        theirs = {CHAT: "ad", ELSE: "b", ADA: "ab", STRANGER: "d", ANYBODY: "d", TENANT: "abcd", FIRM: ""}
        for scope, uuids in theirs.items():
            assert names(await filled_store.page_keeper.pinned(scope)) == list(uuids)

    async def test_an_equal_call_gives_the_newest_page(self, store: Store) -> None:
        """Created at or after a given time, loadable from the scope and not purged; without a hash there is no match."""
        scopes, hashes = (CHAT, ELSE, HIS, CHAT, CHAT), ("x", "x", "x", "y", "")
        for uuid, minutes, scope, call_hash in zip("abcde", range(5), scopes, hashes, strict=True):
            await store.pages.put(page(uuid, uuid, scope=scope, minutes=minutes, call_hash=call_hash))

        async def equal(scope: Scope, call_hash: str, minutes: int = 0) -> str | None:
            found = await store.page_keeper.equal_call(scope, call_hash, AT + timedelta(minutes=minutes))
            return found and found.uuid

        newest = {CHAT: "b", ADA: "b", BOB: "c", ANYBODY: None, TENANT: "c", FIRM: None}
        assert newest == {scope: await equal(scope, "x") for scope in newest}
        assert [await equal(CHAT, call_hash) for call_hash in ("y", "", "z")] == ["d", None, None]
        assert (await equal(ADA, "x", 1), await equal(ADA, "x", 2)) == ("b", None)
        await purged(store, ADA, uuids=frozenset({"b"}))
        assert await equal(CHAT, "x") == "a"

    async def test_purging_leaves_a_tombstone(self, filled_store: Store) -> None:
        """With everything but the text and passages; purging is idempotent."""
        await filled_store.page_keeper.touch(CHAT, ["a"], AT)
        before = await filled_store.page_keeper.page(CHAT, "a")
        request = PurgeRequest(CHAT, LATER, frozenset({"a", "b", "nope"}))
        gone = await filled_store.page_keeper.purge(request)
        assert gone == [replace(before, purged=LATER)]
        assert await filled_store.page_keeper.purge(request) == []
        assert await filled_store.page_keeper.page(CHAT, "a") == gone[0]
        assert await filled_store.page_index.read(CHAT, ["a"]) == []
        assert await loadable(filled_store, TENANT, "abcde") == set("bcde")

    async def test_purging_by_age_and_by_name(self, filled_store: Store) -> None:
        """A page that meets any condition is purged, oldest first; one created exactly at the limit stays. No condition purges nothing."""
        assert await purged(filled_store, TENANT) == []
        before = AT + timedelta(minutes=1)
        assert await purged(filled_store, TENANT, before=before, uuids=frozenset({"d", "c", "f"})) == [
            "a",
            "c",
            "d",
        ]
        assert await loadable(filled_store, TENANT, "abcde") == set("be")
        assert await loadable(filled_store, FIRM, "f") == {"f"}

    async def test_purging_by_size_takes_the_oldest(self, filled_store: Store) -> None:
        """The remaining pages of the scope take at most `max_bytes`; pinned pages count but stay."""
        assert await purged(filled_store, TENANT, max_bytes=15) == []
        await filled_store.page_keeper.pin(TENANT, "a", pinned=True)
        assert await purged(filled_store, TENANT, max_bytes=14) == ["b"]
        assert await purged(filled_store, TENANT, max_bytes=8, uuids=frozenset({"e"})) == ["c", "e"]
        assert await purged(filled_store, TENANT, max_bytes=0) == ["d"]
        assert await loadable(filled_store, TENANT, "abcde") == {"a"}

    async def test_purging_keeps_to_its_scope(self, filled_store: Store) -> None:
        """A conversation's are its own pages and those without a user there; never another user's."""
        assert await purged(filled_store, BOB, before=LATER, uuids=frozenset("abde")) == ["c"]
        for scope, most, gone in ((STRANGER, 0, ["d"]), (CHAT, 3, ["a"]), (ADA, 0, ["b", "e"])):
            assert await purged(filled_store, scope, max_bytes=most) == gone

    async def test_pages_are_erased_alone(self, filled_store: Store) -> None:
        """Including pinned ones and tombstones, without a trace; others' pages stay, and so does a text shared with another page."""
        await filled_store.page_keeper.pin(TENANT, "a", pinned=True)
        await purged(filled_store, TENANT, uuids=frozenset({"b"}))
        assert 0 == await filled_store.page_keeper.erase(BOB, ["a", "b", "nowhere"])
        assert 2 == await filled_store.page_keeper.erase(TENANT, ["a", "b", "a"])
        assert await loadable(filled_store, TENANT, "abcde") == set("cde")
        for uuid in "ab":
            await refused(errors.HandleNotFoundError, filled_store.page_keeper.page(TENANT, uuid))
        assert "a" not in await filled_store.page_index.uuids(TENANT)
        assert await loadable(filled_store, FIRM, "f") == {"f"}

    async def test_pinned_pages_are_never_purged(self, filled_store: Store) -> None:
        """By no condition, until they are unpinned."""
        await filled_store.page_keeper.pin(CHAT, "a", pinned=True)
        everything = {"uuids": frozenset({"a"}), "before": LATER, "max_bytes": 0}
        assert await purged(filled_store, ELSE, **everything) == ["b"]
        assert await purged(filled_store, CHAT, **everything) == ["d", "e"]
        await filled_store.page_keeper.pin(CHAT, "a", pinned=False)
        assert await purged(filled_store, CHAT, **everything) == ["a"]

    async def test_a_text_goes_with_the_last_page_that_holds_it(self, store: Store) -> None:
        """Until then it counts for each of them."""
        await write(store, *(page(uuid, "same", scope=scope) for uuid, scope in (("a", CHAT), ("b", HIS))))
        assert await purged(store, TENANT, max_bytes=4) == ["a"]
        assert (await store.pages.load(HIS, "b"))[1] == "same"
        assert (await store.erase(CHAT)).counts["blobs"] == 0
        assert await purged(store, HIS, max_bytes=3) == ["b"]
        assert (await store.erase(HIS)).counts["blobs"] == 0

    async def test_tombstones_are_erased(self, filled_store: Store) -> None:
        """Erasing removes everything."""
        await purged(filled_store, CHAT, uuids=frozenset({"a"}))
        counts = (await filled_store.erase(ADA)).counts
        assert (counts["tool_result_archive"], counts["blobs"], counts["archive_passage"]) == (3, 2, 4)
        await refused(
            errors.HandleNotFoundError, filled_store.pages.load(TENANT, "a"), match="no archived page"
        )


class PageIndexContract(StoredPages):
    """`PageIndex`."""

    async def test_living_pages_of_a_scope_oldest_first(self, filled_store: Store) -> None:
        """Of a conversation, a user or a tenant; without purged ones."""
        for scope, uuids in ((CHAT, "ade"), (ADA, "abe"), (ANYBODY, "d"), (TENANT, "abcde"), (BOB, "c")):
            assert await filled_store.page_index.uuids(scope) == list(uuids)
        await purged(filled_store, TENANT, uuids=frozenset("ac"))
        assert await filled_store.page_index.uuids(TENANT) == ["b", "d", "e"]

    async def test_terms_come_back_as_they_were_written(self, filled_store: Store) -> None:
        """None before they are written; writing again replaces them."""
        spans = ((0, 1), (1, 3))
        assert await filled_store.page_index.read(CHAT, ["a"]) == [PageTerms("a", spans, None)]
        for terms in (("", "头晕 血压"), ("x", "")):
            await filled_store.page_index.write(CHAT, "a", terms)
            assert await filled_store.page_index.read(CHAT, ["a"]) == [PageTerms("a", spans, terms)]

    async def test_passages_are_read_in_the_order_asked_for(self, filled_store: Store) -> None:
        """Missing, purged and foreign pages are left out."""
        await purged(filled_store, CHAT, uuids=frozenset({"a"}))
        read = await filled_store.page_index.read(CHAT, ["e", "nope", "a", "c", "d", "b"])
        assert [found.uuid for found in read] == ["e", "d", "b"]
        assert await filled_store.page_index.read(CHAT, []) == []

    async def test_a_page_without_passages_has_nothing_to_index(self, store: Store) -> None:
        """Its terms exist and are empty."""
        await store.pages.put(page("p"))
        await store.page_index.write(CHAT, "p", [])
        assert await store.page_index.read(CHAT, ["p"]) == [PageTerms("p", (), ())]

    async def test_embeddings_come_back_to_their_model(self, filled_store: Store) -> None:
        """Of unpurged pages of the scope; written again they are replaced, and another model finds none."""
        model = EmbeddingModel("test", 2)
        one, two = np.array([[1, 0]], dtype=np.float32), np.array([[0.5, -2], [3, 4]], dtype=np.float32)
        await filled_store.page_index.embed(ADA, model, {"a": one, "b": one, "c": one, "nope": one})
        await filled_store.page_index.embed(ADA, model, {"b": two})
        found = await filled_store.page_index.embeddings(ADA, model)
        assert {uuid: vector.tolist() for uuid, vector in found.items()} == {
            "a": [[1, 0]],
            "b": [[0.5, -2], [3, 4]],
        }
        assert list(await filled_store.page_index.embeddings(CHAT, model)) == ["a"]
        assert await filled_store.page_index.embeddings(TENANT, EmbeddingModel("test", 2, "v2")) == {}
        await purged(filled_store, ADA, uuids=frozenset({"a"}))
        assert list(await filled_store.page_index.embeddings(TENANT, model)) == ["b"]

    async def test_an_embedding_has_the_length_of_its_model(self, filled_store: Store) -> None:
        """One of another length, or that is not finite, is refused, and none of the call is stored."""
        model, good = EmbeddingModel("test", 2), np.ones((1, 2), dtype=np.float32)
        wrong = np.ones((1, 3)), np.ones(2), np.ones((0, 2)), np.array([[1, 1], [1, np.nan]])
        for bad in (one.astype(np.float32) for one in wrong):
            await refused(
                errors.VectorIndexError, filled_store.page_index.embed(ADA, model, {"a": good, "b": bad})
            )
        assert await filled_store.page_index.embeddings(ADA, model) == {}

    async def test_terms_are_one_for_each_passage(self, filled_store: Store) -> None:
        """Any other number raises `InvalidArgumentError` and changes nothing."""
        for terms in ([], ["x"], ["x", "y", "z"]):
            await refused(errors.InvalidArgumentError, filled_store.page_index.write(CHAT, "a", terms))
        assert (await filled_store.page_index.read(CHAT, ["a"]))[0].terms is None

    async def test_writing_to_a_page_that_is_gone_does_nothing(self, filled_store: Store) -> None:
        """Unknown, purged or foreign."""
        await purged(filled_store, CHAT, uuids=frozenset({"a"}))
        for scope, uuid in ((CHAT, "nope"), (CHAT, "a"), (BOB, "b"), (FIRM, "b")):
            await filled_store.page_index.write(scope, uuid, ["x", "y"])
        assert (await filled_store.page_index.read(ADA, ["b"]))[0].terms is None


class MediaStoreContract(Contract):
    """`MediaStore`, and the blobs that turns bring."""

    async def test_the_bytes_of_a_turn_are_loaded(self, store: Store) -> None:
        """Byte for byte, from `append` and from `advance`."""
        data = bytes(range(256)) * 300
        await write(store, picturing("a", data), opened("b"))
        more = picture(b"more", "image/webp")
        change = extended("b", Message("tool", (ToolResult(0, (more,)),)), steps=[step()])
        change = replace(change, messages=(CALL, *change.messages), blobs={more.blob or "": b"more"})
        await store.log.advance(change)
        assert await store.media.load(CHAT, picture(data).blob or "") == data
        assert await store.media.load(ADA, more.blob or "") == b"more"

    async def test_only_what_a_turn_of_the_scope_brought_is_loaded(self, store: Store) -> None:
        """Another tenant, user or conversation that knows the hash gets nothing."""
        await store.log.append(picturing("a"))
        key = picture(b"PNG").blob or ""
        for scope in (CHAT, ADA, TENANT):
            assert await store.media.load(scope, key) == b"PNG"
        for scope in (STRANGER, ANYBODY, BOB, ELSE, FIRM, FIRM_CHAT):
            await refused(errors.NotFoundError, store.media.load(scope, key))
        await refused(errors.NotFoundError, store.media.load(CHAT, "unknown"))

    async def test_bytes_that_are_not_what_their_hash_says_are_refused(self, store: Store) -> None:
        """`InvalidArgumentError`, and nothing is written."""
        turn = await store.log.append(opened("b"))
        await changes_nothing(
            store,
            errors.InvalidArgumentError,
            store.log.append(replace(picturing("a"), blobs={picture(b"PNG").blob or "": b"else"})),
            store.log.advance(replace(extended("b", SEEN), blobs={"x": b"y"})),
            store.log.restore([replace(turn, id="c")], blobs={"x": b"y"}),
        )

    async def test_a_repeat_of_the_turn_brings_nothing_new(self, store: Store) -> None:
        await write(store, picturing("a"), picturing("a"))
        assert (await store.erase(CHAT)).counts["attachments"] == 1

    async def test_bytes_go_with_the_last_turn_that_brought_them(self, store: Store) -> None:
        """Equal bytes are stored once, and stay while anything else uses them, even as the text of a page."""
        await write(store, picturing("a", b"shared"), picturing("b", b"shared", scope=HIS))
        await store.pages.put(page("p", "shared", scope=Scope("tenant", "eve", "hers")))
        key = picture(b"shared").blob or ""
        first = await store.erase(CHAT)
        assert (first.counts["attachments"], first.counts["blobs"]) == (1, 0)
        await refused(errors.NotFoundError, store.media.load(CHAT, key))
        assert await store.media.load(HIS, key) == b"shared"
        assert (await store.erase(BOB)).counts["blobs"] == 0
        assert (await store.pages.load(TENANT, "p"))[1] == "shared"
        assert (await store.erase(TENANT)).counts["blobs"] == 1

    async def test_erasing_a_tenant_takes_its_files(self, store: Store) -> None:
        """Files of other tenants stay."""
        await write(store, picturing("a", b"1"), picturing("a", b"2", scope=Scope("firm", None, "chat")))
        assert (await store.erase(TENANT)).counts["blobs"] == 1
        assert await store.media.load(FIRM, picture(b"2").blob or "") == b"2"
        assert len(await store.reader.entries(EntryQuery(Scope("firm", None, "chat")))) == 1
