"""Calls and sessions as dicts."""

from collections.abc import Sequence
from dataclasses import replace

from pagefile.ports import (
    CallLog,
    SessionStore,
)
from pagefile.records import (
    Call,
    JsonObject,
    Scope,
    utc,
)
from pagefile.stores import rules
from pagefile.stores.encoding import plain
from pagefile.stores.inmemory.room import Room, behind


class InMemoryCalls(CallLog):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def add(self, calls: Sequence[Call], *, keep: int, epoch: int | None = None) -> None:
        self._room.check_epoch(epoch, *(call.scope for call in calls))
        for call in calls:
            self._room.calls.setdefault((call.scope.tenant, call.id), _plain(call))
        for tenant, name in {(call.scope.tenant, call.scope.conversation) for call in calls}:
            mine = [
                key
                for key, call in self._room.calls.items()
                if (call.scope.tenant, call.scope.conversation) == (tenant, name)
            ]
            for key in mine[: max(0, len(mine) - keep)]:
                del self._room.calls[key]

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        self._room.check_open()
        newest = [
            call for call in reversed(self._room.calls.values()) if rules.lists(scope, rules.made_for(call))
        ]
        return behind(newest, lambda call: call.id, after)[:limit]

    async def get(self, scope: Scope, call_id: str) -> Call:
        self._room.check_open()
        call = self._room.calls.get((scope.tenant, call_id))
        if call is None or not rules.lists(scope, rules.made_for(call)):
            raise rules.no_call(call_id)
        return call

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        self._room.check_open()
        called = {call.scope for call in self._room.calls.values() if call.scope.conversation is not None}
        unused = [
            scope for scope in called if (scope.tenant, scope.conversation) not in self._room.conversations
        ]
        unused.sort(key=lambda scope: (scope.tenant, scope.conversation or "", scope.user or ""))
        return [scope for scope in unused if tenant in (None, scope.tenant)]

    async def restore(self, calls: Sequence[Call]) -> int:
        self._room.check_open()
        full = {(call.scope.tenant, call.scope.conversation) for call in self._room.calls.values()}
        before = len(self._room.calls)
        for call in calls:
            if (call.scope.tenant, call.scope.conversation) not in full:
                self._room.calls.setdefault((call.scope.tenant, call.id), _plain(call))
        return len(self._room.calls) - before


def _plain(call: Call) -> Call:
    return replace(call, at=utc(call.at), options=plain(call.options), receipt=plain(call.receipt))


class InMemorySessions(SessionStore):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def get(self, scope: Scope) -> JsonObject | None:
        self._room.found(scope)
        value = self._room.sessions.get((scope.tenant, rules.conversation_of(scope)))
        return None if value is None else plain(value)

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        fresh = plain(value)
        self._room.check_epoch(epoch, scope)
        self._room.written(scope)
        self._room.sessions[scope.tenant, rules.conversation_of(scope)] = fresh
