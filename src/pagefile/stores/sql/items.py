"""Items."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import ItemKey, ItemStore, ItemVectors, ItemWrite, KeptItem, Namespace, StoredItem
from pagefile.records import Scope, utc
from pagefile.stores.encoding import field_values, from_json, moment, to_json
from pagefile.stores.item_rows import (
    beyond,
    data_vectors,
    end_of,
    kept_item,
    key_values,
    last_writes,
    living,
    namespace_text,
    owner,
    text_namespace,
    vectors_data,
    written,
)
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, count, first, many

#: For a list without a limit: SQLite has no NULL there, PostgreSQL nothing below zero.
_ALL = 2**53


class SqlItems(SqlPort, ItemStore):
    async def write(self, scope: Scope, writes: Sequence[ItemWrite], *, now: datetime) -> None:
        asked = {**owner(scope), "now": utc(now)}
        # In a fixed order, so that two writers of the same keys do not deadlock.
        last = sorted(last_writes(writes), key=lambda one: (one.namespace, one.key))
        removed = [{**asked, **key_values((one.namespace, one.key))} for one in last if one.value is None]
        put = [{**asked, **_values(one, now)} for one in last if one.value is not None]

        def play() -> Play[None]:
            # A new item must not inherit the creation time of an expired one.
            yield from count("items_sweep", asked)
            yield from many("item_remove", removed)
            yield from many("item_put", put)

        await self._player.write(play)

    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        asked = [{**owner(scope), "now": utc(now), **key_values(key)} for key in keys]

        def play() -> Play[list[StoredItem | None]]:
            items: list[StoredItem | None] = []
            for one in asked:
                items += [(yield from first("item_get", one, _item))]
            return items

        return await self._player.read(play)

    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        asked = {**_under(scope, prefix, now), "limit": _ALL if limit is None else limit, "skip": offset}
        return await self._each("items_under", asked, _item)

    async def vectors(
        self, scope: Scope, prefix: Namespace, model: str, *, now: datetime
    ) -> list[ItemVectors]:
        asked = {**_under(scope, prefix, now), "maker": model}
        return await self._each("items_vectors", asked, _vectors)

    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        asked = _under(scope, prefix, now)
        return await self._each("items_namespaces", asked, lambda one: text_namespace(one[0]))

    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        asked = [{**owner(scope), "now": utc(now), **key_values(key)} for key in sorted(set(keys))]

        def play() -> Play[None]:
            for one in asked:
                item = yield from first("item_get", one, _item)
                end = None if item is None else end_of(now, item.ttl_s)
                if end is not None:
                    yield from count("item_touch", {**one, "expires": end})

        await self._player.write(play)

    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        asked = {**owner(scope), "now": utc(now)}
        return await self._change("items_sweep", asked)

    async def owners(self, tenant: str | None) -> list[Scope]:
        values = {"tenants": tenant}
        return await self._each("items_owners", values, lambda one: Scope(one[0], one[1] or None))

    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        behind = {"namespace": "", "key": ""} if after is None else key_values(after)
        asked = {**owner(scope), **behind, "now": utc(now), "limit": limit}
        return await self._each("items_kept", asked, lambda one: kept_item(_item(one[:-3]), *one[-3:]))

    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        asked = {**owner(scope), "now": utc(now)}
        restored = [{**asked, **_restored(kept)} for kept in living(items, now)]
        restored.sort(key=lambda values: (values["namespace"], values["key"]))

        def play() -> Play[int]:
            new = 0
            yield from count("items_sweep", asked)
            for values in restored:
                new += yield from count("item_restore", values)
            return new

        return await self._player.write(play)


def _restored(kept: KeptItem) -> Values:
    values = field_values(kept.item)
    return {
        **values,
        **key_values(kept.item.item_key),
        "content": values["value"],
        **vectors_data(written(kept)),
    }


def _under(scope: Scope, prefix: Namespace, now: datetime) -> Values:
    text = namespace_text(prefix)
    return {**owner(scope), "prefix": text, "beyond": beyond(text), "now": utc(now)}


def _values(write: ItemWrite, now: datetime) -> Values:
    return {
        **key_values((write.namespace, write.key)),
        "content": to_json(write.value),
        "expires": end_of(now, write.ttl_s),
        "ttl_s": None if write.ttl_s is None else float(write.ttl_s),
        **vectors_data(write),
    }


def _vectors(found: Row) -> ItemVectors:
    namespace, key, data, dimension = found
    return ItemVectors(text_namespace(namespace), key, data_vectors(data, dimension))


def _item(found: Row) -> StoredItem:
    namespace, key, content, created, updated, expires, ttl_s = found
    times = moment(created), moment(updated), expires and moment(expires)
    return StoredItem(text_namespace(namespace), key, from_json(content), *times, ttl_s)
