"""API keys."""

from datetime import datetime

from pagefile.ports import KeyStore
from pagefile.records import ApiKey, Scope, utc
from pagefile.stores import rules
from pagefile.stores.sql.parameters import ALL_TENANTS
from pagefile.stores.sql.plays import Play, Player, Row, Values, count, each, first
from pagefile.stores.sql.rows import moment


class SqlKeys(KeyStore):
    """Keys in `api_keys`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def add(self, key: ApiKey) -> None:
        # A key that was already added would be found to be taken.
        await self._player.write(lambda: _add(key), again=False)

    async def get(self, key_id: str) -> ApiKey | None:
        return await self._player.read(lambda: first("key_get", {**ALL_TENANTS, "id": key_id}, _key))

    async def list(self) -> list[ApiKey]:
        return await self._player.read(lambda: each("keys_all", ALL_TENANTS, _key))

    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        def play() -> Play[ApiKey]:
            key = yield from first("key_locked", {**ALL_TENANTS, "id": key_id}, _key)
            if key is None:
                raise rules.no_key(key_id)
            old = rules.rotated(key, successor, until)
            yield from _add(successor)
            yield from count("key_expire", {**ALL_TENANTS, "id": key_id, "expires": old.expires})
            return old

        return await self._player.write(play, again=False)

    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        values = {**ALL_TENANTS, "id": key_id, "at": utc(at)}

        def play() -> Play[ApiKey | None]:
            yield from count("key_revoke", values)
            return (yield from first("key_get", values, _key))

        key = await self._player.write(play)
        if key is None:
            raise rules.no_key(key_id)
        return key

    async def used(self, key_id: str, at: datetime) -> None:
        values = {**ALL_TENANTS, "id": key_id, "at": utc(at)}
        await self._player.write(lambda: count("key_used", values))


def _add(key: ApiKey) -> Play[None]:
    if not (yield from count("key_add", _key_values(key))):
        raise rules.key_taken(key.id)


def _key_values(key: ApiKey) -> Values:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.scope.tenant,
        "user": key.scope.user,
        "digest": key.digest,
        "created": utc(key.created),
        "expires": key.expires and utc(key.expires),
        "revoked": key.revoked and utc(key.revoked),
        "last_used": key.last_used and utc(key.last_used),
    }


def _key(found: Row) -> ApiKey:
    key_id, name, tenant, user, digest, created, *times = found
    ends = (time and moment(time) for time in times)
    return ApiKey(key_id, name, Scope(tenant, user), digest, moment(created), *ends)
