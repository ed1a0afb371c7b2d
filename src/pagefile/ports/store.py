"""One database: all ports over one connection."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.ports.derived import TermStore, VectorHome, Watermarks
from pagefile.ports.erasures import Erasures
from pagefile.ports.items import ItemStore
from pagefile.ports.keys import KeyStore
from pagefile.ports.log import LogReader, TurnLog, TurnSource
from pagefile.ports.media import MediaStore
from pagefile.ports.pages import PageIndex, PageKeeper, PageStore
from pagefile.ports.shelves import CallLog, FactStore, SessionStore
from pagefile.ports.verifying import Auditor
from pagefile.records import ErasureReceipt, JsonObject, Scope


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
    calls: CallLog
    sessions: SessionStore
    watermarks: Watermarks
    terms: TermStore
    keys: KeyStore
    items: ItemStore
    erasures: Erasures
    #: Reads stored rows as they are; None if the store does not support it.
    audit: Auditor | None = None

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome | None:
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
