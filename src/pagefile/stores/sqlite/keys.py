"""API keys."""

from datetime import datetime
from typing import Any

from pagefile.ports import KeyStore
from pagefile.records import ApiKey, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import text_time, time_text
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values


class SqliteKeys(KeyStore):
    """Keys in `api_keys`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, key: ApiKey) -> None:
        await self._writer.run(lambda connection: _add(connection, key))

    async def get(self, key_id: str) -> ApiKey | None:
        return await self._readers.run(lambda connection: _found(connection, key_id))

    async def list(self) -> list[ApiKey]:
        return await self._readers.run(
            lambda connection: [_key(row) for row in connection.execute(sql("keys_all"))]
        )

    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        def write(connection: Connection) -> ApiKey:
            key = _found(connection, key_id)
            if key is None:
                raise rules.no_key(key_id)
            old = rules.rotated(key, successor, until)
            _add(connection, successor)
            connection.execute(sql("key_expire"), {"id": key_id, "expires": time_text(old.expires or until)})
            return old

        return await self._writer.run(write)

    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        def write(connection: Connection) -> ApiKey:
            connection.execute(sql("key_revoke"), {"id": key_id, "at": time_text(at)})
            key = _found(connection, key_id)
            if key is None:
                raise rules.no_key(key_id)
            return key

        return await self._writer.run(write)

    async def used(self, key_id: str, at: datetime) -> None:
        values = {"id": key_id, "at": time_text(at)}
        await self._writer.run(lambda connection: connection.execute(sql("key_used"), values).close())


def _add(connection: Connection, key: ApiKey) -> None:
    connection.execute(sql("key_add"), _key_values(key))
    if not connection.changes():
        raise rules.key_taken(key.id)


def _found(connection: Connection, key_id: str) -> ApiKey | None:
    row: Any = connection.execute(sql("key_get"), {"id": key_id}).fetchone()
    return None if row is None else _key(row)


def _key_values(key: ApiKey) -> Values:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.scope.tenant,
        "user": key.scope.user,
        "digest": key.digest,
        "created": time_text(key.created),
        "expires": key.expires and time_text(key.expires),
        "revoked": key.revoked and time_text(key.revoked),
        "last_used": key.last_used and time_text(key.last_used),
    }


def _key(row: Row) -> ApiKey:
    key_id, name, tenant, user, digest, created, *times = row
    expires, revoked, last_used = (time and text_time(time) for time in times)
    return ApiKey(key_id, name, Scope(tenant, user), digest, text_time(created), expires, revoked, last_used)
