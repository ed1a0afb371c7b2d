"""The session value of a conversation, and its cache: what a cache may lose, and what it must never get wrong."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import pytest

from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.ports import CachedSession, ConversationQuery, SessionCache, Store
from pagefile.records import DEFAULT_TENANT, JsonObject, Scope
from pagefile.testing.contracts.base import Contract, refused, session_of, write
from pagefile.testing.drafts import AT, aborted, checkpoint, completed, done, opened, reset
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, CHAT, STRANGER

_SECONDS = int(AT.timestamp())
_NO_MESSAGES: JsonObject = {
    "summary": "",
    "window_messages": [],
    "mode": "FULL_HISTORY",
    "checkpoint_message_id": "",
}


class SessionStoreContract(Contract):
    """`SessionStore`, and the session's part in the turn's transaction."""

    async def test_there_is_no_session_before_a_turn_is_done(self, store: Store) -> None:
        """None; an open or aborted turn does not create one."""
        assert await store.sessions.get(CHAT) is None
        await write(store, opened("a"), aborted("a"))
        assert await store.sessions.get(CHAT) is None

    async def test_a_done_turn_writes_the_document_s_keys(self, store: Store) -> None:
        """Every key of the session value's JSON, by name."""
        await store.log.append(done("a", "头晕", "请休息", agent="triage"))
        assert await session_of(store) == {
            "meta": {"conversation_id": "chat", "user_id": "ada", "updated_at": _SECONDS},
            "flow_context": {"current_agent_key": "triage", "last_bot_message": "请休息", "turn_count": 1},
            "message_context": _NO_MESSAGES,
            "global_state": {
                "agent_slots": {},
                "current_intent": "",
                "pending_action": None,
            },
            "user_snapshot": {"user_id": "ada", "name": "", "preferences": []},
        }

    async def test_the_session_follows_the_turns(self, store: Store, clock: FakeClock) -> None:
        """The count rises with every done turn; fields a turn does not set stay as they were."""
        begun = opened("c", agent="pharmacy")
        await write(store, done("a", agent="triage"), done("b", assistant=None), begun)
        clock.advance(90)
        said = 'quotes " and \\ and 中文'
        await write(store, completed("c", said), done("a", agent="again"))
        value = await session_of(store)
        flow = {"current_agent_key": "pharmacy", "last_bot_message": said, "turn_count": 3}
        assert (value["flow_context"], value["meta"]["updated_at"]) == (flow, _SECONDS + 90)

    async def test_a_checkpoint_and_a_reset_change_the_mode(self, store: Store) -> None:
        """A checkpoint sets its summary and id; a reset clears them and restarts the count."""
        await write(store, done("a"), checkpoint("k", 1))
        value = await session_of(store)
        summarized = {"summary": "what was said", "mode": "SUMMARY_N", "checkpoint_message_id": "k"}
        assert value["message_context"] == {**_NO_MESSAGES, **summarized}
        assert value["flow_context"]["turn_count"] == 1
        await store.log.mark(reset("r"))
        value = await session_of(store)
        assert value["message_context"] == _NO_MESSAGES
        assert value["flow_context"]["turn_count"] == 0
        await store.log.append(done("b"))
        assert (await session_of(store))["flow_context"]["turn_count"] == 1

    async def test_what_an_application_keeps_in_it_stays(self, store: Store) -> None:
        """A turn changes only its own keys."""
        await store.log.append(done("a"))
        value = await session_of(store)
        value["global_state"]["agent_slots"] = {"dose": [1, 2.5, None, "毫克"]}
        value["own"] = True
        await store.sessions.put(CHAT, value)
        await store.log.append(done("b"))
        after = await session_of(store)
        assert (after["global_state"], after["own"]) == (value["global_state"], True)
        assert after["flow_context"]["turn_count"] == 2

    async def test_a_turn_mends_what_it_can(self, store: Store) -> None:
        """A missing section is created; one that is not an object is left alone."""
        await store.sessions.put(CHAT, {"flow_context": None, "meta": {"updated_at": "never"}})
        await store.log.append(done("a"))
        ada = {"user_id": "ada"}
        mended = {"flow_context": None, "meta": {"updated_at": _SECONDS, **ada}, "user_snapshot": ada}
        assert await session_of(store) == mended

    async def test_put_replaces_the_value(self, store: Store) -> None:
        for value in ({"a": [1, {"b": None}], "中": "文"}, {}):
            await store.sessions.put(CHAT, value)
            assert await session_of(store) == value

    async def test_putting_a_session_begins_the_conversation(self, store: Store) -> None:
        """It belongs to the user who put it, and is listed."""
        await store.sessions.put(CHAT, {})
        heads = await store.reader.heads(ConversationQuery(ADA))
        assert [(head.scope, head.exists, head.last_seq) for head in heads] == [(CHAT, True, 0)]

    async def test_the_session_of_another_user_conflicts(self, store: Store) -> None:
        await store.sessions.put(CHAT, {"mine": 1})
        await refused(ConflictError, store.sessions.get(STRANGER), store.sessions.put(STRANGER, {}))
        assert await session_of(store) == {"mine": 1}

    async def test_changes_at_the_same_time_all_count(self, store: Store) -> None:
        """Each change gets the result of the one before it; the first gets None and creates the conversation."""
        made: list[JsonObject | None] = []

        async def change(name: str) -> None:
            def with_name(value: JsonObject | None) -> JsonObject:
                made.append(value)
                return {**(value or {}), name: 1}

            await store.sessions.change(CHAT, with_name)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(change, f"n{number}")
        assert made[0] is None
        assert await session_of(store) == {f"n{number}": 1 for number in range(8)}
        await refused(ConflictError, store.sessions.change(STRANGER, lambda value: {"theirs": 1}))
        assert len(await session_of(store)) == 8

    async def test_a_change_that_fails_changes_nothing(self, store: Store) -> None:
        def fails(value: JsonObject | None) -> JsonObject:
            raise InvalidArgumentError("no")

        await refused(InvalidArgumentError, store.sessions.change(CHAT, fails))
        assert not await store.reader.heads(ConversationQuery(ADA))

    async def test_a_database_has_one_secret(self, store: Store) -> None:
        """Random, and the same whenever it is asked for."""
        secret = await store.sessions.secret()
        assert len(secret) >= 32
        assert secret == await store.sessions.secret()

    async def test_a_session_must_be_json(self, store: Store) -> None:
        await refused(InvalidArgumentError, store.sessions.put(CHAT, {"x": float("inf")}))
        assert await store.sessions.get(CHAT) is None


