"""Application data by namespace and key, as in LangGraph's stores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pagefile.ports.derived import Vector
from pagefile.records import JsonValue, Scope

__all__ = [
    "OWN_NAMESPACE",
    "ItemKey",
    "ItemStore",
    "ItemVectors",
    "ItemWrite",
    "KeptItem",
    "Namespace",
    "StoredItem",
]

Namespace: TypeAlias = tuple[str, ...]
#: A namespace and a key in it.
ItemKey: TypeAlias = tuple[Namespace, str]
#: The first label of namespaces for Pagefile's own items, which applications neither see nor write.
OWN_NAMESPACE = "pagefile"


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A value, with the times it was created and updated."""

    namespace: Namespace
    key: str
    value: JsonValue
    created: datetime
    updated: datetime
    #: When it expires; None if it never does.
    expires: datetime | None = None
    #: Time to live in seconds, counted from the last write, or from the last read if reads refresh it.
    ttl_s: float | None = None

    @property
    def item_key(self) -> ItemKey:
        return self.namespace, self.key


@dataclass(frozen=True, slots=True)
class ItemWrite:
    """A value to put, or a key to remove."""

    namespace: Namespace
    key: str
    #: None removes it.
    value: JsonValue
    ttl_s: float | None = None
    #: Vectors to search it by, one row per text, made by `model`; None for none.
    vectors: Vector | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ItemVectors:
    """The vectors an item is searched by."""

    namespace: Namespace
    key: str
    rows: Vector


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item with everything stored about it."""

    item: StoredItem
    #: The vectors it is searched by, and what made them; None for none.
    vectors: Vector | None = None
    model: str | None = None


class ItemStore(ABC):
    """Items of a scope's tenant and user; items without a user form a set of their own. The scope names no conversation.

    * An expired item does not exist: no verb returns it, and putting it again creates a new one.
    * A prefix consists of whole labels: `("a",)` is a prefix of `("a", "b")` and not of `("ab",)`.
    """

    @abstractmethod
    async def write(
        self,
        scope: Scope,
        writes: Sequence[ItemWrite],
        *,
        now: datetime,
        expected: Mapping[ItemKey, JsonValue] | None = None,
    ) -> None:
        """Put and remove items atomically; if a key is written twice, the last write wins.

        A replaced value loses everything attached to it, but keeps its creation time. `expected` are values that keys must have at
        that moment, None for a key that must not exist: otherwise nothing is written, and `ConflictError` is raised.
        """

    @abstractmethod
    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        """The items for these keys, in the same order."""

    @abstractmethod
    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        """Items whose namespace starts with a prefix, last updated first, ties by namespace and key."""

    @abstractmethod
    async def vectors(
        self, scope: Scope, prefix: Namespace, model: str, *, now: datetime
    ) -> list[ItemVectors]:
        """The vectors of one model for the items under a prefix, ordered as in `under`."""

    @abstractmethod
    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        """Every distinct namespace under a prefix that has an item, in no particular order."""

    @abstractmethod
    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        """Restart the time to live of these items; items without one are ignored."""

    @abstractmethod
    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        """Remove expired items and return their number. Only disk space depends on it."""

    @abstractmethod
    async def owners(self, tenant: str | None) -> list[Scope]:
        """The owners of items, of one tenant or of all, by tenant and user; items without a user come first."""

    @abstractmethod
    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        """Items after a key with everything stored about them, by namespace and key, for exports."""

    @abstractmethod
    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        """Write items exactly as they were, times included, and return how many were new; existing ones stay
        as they are.

        Items that have expired in the meantime are skipped.
        """
