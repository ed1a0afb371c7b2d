"""Erasures still owed by places outside the database."""

from pagefile.ports import Owed, Store
from pagefile.records import Scope
from pagefile.stores.erasing import scope_key
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import CHAT, done

_CHAT, _USER = scope_key("tenant", None, "chat"), scope_key("tenant", "ada")


class ErasuresContract(Contract):
    """`Erasures`."""

    async def test_an_erasure_is_owed_to_every_known_place(self, store: Store) -> None:
        """From the moment the rows are gone until the place has carried it out, with the scopes to erase."""
        await store.erase(Scope("tenant", "before"))
        await store.erasures.begin("a")
        assert await store.erasures.places() == {"a": 0}
        await store.log.append(done("a"))
        await store.erase(Scope("tenant", "ada"))
        await store.erasures.begin("b")
        assert await store.erasures.places() == {"a": 2, "b": 0}
        owed = await store.erasures.owed("a")
        assert owed == Owed(1, {_USER: 2, _CHAT: 2})
        await store.erasures.done("a", owed)
        assert await store.erasures.owed("a") == Owed(2, {})
        assert await store.erasures.places() == {"a": 0, "b": 0}

    async def test_nothing_is_owed_to_an_unknown_place(self, store: Store) -> None:
        """Nor does asking make it known."""
        await store.erase(CHAT)
        assert (await store.erasures.owed("nowhere")).scopes == {}
        await store.erasures.redo("nowhere", 0)
        assert await store.erasures.places() == {}

    async def test_a_place_that_is_known_goes_on(self, store: Store) -> None:
        """Registering again cancels nothing."""
        await store.erasures.begin("a")
        await store.erase(CHAT)
        await store.erasures.begin("a")
        assert (await store.erasures.owed("a")).scopes == {_CHAT: 1}

    async def test_what_came_meanwhile_is_still_owed(self, store: Store) -> None:
        """Only what was owed when it was read counts as done."""
        await store.erasures.begin("a")
        await store.erase(CHAT)
        owed = await store.erasures.owed("a")
        await store.erase(Scope("tenant", "bob"))
        await store.erasures.done("a", owed)
        assert await store.erasures.owed("a") == Owed(1, {scope_key("tenant", "bob"): 2})

    async def test_what_was_put_behind_an_erasure_is_owed_again(self, store: Store) -> None:
        """Even if the place reports completion in between."""
        await store.erasures.begin("a")
        for scope in (CHAT, Scope("tenant", "bob")):
            await store.erase(scope)
        first = await store.erasures.owed("a")
        await store.erasures.done("a", first)
        await store.erasures.redo("a", 1)
        assert (await store.erasures.owed("a")).scopes == {scope_key("tenant", "bob"): 2}
        later = await store.erasures.owed("a")
        await store.erasures.redo("a", 0)
        await store.erasures.done("a", later)
        assert await store.erasures.owed("a") == Owed(0, {_CHAT: 1, scope_key("tenant", "bob"): 2})
