"""Items by namespace and key."""

from datetime import timedelta
from typing import Any

import numpy as np

from pagefile.errors import InvalidArgumentError
from pagefile.ports import ItemWrite, Store
from pagefile.testing.contracts.base import Contract, refused
from pagefile.testing.drafts import AT
from pagefile.testing.scopes import ADA, BOB, CHAT, FIRM_ADA, TENANT

NOTES = ("notes", "中文")
LATER = AT + timedelta(minutes=1)


class ItemStoreContract(Contract):
    """`ItemStore`."""

    async def test_an_item_comes_back_as_it_was_put(self, store: Store) -> None:
        """Any JSON, any labels and any key."""
        odd = ("a/b~c", "~1", "é.\u2028", "/")
        values: dict[str, Any] = {"text": "中文\u0000", "n": [1, 2.5, None, True, {"deep": {}}]}
        await store.items.write(ADA, [ItemWrite(odd, "k/~ é", values)], now=AT)
        (item,) = await store.items.get(ADA, [(odd, "k/~ é")], now=AT)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (odd, "k/~ é", values)
        assert (item.created, item.updated, item.expires, item.ttl_s) == (AT, AT, None, None)

    async def test_keys_are_answered_in_their_order(self, store: Store) -> None:
        """None for missing items."""
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 1), ItemWrite(("notes",), "a", 2)], now=AT)
        keys = [(("notes",), "a"), (NOTES, "b"), (NOTES, "a"), (NOTES, "a")]
        found = await store.items.get(ADA, keys, now=AT)
        assert [item and item.value for item in found] == [2, None, 1, 1]

    async def test_a_value_is_replaced_and_keeps_its_age(self, store: Store) -> None:
        """With everything that belongs to it; the last of several writes to one key wins, including a removal."""
        rows = np.ones((1, 2), dtype=np.float32)
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 1, 600.0, rows, "m")], now=AT)
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 2), ItemWrite(NOTES, "a", 3)], now=LATER)
        (item,) = await store.items.get(ADA, [(NOTES, "a")], now=LATER)
        assert item is not None
        assert (item.value, item.created, item.updated, item.expires) == (3, AT, LATER, None)
        assert await store.items.vectors(ADA, (), "m", now=LATER) == []
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 4), ItemWrite(NOTES, "a", None)], now=LATER)
        assert await store.items.get(ADA, [(NOTES, "a")], now=LATER) == [None]
        await store.items.write(ADA, [ItemWrite(NOTES, "a", None)], now=LATER)

    async def test_a_write_is_all_or_nothing(self, store: Store) -> None:
        """If one item cannot be written, none is."""
        for bad in (
            ItemWrite(NOTES, "b", {"x": float("nan")}),
            ItemWrite(("\0",), "b", 1),
            ItemWrite(NOTES, "\0", 1),
        ):
            await refused(
                InvalidArgumentError, store.items.write(ADA, [ItemWrite(NOTES, "a", 1), bad], now=AT)
            )
        assert await store.items.under(ADA, (), now=AT) == []

    async def test_a_prefix_is_one_of_whole_labels(self, store: Store) -> None:
        """Last updated first, then by namespace and key; limited if requested."""
        early = [ItemWrite(("a",), "1", 1), ItemWrite(("a", "b"), "2", 2), ItemWrite(("ab",), "3", 3)]
        await store.items.write(ADA, early, now=AT)
        await store.items.write(
            ADA, [ItemWrite(("a", "b", "c"), "4", 4), ItemWrite(("a0",), "5", 5)], now=LATER
        )

        async def listed(*prefix: str, limit: int | None = None, offset: int = 0) -> list[str]:
            found = await store.items.under(ADA, prefix, now=LATER, limit=limit, offset=offset)
            return [item.key for item in found]

        assert await listed() == ["4", "5", "1", "2", "3"]
        assert await listed("a") == ["4", "1", "2"]
        assert await listed("a", "b") == ["4", "2"]
        assert await listed("a", limit=1, offset=1) == ["1"]
        assert await listed("a", limit=0) == []
        assert await listed("a", offset=9) == []
        assert await listed("b") == []
        names = set(await store.items.namespaces(ADA, ("a",), now=LATER))
        assert names == {("a",), ("a", "b"), ("a", "b", "c")}

    async def test_nobody_sees_the_items_of_another(self, store: Store) -> None:
        """Not another user's, not those without a user, not another tenant's; conversations have no items."""
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            await store.items.write(scope, [ItemWrite(NOTES, "a", str(scope))], now=AT)
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            assert [item.value for item in await store.items.under(scope, (), now=AT)] == [str(scope)]
        await refused(InvalidArgumentError, store.items.under(CHAT, (), now=AT))

    async def test_an_item_that_has_expired_is_not_there(self, store: Store) -> None:
        """It is in no result; written again, it is a new item."""
        rows = np.ones((1, 2), dtype=np.float32)
        await store.items.write(
            ADA, [ItemWrite(NOTES, "a", 1, 60.0, rows, "m"), ItemWrite(NOTES, "b", 2, 61.0)], now=AT
        )
        assert [item.key for item in await store.items.under(ADA, (), now=AT)] == ["a", "b"]
        assert [item.key for item in await store.items.under(ADA, (), now=LATER)] == ["b"]
        assert await store.items.get(ADA, [(NOTES, "a")], now=LATER) == [None]
        assert await store.items.vectors(ADA, (), "m", now=LATER) == []
        much_later = LATER + timedelta(minutes=1)
        assert await store.items.namespaces(ADA, (), now=much_later) == []
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 3, 60.0)], now=much_later)
        (item,) = await store.items.get(ADA, [(NOTES, "a")], now=much_later)
        assert item is not None
        assert (item.created, item.expires) == (much_later, much_later + timedelta(minutes=1))

    async def test_touching_begins_a_life_anew(self, store: Store) -> None:
        """Only for existing items that have an expiry."""
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 1, 90.0), ItemWrite(NOTES, "b", 2)], now=AT)
        keys = [(NOTES, "a"), (NOTES, "b"), (NOTES, "c")]
        await store.items.touch(ADA, keys, now=LATER)
        one, other, _ = await store.items.get(ADA, keys, now=LATER)
        assert one is not None
        assert other is not None
        assert (one.expires, other.expires) == (LATER + timedelta(seconds=90), None)
        over = LATER + timedelta(seconds=90)
        await store.items.touch(ADA, keys, now=over)
        assert await store.items.get(ADA, keys[:1], now=over) == [None]

    async def test_sweeping_removes_what_has_expired(self, store: Store) -> None:
        """Once, and only the user's own."""
        for scope in (ADA, BOB):
            await store.items.write(scope, [ItemWrite(NOTES, "a", 1, 60.0), ItemWrite(NOTES, "b", 2)], now=AT)
        assert await store.items.sweep(ADA, now=AT) == 0
        assert await store.items.sweep(ADA, now=LATER) == 1
        assert await store.items.sweep(ADA, now=LATER) == 0
        assert await store.items.sweep(BOB, now=LATER) == 1

    async def test_vectors_are_of_one_maker(self, store: Store) -> None:
        """The rows are returned as written, in the order of the items."""
        one = np.array([[1, 2], [3, 4]], dtype=np.float32)
        await store.items.write(ADA, [ItemWrite(NOTES, "a", 1, None, one, "m")], now=AT)
        writes = [ItemWrite(NOTES, "b", 2, None, one[:1], "m"), ItemWrite(NOTES, "c", 3, None, one, "other"), ItemWrite(NOTES, "d", 4)]  # fmt: skip
        await store.items.write(ADA, writes, now=LATER)
        found = await store.items.vectors(ADA, ("notes",), "m", now=LATER)
        assert [(item.key, item.rows.tolist()) for item in found] == [
            ("b", [[1, 2]]),
            ("a", [[1, 2], [3, 4]]),
        ]
        assert await store.items.vectors(ADA, ("else",), "m", now=LATER) == []

    async def test_items_are_erased_with_their_user_or_tenant(self, store: Store) -> None:
        """They are counted; a conversation has none to erase."""
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            await store.items.write(scope, [ItemWrite(NOTES, "a", 1)], now=AT)
        assert (await store.erase(CHAT)).counts["items"] == 0
        assert (await store.erase(ADA)).counts["items"] == 1
        assert await store.items.under(ADA, (), now=AT) == []
        assert (await store.erase(TENANT)).counts["items"] == 2
        assert len(await store.items.under(FIRM_ADA, (), now=AT)) == 1

    async def test_owners_are_told_by_tenant_and_user(self, store: Store) -> None:
        """Those without a user first; an owner whose items were all removed is not listed."""
        for scope in (BOB, ADA, TENANT, FIRM_ADA):
            await store.items.write(scope, [ItemWrite(NOTES, "a", 1)], now=AT)
        await store.items.write(BOB, [ItemWrite(NOTES, "a", None)], now=AT)
        assert await store.items.owners("tenant") == [TENANT, ADA]
        assert await store.items.owners(None) == [FIRM_ADA, TENANT, ADA]

    async def test_what_is_kept_is_restored_as_it_was(self, store: Store) -> None:
        """With times, expiries and vectors, page by page; existing items stay as they are, expired ones are skipped."""
        one = np.array([[1, 2], [3, 4]], dtype=np.float32)
        odd = ("a/b~c", "é")
        writes = [ItemWrite(odd, "k", {"中": [1]}, None, one, "m"), ItemWrite(NOTES, "a", 1, 60.0)]
        await store.items.write(ADA, [*writes, ItemWrite(NOTES, "b", 2, 3600.0)], now=AT)
        kept = await store.items.kept(ADA, now=AT, limit=2)
        kept += await store.items.kept(ADA, now=AT, after=kept[-1].item.item_key)
        assert [one.item.item_key for one in kept] == [(odd, "k"), (NOTES, "a"), (NOTES, "b")]
        await store.items.write(BOB, [ItemWrite(NOTES, "b", "his own")], now=AT)
        assert await store.items.restore(BOB, kept, now=LATER) == 1
        found = await store.items.kept(BOB, now=LATER)
        assert [(one.item.item_key, one.item.value) for one in found] == [
            ((odd, "k"), {"中": [1]}),
            ((NOTES, "b"), "his own"),
        ]
        assert (found[0].item, found[0].model) == (kept[0].item, "m")
        assert found[0].vectors is not None
        assert found[0].vectors.tolist() == one.tolist()
        assert await store.items.restore(BOB, kept, now=LATER) == 0
