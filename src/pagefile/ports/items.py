"""Things that others keep here: values by namespace and key, as LangGraph's stores have them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pagefile.ports.derived import Vector
from pagefile.records import JsonValue, Scope

Namespace: TypeAlias = tuple[str, ...]
#: A namespace and a key in it.
ItemKey: TypeAlias = tuple[Namespace, str]


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A value, and when it was put."""

    namespace: Namespace
    key: str
    value: JsonValue
    created: datetime
    updated: datetime
    #: From then on it is not there any more; None: it stays.
    expires: datetime | None = None
    #: How long it lives after it was put, or read where reading keeps it alive, in seconds.
    ttl_s: float | None = None

    @property
    def place(self) -> ItemKey:
        """Its namespace and key."""
        return self.namespace, self.key


@dataclass(frozen=True, slots=True)
class ItemWrite:
    """A value to put, or a key to remove."""

    namespace: Namespace
    key: str
    #: None removes it.
    value: JsonValue
    ttl_s: float | None = None
    #: What it is found by: a row for each of its texts, made by `maker`; None for none.
    vectors: Vector | None = None
    maker: str | None = None


@dataclass(frozen=True, slots=True)
class ItemVectors:
    """What an item is found by."""

    namespace: Namespace
    key: str
    rows: Vector


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item with all that is kept of it."""

    item: StoredItem
    #: What it is found by, and who made that; None for nothing.
    vectors: Vector | None = None
    maker: str | None = None


class ItemStore(ABC):
    """Items of a scope's tenant and user; those of nobody are a user's of their own. The scope names no conversation.

    * An item that has expired is not there: it is in no answer, and putting it anew makes a new one.
    * A prefix is one of whole labels: `("a",)` is a prefix of `("a", "b")` and not of `("ab",)`.
    """

    @abstractmethod
    async def write(self, scope: Scope, writes: Sequence[ItemWrite], *, now: datetime) -> None:
        """Put and remove, all of it or nothing; of two writes of one key the last counts.

        A value that was there is replaced with all that belongs to it, and keeps when it was created.
        """

    @abstractmethod
    async def get(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> list[StoredItem | None]:
        """The items of these keys, in that order."""

    @abstractmethod
    async def under(
        self, scope: Scope, prefix: Namespace, *, now: datetime, limit: int | None = None, offset: int = 0
    ) -> list[StoredItem]:
        """Items whose namespace begins with a prefix, the last updated first, those of one moment by namespace and key."""

    @abstractmethod
    async def vectors(
        self, scope: Scope, prefix: Namespace, maker: str, *, now: datetime
    ) -> list[ItemVectors]:
        """What the items under a prefix are found by, of one maker, ordered as `under` has them."""

    @abstractmethod
    async def namespaces(self, scope: Scope, prefix: Namespace, *, now: datetime) -> list[Namespace]:
        """Every namespace under a prefix that has an item, each once, in no order to rely on."""

    @abstractmethod
    async def touch(self, scope: Scope, keys: Sequence[ItemKey], *, now: datetime) -> None:
        """Begin anew the lives of items that have an end; others are passed over."""

    @abstractmethod
    async def sweep(self, scope: Scope, *, now: datetime) -> int:
        """Remove what has expired, and say how many items that were. Nothing depends on it but space."""

    @abstractmethod
    async def owners(self, tenant: str | None) -> list[Scope]:
        """Whose items there are, of one tenant or of all, by tenant and user; those of nobody first."""

    @abstractmethod
    async def kept(
        self, scope: Scope, *, now: datetime, after: ItemKey | None = None, limit: int = 100
    ) -> list[KeptItem]:
        """Items behind a key with all that is kept of them, by namespace and key, as exports need them."""

    @abstractmethod
    async def restore(self, scope: Scope, items: Sequence[KeptItem], *, now: datetime) -> int:
        """Write items exactly as they were, times included, and say how many were new; those that are there stay as they are.

        What has expired since is passed over.
        """
