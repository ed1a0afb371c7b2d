"""The session cache: what a cache may lose, and what it must never get wrong."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import pytest

from pagefile.errors import InvalidTurnError
from pagefile.ports import CachedSession, SessionCache
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.testing.drafts import CHAT

Elapse: TypeAlias = Callable[[float], Awaitable[None]]

_TTL_S = 1800
_LARGEST = 2**53 - 1
#: Ids designed to look like each other's keys.
_ALIKE = (
    Scope("a", None, "b:c"),
    Scope("a:b", None, "c"),
    Scope("a%3Ab", None, "c"),
    Scope(DEFAULT_TENANT, None, "a:b:c"),
    Scope(DEFAULT_TENANT, None, "c"),
    Scope(DEFAULT_TENANT, None, "c:version"),
    Scope(DEFAULT_TENANT, None, "tenant:a:session:b:c"),
    Scope("tenant", None, "中文 {x}\n"),
    Scope("tenant", None, "中文 {x}"),
)


class SessionCacheContract(ABC):
    """`SessionCache`."""

    @pytest.fixture
    @abstractmethod
    async def cache(self) -> Any:
        """An empty cache."""

    @pytest.fixture
    @abstractmethod
    async def elapse(self, cache: SessionCache) -> Any:
        """A coroutine function that lets a number of seconds pass for the contents of the cache."""

    async def test_what_is_put_is_what_is_got(self, cache: SessionCache) -> None:
        """Equal JSON, including the order of keys, with its version; nothing for any other conversation."""
        value = {"z": [1, 2.5, None, True], "a": {"中": '文 " \\ \u2028'}, "big": 2**53 + 1}
        assert await cache.get(CHAT) is None
        assert await cache.put(CHAT, value, version=7)
        found = await cache.get(CHAT)
        assert CachedSession(value, 7) == found
        assert found is not None
        assert list(value) == list(found.value)
        assert await cache.put(CHAT, {}, version=_LARGEST)
        assert CachedSession({}, _LARGEST) == await cache.get(CHAT)

    async def test_a_value_got_can_be_changed(self, cache: SessionCache) -> None:
        """The stored value is independent of the objects that were put and returned."""
        value: dict[str, Any] = {"a": [1]}
        await cache.put(CHAT, value, version=1)
        value["a"].append(2)
        first: Any = await cache.get(CHAT)
        first.value["a"].append(3)
        assert CachedSession({"a": [1]}, 1) == await cache.get(CHAT)

    async def test_only_a_newer_version_is_kept(self, cache: SessionCache) -> None:
        """An equal or older one changes nothing, and the caller is told."""
        assert await cache.put(CHAT, {"is": "first"}, version=0)
        assert not await cache.put(CHAT, {"is": "equal"}, version=0)
        assert await cache.put(CHAT, {"is": "newer"}, version=10)
        for version in (9, 10, 0, 2):
            assert not await cache.put(CHAT, {"is": "late"}, version=version)
        assert CachedSession({"is": "newer"}, 10) == await cache.get(CHAT)
        assert await cache.put(CHAT, {"is": "large"}, version=2**52 + 1)
        assert not await cache.put(CHAT, {"is": "late"}, version=2**52)
        assert CachedSession({"is": "large"}, 2**52 + 1) == await cache.get(CHAT)

    async def test_of_many_writers_the_newest_wins(self, cache: SessionCache) -> None:
        """In whatever order they arrive."""
        versions = [version * 7 % 40 for version in range(40)]
        async with anyio.create_task_group() as group:
            for version in versions:
                group.start_soon(lambda version=version: cache.put(CHAT, {"is": version}, version=version))
        assert CachedSession({"is": 39}, 39) == await cache.get(CHAT)

    async def test_a_dropped_value_is_gone(self, cache: SessionCache) -> None:
        """With its version: an older one may replace it. Dropping is idempotent."""
        await cache.put(CHAT, {"is": "here"}, version=5)
        for _ in range(2):
            await cache.drop(CHAT)
            assert await cache.get(CHAT) is None
        assert await cache.put(CHAT, {"is": "older"}, version=4)
        assert CachedSession({"is": "older"}, 4) == await cache.get(CHAT)

    async def test_what_was_erased_is_not_put_back(self, cache: SessionCache, elapse: Elapse) -> None:
        """Not by a caller that read it before; what was written since is kept. The mark expires like a value."""
        await cache.put(CHAT, {"is": "erased"}, version=5)
        assert await cache.erase(CHAT, version=7)
        assert await cache.get(CHAT) is None
        for version in (5, 6, 7):
            assert not await cache.put(CHAT, {"is": "late"}, version=version)
        assert await cache.get(CHAT) is None
        await cache.drop(CHAT)
        assert not await cache.put(CHAT, {"is": "late"}, version=7)
        assert await cache.put(CHAT, {"is": "anew"}, version=8)
        assert CachedSession({"is": "anew"}, 8) == await cache.get(CHAT)
        await cache.erase(CHAT, version=9)
        await elapse(_TTL_S + 1)
        assert await cache.put(CHAT, {"is": "later"}, version=1)

    async def test_it_says_what_it_holds(self, cache: SessionCache) -> None:
        """Conversations of every tenant by name, without erased or dropped ones."""
        held = [
            Scope("default", None, "a:b"),
            Scope("te:nant", None, "c"),
            Scope("default", None, "tenant:x:session:y"),
        ]
        for scope in (*held, CHAT, Scope("te:nant", None, "dropped")):
            await cache.put(scope, {"is": "here"}, version=1)
        await cache.erase(CHAT, version=2)
        await cache.drop(Scope("te:nant", None, "dropped"))
        assert sorted(held, key=repr) == sorted(await cache.kept(), key=repr)

    async def test_a_value_lives_for_half_an_hour(self, cache: SessionCache, elapse: Elapse) -> None:
        """Then it is gone, including its version."""
        await cache.put(CHAT, {"is": "here"}, version=5)
        await elapse(_TTL_S - 5)
        assert CachedSession({"is": "here"}, 5) == await cache.get(CHAT)
        await elapse(6)
        assert await cache.get(CHAT) is None
        assert await cache.put(CHAT, {"is": "back"}, version=5)

    async def test_a_write_begins_the_half_hour_anew(self, cache: SessionCache, elapse: Elapse) -> None:
        """Reading does not, nor does a write that came too late."""
        await cache.put(CHAT, {"is": "old"}, version=1)
        await elapse(_TTL_S - 300)
        await cache.put(CHAT, {"is": "new"}, version=2)
        await elapse(_TTL_S - 300)
        assert CachedSession({"is": "new"}, 2) == await cache.get(CHAT)
        assert not await cache.put(CHAT, {"is": "late"}, version=1)
        await elapse(301)
        assert await cache.get(CHAT) is None

    async def test_conversations_are_apart(self, cache: SessionCache) -> None:
        """Whatever their ids and tenants look like; the user makes no difference."""
        for version, scope in enumerate(_ALIKE):
            assert await cache.put(scope, {"of": version}, version=version)
        for version, scope in enumerate(_ALIKE):
            user = Scope(scope.tenant, "ada", scope.conversation)
            assert CachedSession({"of": version}, version) == await cache.get(user)
        for version, scope in enumerate(_ALIKE):
            await cache.drop(scope)
            left = [other for other in _ALIKE if await cache.get(other) is not None]
            assert list(_ALIKE[version + 1 :]) == left

    async def test_hits_and_misses_are_counted(self, cache: SessionCache) -> None:
        """Every read is one or the other."""
        await cache.get(CHAT)
        await cache.put(CHAT, {}, version=1)
        await cache.get(CHAT)
        await cache.get(CHAT)
        assert (2, 1, 0) == (cache.hits, cache.misses, cache.errors)

    async def test_what_cannot_be_kept_is_refused(self, cache: SessionCache) -> None:
        """Invalid JSON, a version out of range, no conversation."""
        for value, version in (({"x": float("nan")}, 1), ({}, -1), ({}, _LARGEST + 1)):
            with pytest.raises(InvalidTurnError):
                await cache.put(CHAT, value, version=version)
        for call in (cache.get(Scope("t")), cache.put(Scope("t"), {}, version=1), cache.drop(Scope("t"))):
            with pytest.raises(InvalidTurnError):
                await call
        assert await cache.get(CHAT) is None

    async def test_a_closed_cache_has_nothing(self, cache: SessionCache) -> None:
        """It does not raise either; closing is idempotent."""
        await cache.put(CHAT, {}, version=1)
        for _ in range(2):
            await cache.close()
            assert await cache.get(CHAT) is None
            assert not await cache.put(CHAT, {}, version=2)
            await cache.drop(CHAT)
