"""Items."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pagefile.arrays import np
from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.ports import ItemKey, ItemStore, ItemVectors, ItemWrite, KeptItem, Namespace, StoredItem, Vector
from pagefile.records import JsonValue, Scope, checked_text, utc
from pagefile.stores.encoding import field_values, from_json, moment, to_json
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, count, first, many, row

#: For a list without a limit: SQLite has no NULL there, PostgreSQL nothing below zero.
_ALL = 2**53


class SqlItems(SqlPort, ItemStore):
    async def write(
        self,
        scope: Scope,
        writes: Sequence[ItemWrite],
        *,
        now: datetime,
        expected: Mapping[ItemKey, JsonValue] | None = None,
    ) -> None:
        asked = _owner_values(scope, now)
        # The last write of a key counts. In a fixed order, so that two writers of the same keys do not deadlock.
        newest = {(one.namespace, one.key): one for one in writes}
        removed, put = list[Values](), list[Values]()
        for key, one in sorted(newest.items(), key=lambda one: one[0]):
            named, ttl_s = {**asked, **_key_values(key)}, None if one.ttl_s is None else float(one.ttl_s)
            if one.value is None:
                removed.append(named)
            else:
                kept = {"content": to_json(one.value), "expires": _end_of(now, ttl_s), "ttl_s": ttl_s}
                put.append({**named, **kept, **_vector_values(one.vectors, one.model)})

        def play() -> Play[None]:
            # A new item must not inherit the creation time of an expired one.
            yield from count("items_sweep", asked)
            if expected is not None:
                yield from _check_expected(asked, expected)
            yield from many("item_remove", removed)
            yield from many("item_put", put)

        # A retry of a write that took effect would not find the values it expects.
        await self._player.write(play, again=expected is None)

    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        asked = [{**_owner_values(scope, now), **_key_values(key)} for key in keys]

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
        found = await self._rows("items_vectors", {**_under(scope, prefix, now), "maker": model})
        return [
            ItemVectors(_text_namespace(namespace), key, _data_vectors(data, dimension))
            for namespace, key, data, dimension in found
        ]

    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        found = await self._rows("items_namespaces", _under(scope, prefix, now))
        return [_text_namespace(text) for (text,) in found]

    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        asked = [{**_owner_values(scope, now), **_key_values(key)} for key in sorted(set(keys))]

        def play() -> Play[None]:
            for one in asked:
                item = yield from first("item_get", one, _item)
                end = None if item is None else _end_of(now, item.ttl_s)
                if end is not None:
                    yield from count("item_touch", {**one, "expires": end})

        await self._player.write(play)

    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        return await self._change("items_sweep", _owner_values(scope, now))

    async def owners(self, tenant: str | None) -> list[Scope]:
        return await self._each(
            "items_owners", {"tenants": tenant}, lambda one: Scope(one[0], one[1] or None)
        )

    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        behind = {"namespace": "", "key": ""} if after is None else _key_values(after)
        return await self._each(
            "items_kept", {**_owner_values(scope, now), **behind, "limit": limit}, _stored_item
        )

    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        asked, restored = _owner_values(scope, now), list[Values]()
        for kept in items:
            if kept.item.expires is None or utc(kept.item.expires) > asked["now"]:
                values, vectors = field_values(kept.item), _vector_values(kept.vectors, kept.model)
                named = {**_key_values(kept.item.item_key), "content": values["value"]}
                restored.append({**asked, **values, **named, **vectors})
        restored.sort(key=lambda values: (values["namespace"], values["key"]))

        def play() -> Play[int]:
            new = 0
            yield from count("items_sweep", asked)
            for values in restored:
                new += yield from count("item_restore", values)
            return new

        return await self._player.write(play)


def _check_expected(asked: Values, expected: Mapping[ItemKey, JsonValue]) -> Play[None]:
    # Otherwise two writers could both find that a key does not exist.
    yield from row("items_lock", asked)
    for key, value in sorted(expected.items(), key=lambda one: one[0]):
        item = yield from first("item_get", {**asked, **_key_values(key)}, _item)
        if (None if item is None else item.value) != value:
            raise ConflictError("This was changed in the meantime: read it again, and repeat the change.")


def _owner_values(scope: Scope, now: datetime) -> Values:
    """The user whose items a scope means; items without a user have the empty id, which no scope can name."""
    if scope.conversation is not None:
        raise InvalidArgumentError("Items belong to a user or a tenant: the scope must name no conversation.")
    return {"tenant": scope.tenant, "user": scope.user or "", "now": utc(now)}


def _under(scope: Scope, prefix: Namespace, now: datetime) -> Values:
    text = _namespace_text(prefix)
    # The first text past the prefix, in byte order.
    return {**_owner_values(scope, now), "prefix": text, "beyond": f"{text[:-1]}0"}


def _namespace_text(namespace: Namespace) -> str:
    """A namespace as text, `/a/b/`: a prefix of the namespace is a prefix of the text, whatever the labels contain."""
    labels = (checked_text(label, "a label of a namespace") for label in namespace)
    return "/" + "".join(f"{label.replace('~', '~0').replace('/', '~1')}/" for label in labels)


def _text_namespace(text: str) -> Namespace:
    return tuple(label.replace("~1", "/").replace("~0", "~") for label in text[1:].split("/")[:-1])


def _key_values(key: ItemKey) -> Values:
    return {"namespace": _namespace_text(key[0]), "key": checked_text(key[1], "an item's key")}


def _end_of(now: datetime, ttl_s: float | None) -> datetime | None:
    if ttl_s is None:
        return None
    try:
        return utc(now) + timedelta(seconds=ttl_s)
    except OverflowError:
        return None


def _vector_values(vectors: Vector | None, model: str | None) -> Values:
    if vectors is None or not len(vectors):
        return {"maker": None, "dimension": None, "data": None}
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    return {"maker": model, "dimension": rows.shape[1], "data": rows.tobytes()}


def _data_vectors(data: bytes, dimension: int) -> Vector:
    return np.frombuffer(data, dtype="<f4").reshape(-1, dimension)


def _stored_item(found: Row) -> KeptItem:
    *item, maker, dimension, data = found
    return KeptItem(_item(item), None if maker is None else _data_vectors(data, dimension), maker)


def _item(found: Row) -> StoredItem:
    namespace, key, content, created, updated, expires, ttl_s = found
    times = moment(created), moment(updated), expires and moment(expires)
    return StoredItem(_text_namespace(namespace), key, from_json(content), *times, ttl_s)