Elapse: TypeAlias = Callable[[float], Awaitable[None]]

_TTL_S = 1800
_LARGEST = 2**53 - 1
#: Ids designed to look like each other's keys.
_ALIKE = (
    *(Scope(tenant, None, name) for tenant, name in (("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c"))),
    *(Scope(DEFAULT_TENANT, None, name) for name in ("a:b:c", "c", "c:version", "tenant:a:session:b:c")),
    *(Scope("tenant", None, name) for name in ("中文 {x}\n", "中文 {x}")),
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
        for given, version in ((value, 7), ({}, _LARGEST)):
            assert await cache.put(CHAT, given, version=version)
            found = await cache.get(CHAT)
            assert CachedSession(given, version) == found
            assert found and list(given) == list(found.value)

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

    async def test_an_invalid_value_is_not_found(self, cache: SessionCache) -> None:
        """Until another value of any version is put; an erased conversation stays erased."""
        await cache.put(CHAT, {"is": "here"}, version=5)
        for _ in range(2):
            assert await cache.invalidate(CHAT)
            assert await cache.get(CHAT) is None
        assert await cache.put(CHAT, {"is": "older"}, version=4)
        assert CachedSession({"is": "older"}, 4) == await cache.get(CHAT)
        await cache.erase(CHAT, version=7)
        await cache.invalidate(CHAT)
        assert not await cache.put(CHAT, {"is": "late"}, version=7)

    async def test_a_value_from_before_an_invalidation_is_not_put(self, cache: SessionCache) -> None:
        """Its reader may have been slow: with a permit from before nothing is stored, with one from afterwards it is."""
        for erased in (False, True):
            if erased:
                await cache.erase(CHAT, version=5)
            late = await cache.permit(CHAT)
            for _ in range(2):
                assert await cache.invalidate(CHAT)
                assert not await cache.put(CHAT, {"is": "late"}, version=6, permit=late)
                assert await cache.get(CHAT) is None
            permit = await cache.permit(CHAT)
            assert await cache.put(CHAT, {"is": "new"}, version=6, permit=permit)
            assert CachedSession({"is": "new"}, 6) == await cache.get(CHAT)

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
        assert await cache.put(CHAT, {"is": "again"}, version=8)
        assert CachedSession({"is": "again"}, 8) == await cache.get(CHAT)
        await cache.erase(CHAT, version=9)
        await elapse(_TTL_S + 1)
        assert await cache.put(CHAT, {"is": "later"}, version=1)

    async def test_it_says_what_it_holds(self, cache: SessionCache) -> None:
        """Conversations of every tenant by name, without erased or dropped ones."""
        names = (("default", "a:b"), ("te:nant", "c"), ("default", "tenant:x:session:y"))
        held = [Scope(tenant, None, name) for tenant, name in names]
        dropped = Scope("te:nant", None, "dropped")
        for scope in (*held, CHAT, dropped):
            await cache.put(scope, {"is": "here"}, version=1)
        await cache.erase(CHAT, version=2)
        await cache.drop(dropped)
        assert sorted(held, key=repr) == sorted(await cache.kept(), key=repr)

    async def test_a_value_lives_for_half_an_hour(self, cache: SessionCache, elapse: Elapse) -> None:
        """Then it is gone, including its version."""
        await cache.put(CHAT, {"is": "here"}, version=5)
        await elapse(_TTL_S - 5)
        assert CachedSession({"is": "here"}, 5) == await cache.get(CHAT)
        await elapse(6)
        assert await cache.get(CHAT) is None
        assert await cache.put(CHAT, {"is": "back"}, version=5)

    async def test_a_write_restarts_the_half_hour(self, cache: SessionCache, elapse: Elapse) -> None:
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
        for _ in range(2):
            await cache.get(CHAT)
        assert (2, 1, 0) == (cache.hits, cache.misses, cache.errors)

    async def test_what_cannot_be_kept_is_refused(self, cache: SessionCache) -> None:
        """Invalid JSON, a version out of range, no conversation."""
        for value, version in (({"x": float("nan")}, 1), ({}, -1), ({}, _LARGEST + 1)):
            await refused(InvalidArgumentError, cache.put(CHAT, value, version=version))
        calls = cache.get(Scope("t")), cache.put(Scope("t"), {}, version=1), cache.drop(Scope("t"))
        await refused(InvalidArgumentError, *calls)
        assert await cache.get(CHAT) is None

    async def test_a_closed_cache_has_nothing(self, cache: SessionCache) -> None:
        """It does not raise either; closing is idempotent."""
        await cache.put(CHAT, {}, version=1)
        for _ in range(2):
            await cache.close()
            assert await cache.get(CHAT) is None
            assert not await cache.put(CHAT, {}, version=2)
            assert await cache.permit(CHAT) is None
            await cache.drop(CHAT)
