"""Archived pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from pagefile.errors import ConflictError, HandleNotFoundError, NotFoundError, PagePurgedError
from pagefile.ports import PageDraft, PageTerms, PurgeRequest, Store
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import AT, CHAT, page

ADA, BOB, TENANT = Scope("tenant", "ada"), Scope("tenant", "bob"), Scope("tenant")
ANYBODY = Scope("tenant", None, "chat")
LATER = AT + timedelta(hours=1)


async def loadable(store: Store, scope: Scope, uuids: Sequence[str]) -> set[str]:
    """The pages among these that a scope may load."""
    found: set[str] = set()
    for uuid in uuids:
        try:
            found.add((await store.pages.load(scope, uuid))[0].uuid)
        except HandleNotFoundError:
            continue
    return found


class PageStoreContract(Contract):
    """`PageStore`."""

    @pytest.mark.parametrize("text", ["", "x", "长" * 50_000, "line\r\n\ttab\n", "🙂 é e\u0301"])
    async def test_a_page_comes_back_byte_for_byte(self, store: Store, text: str) -> None:
        """The page and its full text."""
        draft = page("p", text)
        stored = await store.pages.put(draft)
        assert stored == replace(draft.page, stored_bytes=stored.stored_bytes)
        assert await store.pages.load(CHAT, "p") == (stored, text)

    async def test_every_field_of_a_page_comes_back(self, store: Store) -> None:
        """As given by the caller; only the stored size is set by the store."""
        given = replace(
            page("p").page,
            input=("x", {"y": None}),
            call_hash="call",
            thread="thread",
            pinned=True,
            loads=3,
            last_load=LATER,
            stored_bytes=10**9,
        )
        stored = await store.pages.put(PageDraft(given, "z" * 1000))
        assert stored == replace(given, input=["x", {"y": None}], stored_bytes=stored.stored_bytes)
        assert 0 < stored.stored_bytes < 100
        assert await store.pages.list(CHAT) == [stored]

    async def test_an_unknown_or_foreign_page_is_not_found(self, store: Store) -> None:
        """An unknown page, or one of another tenant or user, raises `HandleNotFoundError`."""
        await store.pages.put(page("p"))
        for scope, uuid in ((CHAT, "q"), (BOB, "p"), (Scope("firm", "ada"), "p")):
            with pytest.raises(HandleNotFoundError):
                await store.pages.load(scope, uuid)

    async def test_a_page_follows_its_user(self, store: Store) -> None:
        """Into every conversation; a page without a user stays in its own."""
        await store.pages.put(page("hers"))
        await store.pages.put(page("nobody's", scope=ANYBODY))
        for scope, uuids in (
            (CHAT, {"hers", "nobody's"}),
            (ADA, {"hers"}),
            (Scope("tenant", "ada", "else"), {"hers"}),
            (BOB, set[str]()),
            (Scope("tenant", "bob", "chat"), {"nobody's"}),
            (ANYBODY, {"nobody's"}),
            (Scope("tenant", None, "else"), set[str]()),
            (TENANT, {"hers", "nobody's"}),
        ):
            assert await loadable(store, scope, ("hers", "nobody's")) == uuids

    async def test_equal_text_may_belong_to_many_pages(self, store: Store) -> None:
        """Erasing one of them leaves the others intact."""
        await store.pages.put(page("p", "same", scope=ADA))
        await store.pages.put(page("q", "same", scope=BOB))
        assert (await store.erase(ADA)).counts["blobs"] == 0
        assert (await store.pages.load(BOB, "q"))[1] == "same"
        assert (await store.erase(BOB)).counts["blobs"] == 1

    async def test_a_uuid_is_put_once(self, store: Store) -> None:
        """Writing the same page again returns what is stored; another text conflicts."""
        draft = page("p")
        stored = await store.pages.put(draft)
        assert await store.pages.put(replace(draft, page=replace(draft.page, tokens=99))) == stored
        for other in (page("p", "else"), page("p", scope=BOB)):
            with pytest.raises(ConflictError):
                await store.pages.put(other)
        assert await store.pages.load(CHAT, "p") == (stored, draft.text)

    async def test_a_purged_page_says_what_it_was(self, store: Store) -> None:
        """`PagePurgedError` tells a model the uuid, the tool, the time and the summary; to other users it is unknown."""
        await store.pages.put(page("p"))
        await store.page_keeper.purge(PurgeRequest(CHAT, LATER, frozenset({"p"})))
        with pytest.raises(PagePurgedError, match=r"'p'.*'search'.*2026-02-09 09:00.*three reasons"):
            await store.pages.load(CHAT, "p")
        for scope in (BOB, Scope("firm")):
            with pytest.raises(HandleNotFoundError, match="no archived page"):
                await store.pages.load(scope, "p")

    async def test_a_purged_page_put_again_takes_the_place_of_its_tombstone(self, store: Store) -> None:
        """It has a text, passages and a time again; another text or user still conflicts."""
        await store.pages.put(page("p", spans=((0, 3),)))
        await store.page_keeper.purge(PurgeRequest(CHAT, LATER, frozenset({"p"})))
        for other in (page("p", "else"), page("p", scope=BOB)):
            with pytest.raises(ConflictError):
                await store.pages.put(other)
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
        with pytest.raises(PagePurgedError):
            await store.pages.load(CHAT, "p")
        assert await store.page_index.read(CHAT, ["p"]) == []
        living = await store.pages.put(page("p"))
        assert await store.pages.put(PageDraft(given, "")) == living

    async def test_pages_are_listed_newest_first(self, store: Store) -> None:
        """Of a conversation, a user or a tenant; `after` continues after a uuid."""
        for uuid, minutes, scope in (
            ("a", 1, CHAT),
            ("b", 3, CHAT),
            ("c", 2, ADA),
            ("d", 4, BOB),
            ("e", 3, CHAT),
            ("f", 0, ANYBODY),
        ):
            await store.pages.put(page(uuid, uuid, scope=scope, minutes=minutes))

        async def listed(scope: Scope, *, limit: int = 100, after: str | None = None) -> str:
            return "".join(found.uuid for found in await store.pages.list(scope, limit=limit, after=after))

        assert await listed(CHAT) == "ebaf"
        assert await listed(ADA) == "ebca"
        assert await listed(TENANT) == "debcaf"
        assert await listed(ADA, limit=2, after="e") == "bc"
        assert await listed(TENANT, after="b") == "caf"
        assert await listed(TENANT, limit=0) == ""
        for scope, after in ((ADA, "d"), (CHAT, "c"), (TENANT, "nope")):
            with pytest.raises(NotFoundError):
                await store.pages.list(scope, after=after)
