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
    """One turn of a conversation, or one page, to be erased alone."""

    turn_id: str | None = None
    page: str | None = None
    #: Tokens of the note that stands in the place of a tool result.
    note_tokens: int = 0
    #: Tools that only bring pages back: theirs are of other turns.
    loading_tools: frozenset[str] = frozenset()
    #: Places outside the database that erase by conversation: what was made there of its other turns is made again, so that the
    #: watermarks that name one of them go.
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
    #: Looks at what is stored as it lies there; None where a store has nobody who can.
    audit: Auditor | None = None

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome | None:
        """The home of vectors in this database, None where it can have none. It opens nothing; close it before the store.

        `cache_bytes` bounds what it keeps in memory, where it keeps anything there.
        """
        return None

    @abstractmethod
    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        """Remove everything of a conversation, a user (all conversations, facts, pages) or a tenant, in one transaction.

        A conversation of another user raises `ConflictError`. What was read before and is written later, naming the epoch it was
        read in, raises `ErasedError` from then on.

        With a `part`, only that turn of the scope's conversation or that page. A turn that ended leaves its place in the log, with
        `ERASED` for its words and the status `aborted`, and so do the checkpoints that cover it: the turns before them are live
        again. With it go what it attached, its terms, facts whose source it is, recorded windows that name it, its pages that no
        other turn made too, and its copies in forks. A page goes with its passages and its copies in forks; steps that showed it
        have `ERASED` for their result. One that was never there raises `NotFoundError`; one that is erased already, nothing.
        """

    async def scrub(self) -> Sequence[str]:
        """Rewrite the files so that nothing of what was erased is left in them; says what holds it all the same.

        Takes a while and holds up others: an erasure alone leaves nothing that can be read through the store.
        """
        return ()

    @abstractmethod
    async def describe(self) -> JsonObject:
        """What this store is (backend, version, place, size), read from the store itself: fails when it cannot be reached."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was accepted and let go. Twice is the same as once."""
