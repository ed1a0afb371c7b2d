"""Items."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import ItemKey, ItemStore, ItemVectors, ItemWrite, KeptItem, Namespace, StoredItem
from pagefile.records import Scope, utc
from pagefile.stores.encoding import from_json, to_json
from pagefile.stores.items import (
    beyond,
    data_vectors,
    end_of,
    kept_item,
    last_writes,
    living,
    namespace_text,
    owner,
    place,
    text_namespace,
    vectors_data,
    written,
)
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values


class PostgresItems(ItemStore):
    """Items in the table of that name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, scope: Scope, writes: Sequence[ItemWrite], *, now: datetime) -> None:
        asked = {**owner(scope), "now": utc(now)}
        # In one order, so that two who write the same keys do not wait for each other in a circle.
        last = sorted(last_writes(writes), key=lambda one: (one.namespace, one.key))
        removed = [{**asked, **place((one.namespace, one.key))} for one in last if one.value is None]
        put = [{**asked, **_values(one, now)} for one in last if one.value is not None]

        async def write(connection: Connection) -> None:
            # What has expired must not lend its age to what is put in its place.
            await connection.count("items_sweep", asked)
            await connection.many("item_remove", removed)
            await connection.many("item_put", put)

        await self._database.write(write)

    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        asked = [{**owner(scope), "now": utc(now), **place(key)} for key in keys]

        async def read(connection: Connection) -> list[StoredItem | None]:
            rows = [await connection.row("item_get", one) for one in asked]
            return [None if row is None else _item(row) for row in rows]

        return await self._database.read(read)

    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        asked = {**_under(scope, prefix, now), "limit": limit, "skip": offset}
        return [_item(row) for row in await self._database.rows("items_under", asked)]

    async def vectors(
        self, scope: Scope, prefix: Namespace, maker: str, *, now: datetime
    ) -> list[ItemVectors]:
        rows = await self._database.rows("items_vectors", {**_under(scope, prefix, now), "maker": maker})
        return [
            ItemVectors(text_namespace(namespace), key, data_vectors(data, dimension))
            for namespace, key, data, dimension in rows
        ]

    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        rows = await self._database.rows("items_namespaces", _under(scope, prefix, now))
        return [text_namespace(row[0]) for row in rows]

    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        asked = [{**owner(scope), "now": utc(now), **place(key)} for key in sorted(set(keys))]

        async def write(connection: Connection) -> None:
            for one in asked:
                row = await connection.row("item_get", one)
                end = None if row is None else end_of(now, row[6])
                if end is not None:
                    await connection.count("item_touch", {**one, "expires": end})

        await self._database.write(write)

    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        asked = {**owner(scope), "now": utc(now)}
        return await self._database.write(lambda connection: connection.count("items_sweep", asked))

    async def owners(self, tenant: str | None) -> list[Scope]:
        rows = await self._database.rows("items_owners", {"tenants": tenant})
        return [Scope(of, user or None) for of, user in rows]

    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        behind = {"namespace": "", "key": ""} if after is None else place(after)
        asked = {**owner(scope), **behind, "now": utc(now), "limit": limit}
        rows = await self._database.rows("items_kept", asked)
        return [kept_item(_item(row[:-3]), *row[-3:]) for row in rows]

    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        asked = {**owner(scope), "now": utc(now)}
        rows = [{**asked, **_restored(kept)} for kept in living(items, now)]
        rows.sort(key=lambda row: (row["namespace"], row["key"]))

        async def write(connection: Connection) -> int:
            await connection.count("items_sweep", asked)
            return sum([await connection.count("item_restore", row) for row in rows])

        return await self._database.write(write)


def _restored(kept: KeptItem) -> Values:
    item = kept.item
    return {
        **place(item.place),
        "content": to_json(item.value),
        "created": utc(item.created),
        "updated": utc(item.updated),
        "expires": item.expires and utc(item.expires),
        "ttl_s": None if item.ttl_s is None else float(item.ttl_s),
        **vectors_data(written(kept)),
    }


def _under(scope: Scope, prefix: Namespace, now: datetime) -> Values:
    text = namespace_text(prefix)
    return {**owner(scope), "prefix": text, "beyond": beyond(text), "now": utc(now)}


def _values(write: ItemWrite, now: datetime) -> Values:
    return {
        **place((write.namespace, write.key)),
        "content": to_json(write.value),
        "expires": end_of(now, write.ttl_s),
        "ttl_s": None if write.ttl_s is None else float(write.ttl_s),
        **vectors_data(write),
    }


def _item(row: Row) -> StoredItem:
    namespace, key, content, created, updated, expires, ttl_s = row
    times = utc(created), utc(updated), expires and utc(expires)
    return StoredItem(text_namespace(namespace), key, from_json(content), *times, ttl_s)
