"""Archived tool results: text, retention and index."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pagefile.ports.derived import EmbeddingModel, Vector
from pagefile.records import Page, Scope

__all__ = ["PageDraft", "PageIndex", "PageKeeper", "PageStore", "PageTerms", "PurgeRequest"]


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A tool result about to be archived, with the offsets of its passages."""

    page: Page
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    #: `ConversationInfo.epoch` when the tool was called; None skips the check for erasures.
    epoch: int | None = None
    #: The conversation it is copied from, which must not have been erased either.
    origin: Scope | None = None

    @property
    def fenced(self) -> list[Scope]:
        """The scopes that must not have been erased since its epoch."""
        return [self.page.scope, *([] if self.origin is None else [self.origin])]


class PageStore(ABC):
    """Archived tool results, byte for byte."""

    @abstractmethod
    async def put(self, draft: PageDraft) -> Page:
        """Archive a result; equal text is stored once. The returned page's `stored_bytes` is its size on disk.

        The same page again returns the stored one; its uuid with a different text or user raises
        `ConflictError`. Putting a purged page again, with the same content hash, replaces its tombstone. A
        page marked as purged is stored as a tombstone. If one of its scopes was erased since the draft's
        epoch, `ErasedError` is raised.
        """

    @abstractmethod
    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        """The page and its full text. Raises `HandleNotFoundError` if unknown or another tenant's or user's,
        `PagePurgedError` if purged.

        A scope with a user may load every page of that user, and pages without an owner in its own
        conversation; one without a user only those of its own conversation; one that names neither, any page
        of its tenant. The same rule governs pinning, touching, reading and writing a page.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        """Pages of a scope, tombstones included, newest first; `after` continues after a uuid.

        A scope with a conversation covers that conversation's pages (its user's, and those without an owner),
        one with only a user all of that user's, one with neither all of the tenant's. "Of a scope" means this
        throughout.
        """


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """Which texts to purge: those named, those created before a time, or the oldest beyond a size; never pinned ones.

    Pages in `spared` go only if they are named.
    """

    scope: Scope
    at: datetime
    uuids: frozenset[str] | None = None
    before: datetime | None = None
    max_bytes: int | None = None
    spared: frozenset[str] = frozenset()


class PageKeeper(ABC):
    """Manages pages: pins, uses, equal calls, purging."""

    @abstractmethod
    async def page(self, scope: Scope, uuid: str) -> Page:
        """A page without its text, purged or not; unknown or foreign: `HandleNotFoundError`."""

    @abstractmethod
    async def named(self, scope: Scope, uuids: Sequence[str]) -> list[Page]:
        """These pages without their texts, purged or not, oldest first; unknown and foreign ones are left out."""

    @abstractmethod
    async def holding(self, scope: Scope, hashes: Sequence[str]) -> list[Page]:
        """The unpurged pages the scope may load whose text has one of these SHA-256 hashes, oldest first."""

    @abstractmethod
    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        """Pin or unpin a page; unknown or foreign: `HandleNotFoundError`; purged: `PagePurgedError`."""

    @abstractmethod
    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        """Count a load of each page; missing, purged and foreign pages are ignored.

        `last_load` never moves backwards.
        """

    @abstractmethod
    async def pinned(self, scope: Scope) -> list[Page]:
        """The pinned pages of the scope's conversation (of its user, if it names no conversation), oldest first."""

    @abstractmethod
    async def tenants(self) -> list[str]:
        """Every tenant that has a page with a text, sorted."""

    @abstractmethod
    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        """The newest unpurged page the scope may load that was made by an equal call at or after `since`.

        A page without a call hash never matches.
        """

    @abstractmethod
    async def due(self, request: PurgeRequest) -> list[Page]:
        """What `purge` would purge now, oldest first."""

    @abstractmethod
    async def purge(self, request: PurgeRequest) -> list[Page]:
        """Remove texts, leave tombstones, and return the purged pages, oldest first.

        A page of the scope is purged if it meets any of the given conditions; without conditions nothing is.
        `before` is exclusive. `max_bytes` bounds the total size of the scope's pages afterwards, oldest
        purged first; a shared text counts once per page, and pinned and spared pages count but stay. A text that another
        page still uses is kept for that page. A tombstone keeps everything but text and passages,
        `stored_bytes` included.
        """

    @abstractmethod
    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        """Erase pages that the scope may load, including pinned ones and tombstones, without a trace; returns how many."""


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The passages of a page: their offsets, and their terms once indexed."""

    uuid: str
    spans: tuple[tuple[int, int], ...]
    terms: tuple[str, ...] | None


class PageIndex(ABC):
    """What searching over pages needs: which pages exist, and the terms of their passages."""

    @abstractmethod
    async def uuids(self, scope: Scope) -> list[str]:
        """Every unpurged page of the scope, oldest first."""

    @abstractmethod
    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        """Passages of these pages, in the same order; missing, purged and foreign ones are left out.

        A page without passages has nothing to index: its terms are an empty tuple, not None.
        """

    @abstractmethod
    async def embeddings(self, scope: Scope, model: EmbeddingModel) -> Mapping[str, Vector]:
        """The embeddings that this model made of unpurged pages of the scope, by uuid: one row or more; embeddings of another dimension are omitted."""

    @abstractmethod
    async def embed(self, scope: Scope, model: EmbeddingModel, made: Mapping[str, Vector]) -> None:
        """Store embeddings of pages, one row or more each, replacing those of any model; a page that no longer exists is ignored.

        Rows of a wrong length, or that are not finite, raise `VectorIndexError`, and none is stored.
        """

    @abstractmethod
    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        """Store the terms of a page's passages, replacing earlier ones; a page that no longer exists is ignored.

        One text per passage: any other number raises `InvalidArgumentError`.
        """
