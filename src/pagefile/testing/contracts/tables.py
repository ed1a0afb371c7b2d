"""The small tables beside the log: recorded windows, API keys and items."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import anyio
import numpy as np

from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import CallSize, ItemWrite, Namespace, Store
from pagefile.records import SNAPSHOT_KEY, Scope
from pagefile.testing.contracts.base import Contract, refused, write
from pagefile.testing.drafts import AT, api_key, call, done
from pagefile.testing.scopes import ADA, BOB, CHAT, ELSE, FIRM, FIRM_ADA, FIRM_CHAT, HIS, STRANGER, TENANT


async def _listed(store: Store, scope: Scope, **slice_: Any) -> list[str]:
    return [found.id for found in await store.calls.list(scope, **slice_)]


class WindowLogContract(Contract):
    """`WindowLog`."""

    async def test_calls_come_back_newest_first(self, store: Store) -> None:
        """In the order they were added, whatever their times; an id is added once."""
        first, second = call("a", at=AT + timedelta(hours=1)), replace(call("b"), turn_id="t", query=None)
        await store.calls.add([first, second], keep=10)
        await store.calls.add([replace(first, tokens=1)], keep=10)
        assert await store.calls.list(CHAT) == [second, first]

    async def test_calls_in_numbers(self, store: Store) -> None:
        """Newest first, of a conversation, a user and a tenant; the same numbers as the calls themselves have."""
        await store.calls.add([call("a"), call("b", at=AT + timedelta(hours=1))], keep=10)
        await store.calls.add([call("c", scope=HIS)], keep=10)
        for scope in (CHAT, ADA, TENANT, FIRM):
            full = await store.calls.list(scope)
            sizes = [CallSize(one.id, one.scope, one.at, one.tokens, one.ratio) for one in full]
            assert list(await store.calls.sizes(scope)) == sizes
            assert list(await store.calls.sizes(scope, limit=1)) == sizes[:1]

    async def test_only_the_newest_are_kept(self, store: Store) -> None:
        """Per conversation the new calls belong to; other conversations keep theirs."""
        await store.calls.add([call(f"o{number}", scope=ELSE) for number in range(3)], keep=3)
        for number in range(5):
            await store.calls.add([call(f"c{number}")], keep=2)
        assert await _listed(store, CHAT) == ["c4", "c3"]
        assert len(await store.calls.list(ELSE)) == 3
        await store.calls.add([call("c5")], keep=0)
        assert await store.calls.list(CHAT) == []

    async def test_calls_are_of_a_scope_and_go_on(self, store: Store) -> None:
        """No scope sees another's calls; `after` continues after a call."""
        scopes = CHAT, Scope("tenant", "bob", "b"), CHAT, FIRM_CHAT
        await write(store, *(call(f"c{number}", scope=scope) for number, scope in enumerate(scopes)))
        theirs = {CHAT: ["c2", "c0"], ADA: ["c2", "c0"], TENANT: ["c2", "c1", "c0"], STRANGER: []}
        assert theirs == {scope: await _listed(store, scope) for scope in theirs}
        assert await _listed(store, TENANT, limit=1, after="c2") == ["c1"]
        await refused(NotFoundError, store.calls.list(CHAT, after="c1"))

    async def test_a_call_is_found_by_its_id(self, store: Store) -> None:
        """From any scope that may list it; not from others, nor once it is no longer kept."""
        await store.calls.add([call("a"), call("b", scope=Scope("tenant", "bob", "b"))], keep=10)
        for scope in (TENANT, ADA, CHAT):
            assert await store.calls.get(scope, "a") == call("a")
        for scope, call_id in ((BOB, "a"), (ELSE, "a"), (FIRM, "a"), (CHAT, "b"), (TENANT, "c")):
            await refused(NotFoundError, store.calls.get(scope, call_id))
        await store.calls.add([call("c")], keep=1)
        await refused(NotFoundError, store.calls.get(CHAT, "a"))

    async def test_restored_calls_are_as_they_were(self, store: Store) -> None:
        """In order, whatever the limit elsewhere; the second time nothing is new."""
        calls = [call(name) for name in "abc"]
        assert await store.calls.restore(calls) == 3
        assert await store.calls.list(CHAT) == calls[::-1]
        assert await store.calls.restore([*calls, call("d")]) == 0
        assert await store.calls.list(CHAT) == calls[::-1]
        assert await store.calls.restore([]) == 0

    async def test_a_conversation_that_has_calls_keeps_those(self, store: Store) -> None:
        """It gets no others, and an existing id is left as it is."""
        await write(store, call("new"))
        assert await store.calls.restore([call("old"), call("o", scope=ELSE), call("new", scope=ELSE)]) == 1
        assert await _listed(store, ADA) == ["o", "new"]
        assert await store.calls.get(CHAT, "new") == call("new")

    async def test_calls_are_those_that_were_made_for_the_scope(self, store: Store) -> None:
        """A conversation lists only its owner's; a call without a user belongs to the user it was made for. A tenant lists all."""
        nobody, bob = replace(CHAT, user=None), replace(CHAT, user="bob")
        for_her = replace(call("old", scope=nobody), options={SNAPSHOT_KEY: {"owner": CHAT.user}})
        await write(store, call("hers"), call("his", scope=bob), call("none", scope=nobody), for_her)
        everyones = ["old", "none", "his", "hers"]
        theirs = {CHAT: ["old", "hers"], bob: ["his"], nobody: ["none"], TENANT: everyones}
        for scope, ids in theirs.items():
            found = await store.calls.list(scope)
            assert [one.id for one in found] == ids
            assert [await store.calls.get(scope, one.id) for one in found] == found
            assert await _listed(store, scope, after=ids[0]) == ids[1:]
            for foreign in set(everyones).difference(ids):
                calls = store.calls.get(scope, foreign), store.calls.list(scope, after=foreign)
                await refused(NotFoundError, *calls)

    async def test_loose_calls_are_of_conversations_that_nobody_owns(self, store: Store) -> None:
        """Ordered by id, for one tenant or all, with the scopes of the calls."""
        theirs = [Scope("tenant", user, "unwritten") for user in ("ada", "bob")]
        firm = [Scope("firm", "eve", "x")]
        calls = (call(f"c{number}", scope=scope) for number, scope in enumerate((CHAT, *theirs, *firm)))
        await write(store, done("t"), *calls)
        loose = {"tenant": theirs, "firm": firm, None: [*firm, *theirs]}
        assert loose == {tenant: await store.calls.loose(tenant) for tenant in loose}


