"""Items."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pagefile.ports import ItemKey, ItemStore, ItemVectors, ItemWrite, KeptItem, Namespace, StoredItem
from pagefile.records import Scope
from pagefile.stores.encoding import from_json, text_time, time_text, to_json
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
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values


class SqliteItems(ItemStore):
    """Items in the table of that name."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def write(self, scope: Scope, writes: Sequence[ItemWrite], *, now: datetime) -> None:
        asked = {**owner(scope), "now": time_text(now)}
        last = last_writes(writes)
        removed = [{**asked, **place((one.namespace, one.key))} for one in last if one.value is None]
        put = [{**asked, **_values(one, now)} for one in last if one.value is not None]

        def write(connection: Connection) -> None:
            # What has expired must not lend its age to what is put in its place.
            connection.execute(sql("items_sweep"), asked)
            connection.executemany(sql("item_remove"), removed)
            connection.executemany(sql("item_put"), put)

        await self._writer.run(write)

    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        asked = [{**owner(scope), "now": time_text(now), **place(key)} for key in keys]

        def read(connection: Connection) -> list[StoredItem | None]:
            rows: list[Any] = [connection.execute(sql("item_get"), one).fetchone() for one in asked]
            return [None if row is None else _item(row) for row in rows]

        return await self._readers.run(read)

    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        asked = {**_under(scope, prefix, now), "limit": -1 if limit is None else limit, "skip": offset}

        def read(connection: Connection) -> list[StoredItem]:
            return [_item(row) for row in connection.execute(sql("items_under"), asked)]

        return await self._readers.run(read)

    async def vectors(
        self, scope: Scope, prefix: Namespace, maker: str, *, now: datetime
    ) -> list[ItemVectors]:
        asked = {**_under(scope, prefix, now), "maker": maker}

        def read(connection: Connection) -> list[ItemVectors]:
            rows: Any = connection.execute(sql("items_vectors"), asked)
            return [
                ItemVectors(text_namespace(namespace), key, data_vectors(data, dimension))
                for namespace, key, data, dimension in rows
            ]

        return await self._readers.run(read)

    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        asked = _under(scope, prefix, now)

        def read(connection: Connection) -> list[Namespace]:
            rows: Any = connection.execute(sql("items_namespaces"), asked)
            return [text_namespace(row[0]) for row in rows]

        return await self._readers.run(read)

    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        asked = [{**owner(scope), "now": time_text(now), **place(key)} for key in keys]

        def write(connection: Connection) -> None:
            for one in asked:
                row: Any = connection.execute(sql("item_get"), one).fetchone()
                end = None if row is None else end_of(now, row[-1])
                if end is not None:
                    connection.execute(sql("item_touch"), {**one, "expires": time_text(end)})

        await self._writer.run(write)

    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        asked = {**owner(scope), "now": time_text(now)}

        def write(connection: Connection) -> int:
            connection.execute(sql("items_sweep"), asked)
            return connection.changes()

        return await self._writer.run(write)

    async def owners(self, tenant: str | None) -> list[Scope]:
        def read(connection: Connection) -> list[Scope]:
            rows: Any = connection.execute(sql("items_owners"), {"tenant": tenant})
            return [Scope(of, user or None) for of, user in rows]

        return await self._readers.run(read)

    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        behind = {"namespace": "", "key": ""} if after is None else place(after)
        asked = {**owner(scope), **behind, "now": time_text(now), "limit": limit}

        def read(connection: Connection) -> list[KeptItem]:
            return [
                kept_item(_item(row[:-3]), *row[-3:]) for row in connection.execute(sql("items_kept"), asked)
            ]

        return await self._readers.run(read)

    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        asked = {**owner(scope), "now": time_text(now)}
        rows = [{**asked, **_restored(kept)} for kept in living(items, now)]

        def write(connection: Connection) -> int:
            connection.execute(sql("items_sweep"), asked)
            new = 0
            for row in rows:
                connection.execute(sql("item_restore"), row)
                new += connection.changes()
            return new

        return await self._writer.run(write)


def _restored(kept: KeptItem) -> Values:
    item = kept.item
    return {
        **place(item.place),
        "content": to_json(item.value),
        "created": time_text(item.created),
        "updated": time_text(item.updated),
        "expires": item.expires and time_text(item.expires),
        "ttl_s": None if item.ttl_s is None else float(item.ttl_s),
        **vectors_data(written(kept)),
    }


def _under(scope: Scope, prefix: Namespace, now: datetime) -> Values:
    text = namespace_text(prefix)
    return {**owner(scope), "prefix": text, "beyond": beyond(text), "now": time_text(now)}


def _values(write: ItemWrite, now: datetime) -> Values:
    end = end_of(now, write.ttl_s)
    return {
        **place((write.namespace, write.key)),
        "content": to_json(write.value),
        "expires": end and time_text(end),
        "ttl_s": None if write.ttl_s is None else float(write.ttl_s),
        **vectors_data(write),
    }


def _item(row: Row) -> StoredItem:
    namespace, key, content, created, updated, expires, ttl_s = row
    times = text_time(created), text_time(updated), expires and text_time(expires)
    return StoredItem(text_namespace(namespace), key, from_json(content), *times, ttl_s)
