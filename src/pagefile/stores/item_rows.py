"""How every store writes items."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from pagefile.errors import InvalidArgumentError
from pagefile.ports import ItemKey, ItemWrite, KeptItem, Namespace, StoredItem, Vector
from pagefile.records import Scope, checked_text, utc


def namespace_text(namespace: Namespace) -> str:
    """A namespace as text, `/a/b/`: a prefix of the namespace is a prefix of the text, whatever the labels contain."""
    labels = (checked_text(label, "a label of a namespace") for label in namespace)
    return "/" + "".join(f"{label.replace('~', '~0').replace('/', '~1')}/" for label in labels)


def text_namespace(text: str) -> Namespace:
    return tuple(label.replace("~1", "/").replace("~0", "~") for label in text[1:].split("/")[:-1])


def beyond(prefix: str) -> str:
    """The first text past a prefix, in byte order."""
    return prefix[:-1] + "0"


def owner(scope: Scope) -> dict[str, str]:
    """The user whose items a scope means; items without a user have the empty id, which no scope can name."""
    if scope.conversation is not None:
        raise InvalidArgumentError("Items belong to a user or a tenant: the scope must name no conversation.")
    return {"tenant": scope.tenant, "user": scope.user or ""}


def key_values(key: ItemKey) -> dict[str, str]:
    """A namespace and a key as parameters, named the same in every statement."""
    return {"namespace": namespace_text(key[0]), "key": checked_text(key[1], "an item's key")}


def last_writes(writes: Sequence[ItemWrite]) -> list[ItemWrite]:
    return list({(write.namespace, write.key): write for write in writes}.values())


def end_of(now: datetime, ttl_s: float | None) -> datetime | None:
    """When an item that is put or read now expires."""
    if ttl_s is None:
        return None
    try:
        return utc(now) + timedelta(seconds=ttl_s)
    except OverflowError:
        return None


def vectors_data(write: ItemWrite) -> dict[str, Any]:
    """The vectors of a write as columns."""
    if write.vectors is None or not len(write.vectors):
        return {"maker": None, "dimension": None, "data": None}
    rows = np.ascontiguousarray(write.vectors, dtype="<f4")
    return {"maker": write.model, "dimension": rows.shape[1], "data": rows.tobytes()}


def living(items: Sequence[KeptItem], now: datetime) -> list[KeptItem]:
    """Those that have not expired."""
    return [kept for kept in items if kept.item.expires is None or utc(kept.item.expires) > utc(now)]


def written(kept: KeptItem) -> ItemWrite:
    item = kept.item
    return ItemWrite(item.namespace, item.key, item.value, item.ttl_s, kept.vectors, kept.model)


def kept_item(item: StoredItem, maker: str | None, dimension: int | None, data: bytes | None) -> KeptItem:
    if maker is None or dimension is None or data is None:
        return KeptItem(item)
    return KeptItem(item, data_vectors(data, dimension), maker)


def data_vectors(data: bytes, dimension: int) -> Vector:
    return np.frombuffer(data, dtype="<f4").reshape(-1, dimension)