_HOURS_LATER = AT + timedelta(hours=2)


class KeyStoreContract(Contract):
    """`KeyStore`."""

    async def test_a_key_comes_back_as_it_was_added(self, store: Store) -> None:
        """With every field, in any script; an unknown one is None."""
        ends = {"expires": AT + timedelta(days=30), "revoked": AT + timedelta(days=2)}
        used = AT + timedelta(days=1, microseconds=7)
        key = replace(api_key("k1", "门诊 laptop", scope=Scope("诊所", "李雷")), **ends, last_used=used)
        await store.keys.add(key)
        assert await store.keys.get("k1") == key
        assert await store.keys.get("k2") is None

    async def test_keys_are_listed_oldest_first(self, store: Store) -> None:
        """Those with the same time by id."""
        await write(store, api_key("b"), api_key("c", created=AT - timedelta(days=1)), api_key("a"))
        assert [key.id for key in await store.keys.list()] == ["c", "a", "b"]

    async def test_an_id_is_given_once(self, store: Store) -> None:
        """A second one raises `ConflictError`, and the first stays as it was."""
        await store.keys.add(api_key("k"))
        await refused(ConflictError, store.keys.add(api_key("k", "thief", scope=Scope("other"))))
        assert await store.keys.list() == [api_key("k")]

    async def test_a_revoked_key_stays_on_record(self, store: Store) -> None:
        """With the time of its first revocation; an unknown one is not found."""
        await write(store, api_key("k"), api_key("other"))
        revoked = replace(api_key("k"), revoked=AT)
        assert await store.keys.revoke("k", AT) == revoked
        assert await store.keys.revoke("k", _HOURS_LATER) == revoked == await store.keys.get("k")
        assert await store.keys.get("other") == api_key("other")
        await refused(NotFoundError, store.keys.revoke("nobody", AT))

    async def test_a_key_is_rotated_with_an_overlap(self, store: Store) -> None:
        """Both give the same access until the old one expires; other keys stay as they were."""
        await write(store, api_key("old"), api_key("other"))
        new = api_key("new", created=_HOURS_LATER)
        until = _HOURS_LATER + timedelta(days=1)
        old = await store.keys.rotate("old", new, until)
        assert old == replace(api_key("old"), expires=until) == await store.keys.get("old")
        assert await store.keys.list() == [old, api_key("other"), new]
        assert old.usable_at(until - timedelta(microseconds=1))
        assert not old.usable_at(until)

    async def test_an_overlap_lengthens_no_key(self, store: Store) -> None:
        """One that expires earlier keeps its expiry."""
        ends = AT + timedelta(hours=3)
        await store.keys.add(replace(api_key("old"), expires=ends))
        old = await store.keys.rotate("old", api_key("new", created=_HOURS_LATER), AT + timedelta(days=9))
        assert old.expires == ends

    async def test_only_a_key_that_opens_something_is_rotated(self, store: Store) -> None:
        """A revoked or expired one, or a taken id, raises `ConflictError`; an unknown one is not found. Nothing is written."""
        await write(store, api_key("revoked"), replace(api_key("expired"), expires=AT), api_key("open"))
        await store.keys.revoke("revoked", AT)
        before = await store.keys.list()
        new = api_key("new", created=_HOURS_LATER)
        for key_id, successor in (("revoked", new), ("expired", new), ("open", api_key("expired"))):
            await refused(ConflictError, store.keys.rotate(key_id, successor, _HOURS_LATER))
        await refused(NotFoundError, store.keys.rotate("nobody", new, _HOURS_LATER))
        assert await store.keys.list() == before

    async def test_a_rotated_key_is_revoked_at_once(self, store: Store) -> None:
        """Whatever is left of the overlap; its successor stays valid."""
        await store.keys.add(api_key("old"))
        await store.keys.rotate("old", api_key("new"), AT + timedelta(days=1))
        assert not (await store.keys.revoke("old", AT)).usable_at(AT)
        assert await store.keys.get("new") == api_key("new")

    async def test_the_last_use_only_rises(self, store: Store) -> None:
        """An earlier time changes nothing, and an unknown key is ignored."""
        await store.keys.add(api_key("k"))
        for moment in (AT, _HOURS_LATER, AT):
            await store.keys.used("k", moment)
        await store.keys.used("nobody", AT)
        assert await store.keys.list() == [replace(api_key("k"), last_used=_HOURS_LATER)]

    async def test_erasing_leaves_the_keys(self, store: Store) -> None:
        """They belong to the operator: erasing one's data must not lock one out."""
        await store.keys.add(api_key("k", scope=ADA))
        for scope in (ADA, TENANT):
            await store.erase(scope)
        assert [key.id for key in await store.keys.list()] == ["k"]


