"""Archived tool results: their texts, their keeping, their index."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pagefile.records import Page, Scope


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A tool result about to be archived, with where its passages begin and end."""

    page: Page
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    #: `Head.epoch` when the tool was called; None: written whatever was erased since.
    epoch: int | None = None
    #: The conversation that it is copied from: what must not have been erased either.
    origin: Scope | None = None

    @property
    def fenced(self) -> list[Scope]:
        """What must not have been erased since its epoch."""
        return [self.page.scope, *([] if self.origin is None else [self.origin])]


class PageStore(ABC):
    """Archived tool results, byte for byte."""

    @abstractmethod
    async def put(self, draft: PageDraft) -> Page:
        """Archive a result; equal text is stored once. `stored_bytes` of the page returned is what the text takes.

        The same page again returns what is stored; its uuid with another text or user raises `ConflictError`. A purged page
        with the same content hash takes the place of its tombstone. A page that says it is purged is stored as a tombstone.
        Where one of its scopes was erased since the draft's epoch, `ErasedError`.
        """

    @abstractmethod
    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        """The page and its full text. Unknown, or of another tenant or user: `HandleNotFoundError`; purged: `PagePurgedError`.

        A scope with a user may load every page of that user, and those that nobody owns in its own conversation; one without
        a user only those of its own conversation; a scope that names neither any page of its tenant. Whoever may load
        a page may pin, touch, read and write it too.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        """Pages of a scope and their tombstones, newest first; `after` continues behind a uuid.

        A scope with a conversation shows that one's pages (its user's, and those that nobody owns), one with only a user all
        of that user's, one with neither all of the tenant's: here as in everything that is said to be of a scope.
        """


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """Which texts to purge: those named, those created before a time, or the oldest beyond a size; never pinned ones."""

    scope: Scope
    at: datetime
    uuids: frozenset[str] | None = None
    before: datetime | None = None
    max_bytes: int | None = None


class PageKeeper(ABC):
    """Looks after pages: pins, uses, equal calls, purging."""

    @abstractmethod
    async def page(self, scope: Scope, uuid: str) -> Page:
        """A page without its text, purged or not; unknown or foreign: `HandleNotFoundError`."""

    @abstractmethod
    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        """Pin or unpin a page; unknown or foreign: `HandleNotFoundError`; purged: `PagePurgedError`."""

    @abstractmethod
    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        """Count a load of each page; those that are gone, purged or foreign are passed over.

        A time before the last load leaves the last load as it is.
        """

    @abstractmethod
    async def pinned(self, scope: Scope) -> list[Page]:
        """The pinned pages of the scope's conversation (of its user, if it names no conversation), oldest first."""

    @abstractmethod
    async def tenants(self) -> list[str]:
        """Every tenant that has a page with a text, in order."""

    @abstractmethod
    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        """The newest page that the scope may load, made by an equal call at or after a time, not purged.

        A page without a call hash equals none.
        """

    @abstractmethod
    async def purge(self, request: PurgeRequest) -> list[Page]:
        """Remove texts, leave tombstones, and return the pages purged, oldest first.

        With several conditions a page of the scope that meets any of them goes, with none nothing goes. `before` leaves what was
        created at that time. `max_bytes` bounds what the scope's pages take afterwards, oldest out first; a text counts for
        every page that holds it, and pinned pages count but stay. A text that another page still holds is not removed
        for both. A tombstone keeps everything but text and passages, `stored_bytes` too.
        """

    @abstractmethod
    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        """Erase pages that the scope may load, pinned ones and tombstones too; how many went. Nothing of them is left."""


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The passages of a page: where each begins and ends, and its terms once it was indexed."""

    uuid: str
    spans: tuple[tuple[int, int], ...]
    terms: tuple[str, ...] | None


class PageIndex(ABC):
    """What searching over pages needs: which there are, and the terms of their passages."""

    @abstractmethod
    async def uuids(self, scope: Scope) -> list[str]:
        """Every page of the scope that is not purged, oldest first."""

    @abstractmethod
    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        """Passages of these pages, in that order; those that are gone, purged or foreign are left out.

        A page without passages has nothing to index: its terms are there, and empty.
        """

    @abstractmethod
    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        """Keep the terms of a page's passages, in place of those before; a page that is gone is passed over.

        One text for each passage: another number raises `InvalidTurnError`.
        """
