"""API keys."""

from dataclasses import replace
from datetime import timedelta

from pagefile.errors import ConflictError, NotFoundError
from pagefile.ports import Store
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract, refused
from pagefile.testing.drafts import AT, api_key
from pagefile.testing.scopes import ADA, TENANT

_LATER = AT + timedelta(hours=2)


class KeyStoreContract(Contract):
    """`KeyStore`."""

    async def test_a_key_comes_back_as_it_was_added(self, store: Store) -> None:
        """With every field, in any script; an unknown one is None."""
        key = replace(
            api_key("k1", "门诊 laptop", scope=Scope("诊所", "李雷")),
            expires=AT + timedelta(days=30),
            revoked=AT + timedelta(days=2),
            last_used=AT + timedelta(days=1, microseconds=7),
        )
        await store.keys.add(key)
        assert await store.keys.get("k1") == key
        assert await store.keys.get("k2") is None

    async def test_keys_are_listed_oldest_first(self, store: Store) -> None:
        """Those with the same time by id."""
        for key in (api_key("b"), api_key("c", created=AT - timedelta(days=1)), api_key("a")):
            await store.keys.add(key)
        assert [key.id for key in await store.keys.list()] == ["c", "a", "b"]

    async def test_an_id_is_given_once(self, store: Store) -> None:
        """A second one raises `ConflictError`, and the first stays as it was."""
        await store.keys.add(api_key("k"))
        await refused(ConflictError, store.keys.add(api_key("k", "thief", scope=Scope("other"))))
        assert await store.keys.list() == [api_key("k")]

    async def test_a_revoked_key_stays_on_record(self, store: Store) -> None:
        """With the time of its first revocation; an unknown one is not found."""
        await store.keys.add(api_key("k"))
        await store.keys.add(api_key("other"))
        revoked = replace(api_key("k"), revoked=AT)
        assert await store.keys.revoke("k", AT) == revoked
        assert await store.keys.revoke("k", _LATER) == revoked == await store.keys.get("k")
        assert await store.keys.get("other") == api_key("other")
        await refused(NotFoundError, store.keys.revoke("nobody", AT))

    async def test_a_key_is_rotated_with_an_overlap(self, store: Store) -> None:
        """Both give the same access until the old one expires; other keys stay as they were."""
        for key_id in ("old", "other"):
            await store.keys.add(api_key(key_id))
        new = api_key("new", created=_LATER)
        until = _LATER + timedelta(days=1)
        old = await store.keys.rotate("old", new, until)
        assert old == replace(api_key("old"), expires=until) == await store.keys.get("old")
        assert await store.keys.list() == [old, api_key("other"), new]
        assert old.usable_at(until - timedelta(microseconds=1))
        assert not old.usable_at(until)

    async def test_an_overlap_lengthens_no_key(self, store: Store) -> None:
        """One that expires earlier keeps its expiry."""
        ends = AT + timedelta(hours=3)
        await store.keys.add(replace(api_key("old"), expires=ends))
        old = await store.keys.rotate("old", api_key("new", created=_LATER), AT + timedelta(days=9))
        assert old.expires == ends

    async def test_only_a_key_that_opens_something_is_rotated(self, store: Store) -> None:
        """A revoked or expired one, or a taken id, raises `ConflictError`; an unknown one is not found. Nothing is written."""
        await store.keys.add(api_key("revoked"))
        await store.keys.revoke("revoked", AT)
        await store.keys.add(replace(api_key("expired"), expires=AT))
        await store.keys.add(api_key("open"))
        before = await store.keys.list()
        new = api_key("new", created=_LATER)
        for key_id, successor in (("revoked", new), ("expired", new), ("open", api_key("expired"))):
            await refused(ConflictError, store.keys.rotate(key_id, successor, _LATER))
        await refused(NotFoundError, store.keys.rotate("nobody", new, _LATER))
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
        for moment in (AT, _LATER, AT):
            await store.keys.used("k", moment)
        await store.keys.used("nobody", AT)
        assert await store.keys.list() == [replace(api_key("k"), last_used=_LATER)]

    async def test_erasing_leaves_the_keys(self, store: Store) -> None:
        """They belong to the operator: erasing one's data must not lock one out."""
        await store.keys.add(api_key("k", scope=ADA))
        for scope in (ADA, TENANT):
            await store.erase(scope)
        assert [key.id for key in await store.keys.list()] == ["k"]