NOTES = ("notes", "中文")
_LATER = AT + timedelta(minutes=1)


async def put(store: Store, *writes: ItemWrite, scope: Scope = ADA, now: datetime = AT) -> None:
    await store.items.write(scope, writes, now=now)


async def item_of(store: Store, namespace: Namespace = NOTES, key: str = "a", *, now: datetime) -> Any:
    """Ada's item under a key, or None."""
    (found,) = await store.items.get(ADA, [(namespace, key)], now=now)
    return found


class ItemStoreContract(Contract):
    """`ItemStore`."""

    async def test_an_item_comes_back_as_it_was_put(self, store: Store) -> None:
        """Any JSON, any labels and any key."""
        odd = ("a/b~c", "~1", "é.\u2028", "/")
        values: dict[str, Any] = {"text": "中文\u0000", "n": [1, 2.5, None, True, {"deep": {}}]}
        await put(store, ItemWrite(odd, "k/~ é", values))
        item = await item_of(store, odd, "k/~ é", now=AT)
        assert (item.namespace, item.key, item.value) == (odd, "k/~ é", values)
        assert (item.created, item.updated, item.expires, item.ttl_s) == (AT, AT, None, None)

    async def test_keys_are_answered_in_their_order(self, store: Store) -> None:
        """None for missing items."""
        await put(store, ItemWrite(NOTES, "a", 1), ItemWrite(("notes",), "a", 2))
        keys = [(("notes",), "a"), (NOTES, "b"), (NOTES, "a"), (NOTES, "a")]
        assert [item and item.value for item in await store.items.get(ADA, keys, now=AT)] == [2, None, 1, 1]

    async def test_a_value_is_replaced_and_keeps_its_age(self, store: Store) -> None:
        """With everything that belongs to it; the last of several writes to one key wins, including a removal."""
        rows = np.ones((1, 2), dtype=np.float32)
        await put(store, ItemWrite(NOTES, "a", 1, 600.0, rows, "m"))
        await put(store, ItemWrite(NOTES, "a", 2), ItemWrite(NOTES, "a", 3), now=_LATER)
        item = await item_of(store, now=_LATER)
        assert (item.value, item.created, item.updated, item.expires) == (3, AT, _LATER, None)
        assert await store.items.vectors(ADA, (), "m", now=_LATER) == []
        await put(store, ItemWrite(NOTES, "a", 4), ItemWrite(NOTES, "a", None), now=_LATER)
        assert await item_of(store, now=_LATER) is None
        await put(store, ItemWrite(NOTES, "a", None), now=_LATER)

    async def test_a_write_is_all_or_nothing(self, store: Store) -> None:
        not_json = ItemWrite(NOTES, "b", {"x": float("nan")})
        for bad in (not_json, ItemWrite(("\0",), "b", 1), ItemWrite(NOTES, "\0", 1)):
            await refused(InvalidArgumentError, put(store, ItemWrite(NOTES, "a", 1), bad))
        assert await store.items.under(ADA, (), now=AT) == []

    async def test_a_write_can_expect_what_it_replaces(self, store: Store) -> None:
        """One of several that expect the same wins; the others write nothing."""
        key = (NOTES, "a")

        async def attempt(value: int, seen: int | None) -> bool:
            writes = [ItemWrite(NOTES, "a", value), ItemWrite(NOTES, f"by {value}", value)]
            try:
                await store.items.write(ADA, writes, now=AT, expected={key: seen})
            except ConflictError:
                return False
            return True

        for seen in (None, 0):
            won = list[bool]()

            async def one(value: int, seen: int | None = seen, won: list[bool] = won) -> None:
                won.append(await attempt(value, seen))

            async with anyio.create_task_group() as group:
                for value in range(1, 6):
                    group.start_soon(one, value)
            assert sorted(won) == [False] * 4 + [True]
            await put(store, ItemWrite(NOTES, "a", 0))
        # Two winners at most, each with its second item.
        names = {item.key for item in await store.items.under(ADA, NOTES, now=AT)}
        assert len(names) in {2, 3} and "a" in names
        await put(store, ItemWrite(NOTES, "a", None))
        await refused(ConflictError, store.items.write(ADA, [], now=AT, expected={key: 1}))

    async def test_a_prefix_is_one_of_whole_labels(self, store: Store) -> None:
        """Last updated first, then by namespace and key; limited if requested."""
        await put(store, ItemWrite(("a",), "1", 1), ItemWrite(("a", "b"), "2", 2), ItemWrite(("ab",), "3", 3))
        await put(store, ItemWrite(("a", "b", "c"), "4", 4), ItemWrite(("a0",), "5", 5), now=_LATER)

        async def listed(*prefix: str, limit: int | None = None, offset: int = 0) -> list[str]:
            found = await store.items.under(ADA, prefix, now=_LATER, limit=limit, offset=offset)
            return [item.key for item in found]

        under = {(): ["4", "5", "1", "2", "3"], ("a",): ["4", "1", "2"], ("a", "b"): ["4", "2"], ("b",): []}
        assert under == {prefix: await listed(*prefix) for prefix in under}
        assert await listed("a", limit=1, offset=1) == ["1"]
        assert await listed("a", limit=0) == await listed("a", offset=9) == []
        names = set(await store.items.namespaces(ADA, ("a",), now=_LATER))
        assert names == {("a",), ("a", "b"), ("a", "b", "c")}

    async def test_nobody_sees_the_items_of_another(self, store: Store) -> None:
        """Not another user's, not those without a user, not another tenant's; conversations have no items."""
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            await put(store, ItemWrite(NOTES, "a", str(scope)), scope=scope)
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            assert [item.value for item in await store.items.under(scope, (), now=AT)] == [str(scope)]
        await refused(InvalidArgumentError, store.items.under(CHAT, (), now=AT))

    async def test_an_item_that_has_expired_is_not_there(self, store: Store) -> None:
        """It is in no result; written again, it is a new item."""
        rows = np.ones((1, 2), dtype=np.float32)
        await put(store, ItemWrite(NOTES, "a", 1, 60.0, rows, "m"), ItemWrite(NOTES, "b", 2, 61.0))
        assert [item.key for item in await store.items.under(ADA, (), now=AT)] == ["a", "b"]
        assert [item.key for item in await store.items.under(ADA, (), now=_LATER)] == ["b"]
        assert await item_of(store, now=_LATER) is None
        assert await store.items.vectors(ADA, (), "m", now=_LATER) == []
        much_later = _LATER + timedelta(minutes=1)
        assert await store.items.namespaces(ADA, (), now=much_later) == []
        await put(store, ItemWrite(NOTES, "a", 3, 60.0), now=much_later)
        item = await item_of(store, now=much_later)
        assert (item.created, item.expires) == (much_later, much_later + timedelta(minutes=1))

    async def test_touching_begins_a_life_again(self, store: Store) -> None:
        """Only for existing items that have an expiry."""
        await put(store, ItemWrite(NOTES, "a", 1, 90.0), ItemWrite(NOTES, "b", 2))
        keys = [(NOTES, key) for key in "abc"]
        await store.items.touch(ADA, keys, now=_LATER)
        over = _LATER + timedelta(seconds=90)
        touched = [await item_of(store, key=key, now=_LATER) for key in "ab"]
        assert [one.expires for one in touched] == [over, None]
        await store.items.touch(ADA, keys, now=over)
        assert await item_of(store, now=over) is None

    async def test_sweeping_removes_what_has_expired(self, store: Store) -> None:
        """Once, and only the user's own."""
        for scope in (ADA, BOB):
            await put(store, ItemWrite(NOTES, "a", 1, 60.0), ItemWrite(NOTES, "b", 2), scope=scope)
        for scope, now, swept in ((ADA, AT, 0), (ADA, _LATER, 1), (ADA, _LATER, 0), (BOB, _LATER, 1)):
            assert await store.items.sweep(scope, now=now) == swept

    async def test_vectors_are_of_one_maker(self, store: Store) -> None:
        """The rows are returned as written, in the order of the items."""
        one = np.array([[1, 2], [3, 4]], dtype=np.float32)
        await put(store, ItemWrite(NOTES, "a", 1, None, one, "m"))
        other = ItemWrite(NOTES, "c", 3, None, one, "other"), ItemWrite(NOTES, "d", 4)
        await put(store, ItemWrite(NOTES, "b", 2, None, one[:1], "m"), *other, now=_LATER)
        found = await store.items.vectors(ADA, ("notes",), "m", now=_LATER)
        rows = [(item.key, item.rows.tolist()) for item in found]
        assert rows == [("b", [[1, 2]]), ("a", [[1, 2], [3, 4]])]
        assert await store.items.vectors(ADA, ("else",), "m", now=_LATER) == []

    async def test_items_are_erased_with_their_user_or_tenant(self, store: Store) -> None:
        """They are counted; a conversation has none to erase."""
        for scope in (ADA, BOB, TENANT, FIRM_ADA):
            await put(store, ItemWrite(NOTES, "a", 1), scope=scope)
        assert (await store.erase(CHAT)).counts["items"] == 0
        assert (await store.erase(ADA)).counts["items"] == 1
        assert await store.items.under(ADA, (), now=AT) == []
        assert (await store.erase(TENANT)).counts["items"] == 2
        assert len(await store.items.under(FIRM_ADA, (), now=AT)) == 1

    async def test_owners_are_told_by_tenant_and_user(self, store: Store) -> None:
        """Those without a user first; an owner whose items were all removed is not listed."""
        for scope in (BOB, ADA, TENANT, FIRM_ADA):
            await put(store, ItemWrite(NOTES, "a", 1), scope=scope)
        await put(store, ItemWrite(NOTES, "a", None), scope=BOB)
        assert await store.items.owners("tenant") == [TENANT, ADA]
        assert await store.items.owners(None) == [FIRM_ADA, TENANT, ADA]

    async def test_what_is_kept_is_restored_as_it_was(self, store: Store) -> None:
        """With times, expiries and vectors, page by page; existing items stay as they are, expired ones are skipped."""
        one = np.array([[1, 2], [3, 4]], dtype=np.float32)
        odd = ("a/b~c", "é")
        first = ItemWrite(odd, "k", {"中": [1]}, None, one, "m")
        await put(store, first, ItemWrite(NOTES, "a", 1, 60.0), ItemWrite(NOTES, "b", 2, 3600.0))
        kept = await store.items.kept(ADA, now=AT, limit=2)
        kept += await store.items.kept(ADA, now=AT, after=kept[-1].item.item_key)
        assert [one.item.item_key for one in kept] == [(odd, "k"), (NOTES, "a"), (NOTES, "b")]
        await put(store, ItemWrite(NOTES, "b", "his own"), scope=BOB)
        assert await store.items.restore(BOB, kept, now=_LATER) == 1
        found: list[Any] = await store.items.kept(BOB, now=_LATER)
        values = [(one.item.item_key, one.item.value) for one in found]
        assert values == [((odd, "k"), {"中": [1]}), ((NOTES, "b"), "his own")]
        assert (found[0].item, found[0].model) == (kept[0].item, "m")
        assert found[0].vectors.tolist() == one.tolist()
        assert await store.items.restore(BOB, kept, now=_LATER) == 0
