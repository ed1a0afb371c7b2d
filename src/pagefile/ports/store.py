"""One database: all ports over one connection."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from pagefile.ports.audit import Auditor
from pagefile.ports.derived import TermStore, VectorIndex, Watermarks
from pagefile.ports.items import ItemStore
from pagefile.ports.leases import LeaseStore
from pagefile.ports.log import LogReader, TurnLog, TurnSource
from pagefile.ports.pages import PageIndex, PageKeeper, PageStore
from pagefile.ports.stored import FactStore, SessionStore, WindowLog
from pagefile.records import ApiKey, ErasureReceipt, JsonObject, Scope

__all__ = ["Erasures", "KeyStore", "MediaStore", "Owed", "Part", "Store"]


@dataclass(frozen=True, slots=True)
class Owed:
    """Erasures that a place has yet to carry out."""

    #: The number of the last erasure it has carried out.
    since: int
    #: The scopes erased since, by key (`pagefile.stores.erasure.scope_key`), each with the number of its last
    #: erasure.
    scopes: Mapping[str, int]

    @property
    def through(self) -> int:
        """The number of the last erasure among them."""
        return max(self.scopes.values(), default=self.since)


class Erasures(ABC):
    """How far places outside the database have followed its erasures.

    An erasure is owed to every known place from the transaction that erases the rows, whichever process runs
    it, until it is reported as done: a process that dies loses nothing.
    """

    @abstractmethod
    async def begin(self, place: str) -> None:
        """Start tracking a place from now on: earlier erasures do not concern it. Idempotent."""

    @abstractmethod
    async def owed(self, place: str) -> Owed:
        """What a place has yet to erase; nothing if the place is unknown."""

    @abstractmethod
    async def done(self, place: str, owed: Owed) -> None:
        """Record that the place has carried out `owed`. Ignored if its state has changed in the meantime."""

    @abstractmethod
    async def redo(self, place: str, epoch: int) -> None:
        """Data from this epoch was put there after an erasure: erasures since the epoch are owed again."""

    @abstractmethod
    async def places(self) -> Mapping[str, int]:
        """Every known place by name, with the number of scopes it has yet to erase."""


class KeyStore(ABC):
    """API keys by id. They belong to the operator: erasures keep them, and exports omit them."""

    @abstractmethod
    async def add(self, key: ApiKey) -> None:
        """Write a new key; an existing id raises `ConflictError`."""

    @abstractmethod
    async def get(self, key_id: str) -> ApiKey | None:
        """One key, revoked and expired ones included; None if unknown."""

    @abstractmethod
    async def list(self) -> list[ApiKey]:
        """Every key, oldest first, ties by id."""

    @abstractmethod
    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        """Write a key's successor, and let the old key work until `until` or its own expiry. Returns the old one.

        Atomic. Raises `ConflictError` if the old key is no longer usable or the successor's id is taken,
        `NotFoundError` if the old key is unknown.
        """

    @abstractmethod
    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        """Stop accepting a key. Only the first revocation counts; an unknown key raises `NotFoundError`."""

    @abstractmethod
    async def used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used. The time only rises; an unknown key is ignored."""


class MediaStore(ABC):
    """The bytes attached to turns. They are written with the turn, and deleted once no turn refers to them."""

    @abstractmethod
    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the word of `Media.blob`'s comment
        """The bytes with this SHA-256 attached to a turn of the scope; `NotFoundError` if there are none.

        A scope with a conversation covers that conversation's turns, one with only a user all of that user's
        conversations, one with neither the whole tenant.
        """


@dataclass(frozen=True, slots=True)
class Part:
    """A single turn of a conversation, or a single page, to be erased."""

    turn_id: str | None = None
    page: str | None = None
    #: Tokens of the note that replaces a tool result.
    note_tokens: int = 0
    #: Tools that only load pages: those pages belong to other turns.
    loading_tools: frozenset[str] = frozenset()
    #: Places outside the database that erase by whole conversation. Watermarks that name one of them are
    #: deleted, so that what was stored there for the other turns is rebuilt.
    places: tuple[str, ...] = ()


class Store(ABC):
    """One database: the ports above over one connection, and what concerns them all."""

    log: TurnLog
    reader: LogReader
    source: TurnSource
    facts: FactStore
    pages: PageStore
    page_keeper: PageKeeper
    page_index: PageIndex
    media: MediaStore
    calls: WindowLog
    sessions: SessionStore
    watermarks: Watermarks
    terms: TermStore
    keys: KeyStore
    items: ItemStore
    leases: LeaseStore
    erasures: Erasures
    #: Reads stored rows as they are; None if the store does not support it.
    audit: Auditor | None = None

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex | None:
        """Vector storage in this database, None if it is not supported. Opens nothing; close it before the store.

        `cache_bytes` bounds its in-memory cache, if it has one.
        """
        return None

    @abstractmethod
    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        """Remove everything of a conversation, a user (all conversations, facts, pages) or a tenant, in one transaction.

        A conversation of another user raises `ConflictError`. From then on, a write that names an epoch
        before the erasure raises `ErasedError`.

        With a `part`, only that turn of the scope's conversation or that page. A turn that ended keeps its
        place in the log, with `ERASED` as its text and the status `aborted`, and so do the checkpoints that
        cover it: the turns before them are live again. Its attachments, its terms, facts sourced from it,
        recorded windows that name it, pages made by no other turn, and its copies in forks are erased with
        it. A page is erased with its passages and its copies in forks; steps that showed it get `ERASED` as
        their result. A part that never existed raises `NotFoundError`; one already erased is a no-op.
        """

    @asynccontextmanager
    async def many_erasures(self) -> AsyncGenerator[None]:
        """What files keep of the erasures in this block is removed once, at its end, and not after each of them."""
        yield

    async def scrub(self) -> Sequence[str]:
        """Rewrite the files so that no erased data is left in them; returns what still holds some.

        Slow, and blocks other work. An erasure alone already leaves nothing that can be read through the
        store.
        """
        return ()

    @abstractmethod
    async def describe(self) -> JsonObject:
        """What this store is (backend, version, place, size), as it reports itself: fails if it cannot be reached."""

    @abstractmethod
    async def close(self) -> None:
        """Finish accepted work and release all resources; idempotent."""
