"""API keys."""

from datetime import datetime

from pagefile.ports import KeyStore
from pagefile.records import ApiKey, Scope, utc
from pagefile.stores import rules
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.queries import ALL_TENANTS


class PostgresKeys(KeyStore):
    """Keys in `api_keys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        # A key that was already added would be found to be taken.
        await self._database.write(lambda connection: _add(connection, key), again=False)

    async def get(self, key_id: str) -> ApiKey | None:
        row = await self._database.row("key_get", {**ALL_TENANTS, "id": key_id})
        return None if row is None else _key(row)

    async def list(self) -> list[ApiKey]:
        return [_key(row) for row in await self._database.rows("keys_all", ALL_TENANTS)]

    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        async def write(connection: Connection) -> ApiKey:
            row = await connection.row("key_locked", {**ALL_TENANTS, "id": key_id})
            if row is None:
                raise rules.no_key(key_id)
            old = rules.rotated(_key(row), successor, until)
            await _add(connection, successor)
            await connection.count("key_expire", {**ALL_TENANTS, "id": key_id, "expires": old.expires})
            return old

        return await self._database.write(write, again=False)

    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        values = {**ALL_TENANTS, "id": key_id, "at": utc(at)}
        row = await self._database.write(lambda connection: connection.row("key_revoke", values))
        if row is None:
            raise rules.no_key(key_id)
        return _key(row)

    async def used(self, key_id: str, at: datetime) -> None:
        values = {**ALL_TENANTS, "id": key_id, "at": utc(at)}
        await self._database.write(lambda connection: connection.count("key_used", values))


async def _add(connection: Connection, key: ApiKey) -> None:
    if not await connection.count("key_add", _key_values(key)):
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


def _key(row: Row) -> ApiKey:
    key_id, name, tenant, user, *rest = row
    return ApiKey(key_id, name, Scope(tenant, user), *rest)
