"""Items as a dict."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pagefile.ports import ItemKey, ItemStore, ItemVectors, ItemWrite, KeptItem, Namespace, StoredItem
from pagefile.records import Scope, utc
from pagefile.stores.encoding import json_copy, stored
from pagefile.stores.inmemory.tables import Port
from pagefile.stores.item_rows import end_of, kept_item, key_values, last_writes, living, owner, vectors_data


class InMemoryItems(Port, ItemStore):
    async def write(self, scope: Scope, writes: Sequence[ItemWrite], *, now: datetime) -> None:
        mine = self._mine(scope)
        last = [
            (key_values((one.namespace, one.key)), one, None if one.value is None else json_copy(one.value))
            for one in last_writes(writes)
        ]
        await self.sweep(scope, now=now)
        for _, one, value in last:
            was = mine.pop((one.namespace, one.key), None)
            if value is not None:
                created = was.item.created if was else utc(now)
                item = StoredItem(
                    one.namespace, one.key, value, created, utc(now), end_of(now, one.ttl_s), one.ttl_s
                )
                mine[item.item_key] = kept_item(stored(item), **vectors_data(one))

    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        living = {kept.item.item_key: kept.item for kept in self._living(scope, (), now)}
        for key in keys:
            key_values(key)
        return [stored(living[key]) if key in living else None for key in keys]

    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        found = [kept.item for kept in self._living(scope, prefix, now)]
        return [stored(item) for item in found[offset:][:limit]]

    async def vectors(
        self, scope: Scope, prefix: Namespace, model: str, *, now: datetime
    ) -> list[ItemVectors]:
        return [
            ItemVectors(kept.item.namespace, kept.item.key, kept.vectors)
            for kept in self._living(scope, prefix, now)
            if kept.vectors is not None and kept.model == model
        ]

    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        return list({kept.item.namespace for kept in self._living(scope, prefix, now)})

    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        mine = self._mine(scope)
        wanted = set(keys)
        for kept in self._living(scope, (), now):
            if kept.item.item_key in wanted and kept.item.ttl_s is not None:
                item = replace(kept.item, expires=end_of(now, kept.item.ttl_s))
                mine[kept.item.item_key] = replace(kept, item=item)

    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        mine = self._mine(scope)
        gone = [key for key, kept in mine.items() if _is_over(kept, now)]
        for key in gone:
            del mine[key]
        return len(gone)

    async def owners(self, tenant: str | None) -> list[Scope]:
        keys = sorted(key for key, mine in self._tables.items.items() if mine and tenant in (None, key[0]))
        return [Scope(of, user or None) for of, user in keys]

    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        found = sorted(self._living(scope, (), now), key=_place)
        behind = ("", "") if after is None else tuple(key_values(after).values())
        return [replace(kept, item=stored(kept.item)) for kept in found if _place(kept) > behind][:limit]

    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        mine = self._mine(scope)
        await self.sweep(scope, now=now)
        new = {one.item.item_key: one for one in living(items, now) if one.item.item_key not in mine}
        for key, one in new.items():
            key_values(key)
            mine[key] = replace(one, item=stored(one.item))
        return len(new)

    def _mine(self, scope: Scope) -> dict[ItemKey, KeptItem]:
        whose = owner(scope)
        return self._tables.items.setdefault((whose["tenant"], whose["user"]), {})

    def _living(self, scope: Scope, prefix: Namespace, now: datetime) -> list[KeptItem]:
        found = [
            kept
            for (namespace, _), kept in self._mine(scope).items()
            if namespace[: len(prefix)] == prefix and not _is_over(kept, now)
        ]
        found.sort(key=lambda kept: tuple(key_values(kept.item.item_key).values()))
        return sorted(found, key=lambda kept: kept.item.updated, reverse=True)


def _place(kept: KeptItem) -> tuple[str, ...]:
    return tuple(key_values(kept.item.item_key).values())


def _is_over(kept: KeptItem, now: datetime) -> bool:
    return kept.item.expires is not None and kept.item.expires <= utc(now)
