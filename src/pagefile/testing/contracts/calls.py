"""Recorded windows."""

from dataclasses import replace
from datetime import timedelta

from pagefile.errors import NotFoundError
from pagefile.ports import Store
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract, refused
from pagefile.testing.drafts import AT, call, done
from pagefile.testing.scopes import ADA, BOB, CHAT, ELSE, FIRM, FIRM_CHAT, STRANGER, TENANT


class WindowLogContract(Contract):
    """`WindowLog`."""

    async def test_calls_come_back_newest_first(self, store: Store) -> None:
        """In the order they were added, whatever their times; an id is added once."""
        first, second = call("a", at=AT + timedelta(hours=1)), replace(call("b"), turn_id="t", query=None)
        await store.calls.add([first, second], keep=10)
        await store.calls.add([replace(first, tokens=1)], keep=10)
        assert await store.calls.list(CHAT) == [second, first]

    async def test_only_the_newest_are_kept(self, store: Store) -> None:
        """Per conversation the new calls belong to; other conversations keep theirs."""
        other = ELSE
        await store.calls.add([call(f"o{number}", scope=other) for number in range(3)], keep=3)
        for number in range(5):
            await store.calls.add([call(f"c{number}")], keep=2)
        assert [found.id for found in await store.calls.list(CHAT)] == ["c4", "c3"]
        assert len(await store.calls.list(other)) == 3
        await store.calls.add([call("c5")], keep=0)
        assert await store.calls.list(CHAT) == []

    async def test_calls_are_of_a_scope_and_go_on(self, store: Store) -> None:
        """No scope sees another's calls; `after` continues after a call."""
        for number, scope in enumerate((CHAT, Scope("tenant", "bob", "b"), CHAT, FIRM_CHAT)):
            await store.calls.add([call(f"c{number}", scope=scope)], keep=10)

        async def listed(scope: Scope, *, limit: int = 100, after: str | None = None) -> list[str]:
            return [found.id for found in await store.calls.list(scope, limit=limit, after=after)]

        assert await listed(CHAT) == await listed(ADA) == ["c2", "c0"]
        assert await listed(TENANT) == ["c2", "c1", "c0"]
        assert await listed(TENANT, limit=1, after="c2") == ["c1"]
        assert await listed(STRANGER) == []
        await refused(NotFoundError, listed(CHAT, after="c1"))

    async def test_a_call_is_found_by_its_id(self, store: Store) -> None:
        """From any scope that may list it; not from others, nor once it is no longer kept."""
        await store.calls.add([call("a"), call("b", scope=Scope("tenant", "bob", "b"))], keep=10)
        for scope in (TENANT, ADA, CHAT):
            assert await store.calls.get(scope, "a") == call("a")
        strangers = (BOB, ELSE, FIRM)
        for scope, call_id in [*((stranger, "a") for stranger in strangers), (CHAT, "b"), (TENANT, "c")]:
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
        other = ELSE
        await store.calls.add([call("new")], keep=10)
        assert await store.calls.restore([call("old"), call("o", scope=other), call("new", scope=other)]) == 1
        assert [found.id for found in await store.calls.list(ADA)] == ["o", "new"]
        assert await store.calls.get(CHAT, "new") == call("new")

    async def test_calls_are_those_that_were_made_for_the_scope(self, store: Store) -> None:
        """A conversation lists only its owner's; a call without a user belongs to the user it was made for. A tenant lists all."""
        nobody, bob = replace(CHAT, user=None), replace(CHAT, user="bob")
        await store.calls.add([call("hers"), call("his", scope=bob), call("none", scope=nobody)], keep=9)
        for_her = replace(call("old", scope=nobody), options={"moment": {"owner": CHAT.user}})
        await store.calls.add([for_her], keep=9)
        for scope, ids in (
            (CHAT, ["old", "hers"]),
            (bob, ["his"]),
            (nobody, ["none"]),
            (TENANT, ["old", "none", "his", "hers"]),
        ):
            found = await store.calls.list(scope)
            assert [one.id for one in found] == ids
            assert [await store.calls.get(scope, one.id) for one in found] == found
            behind = [one.id for one in await store.calls.list(scope, after=ids[0])]
            assert behind == ids[1:]
            for foreign in {"hers", "his", "none", "old"}.difference(ids):
                await refused(NotFoundError, store.calls.get(scope, foreign))
                await refused(NotFoundError, store.calls.list(scope, after=foreign))

    async def test_loose_calls_are_of_conversations_that_nobody_owns(self, store: Store) -> None:
        """Ordered by id, for one tenant or all, with the scopes of the calls."""
        unwritten = Scope("tenant", "ada", "unwritten")
        await store.log.append(done("t"))
        for number, scope in enumerate(
            (CHAT, unwritten, replace(unwritten, user="bob"), Scope("firm", "eve", "x"))
        ):
            await store.calls.add([call(f"c{number}", scope=scope)], keep=10)
        theirs = [unwritten, replace(unwritten, user="bob")]
        assert await store.calls.loose("tenant") == theirs
        assert await store.calls.loose("firm") == [Scope("firm", "eve", "x")]
        assert await store.calls.loose(None) == [Scope("firm", "eve", "x"), *theirs]
