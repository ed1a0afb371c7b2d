"""API keys as a dict."""

from dataclasses import replace
from datetime import datetime

from pagefile.ports import KeyStore
from pagefile.records import ApiKey, utc
from pagefile.stores import rules
from pagefile.stores.inmemory.room import Room


class InMemoryKeys(KeyStore):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def add(self, key: ApiKey) -> None:
        self._room.check_open()
        if key.id in self._room.keys:
            raise rules.key_taken(key.id)
        self._room.keys[key.id] = replace(key, created=utc(key.created))

    async def get(self, key_id: str) -> ApiKey | None:
        self._room.check_open()
        return self._room.keys.get(key_id)

    async def list(self) -> list[ApiKey]:
        self._room.check_open()
        return sorted(self._room.keys.values(), key=lambda key: (key.created, key.id))

    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        self._room.check_open()
        key = self._room.keys.get(key_id)
        if key is None:
            raise rules.no_key(key_id)
        old = rules.rotated(key, successor, until)
        await self.add(successor)
        self._room.keys[key_id] = old
        return old

    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        self._room.check_open()
        key = self._room.keys.get(key_id)
        if key is None:
            raise rules.no_key(key_id)
        self._room.keys[key_id] = replace(key, revoked=key.revoked or utc(at))
        return self._room.keys[key_id]

    async def used(self, key_id: str, at: datetime) -> None:
        self._room.check_open()
        key, now = self._room.keys.get(key_id), utc(at)
        if key is not None and (key.last_used is None or key.last_used < now):
            self._room.keys[key_id] = replace(key, last_used=now)
