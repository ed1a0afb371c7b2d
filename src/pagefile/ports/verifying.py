"""Looking at what is stored as it lies there, damage included, and mending what is derived from the log.

The other ports answer as if all were well: a row that cannot be read raises, and what belongs to nothing is never met. Whoever
wants to prove that nothing is lost must see both.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pagefile.records import Checkpoint, Entry, Page, Scope

#: What raises when a stored value is not what was once written there.
UNREADABLE = (ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Counters:
    """What a conversation's row says of its log; all of it can be counted again."""

    last_seq: int = 0
    reset_seq: int = 0
    covered_through_seq: int = 0
    turns: int = 0
    live_turns: int = 0
    live_tokens: int = 0
    checkpoint_id: str | None = None
    checkpoint_version: int = 0
    #: When the newest entry was written.
    last_created: datetime | None = None
    #: Tokens of all done turns; None where no store keeps them.
    done_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation as it is stored."""

    #: With its owner.
    scope: Scope
    counters: Counters
    #: How far each tier has read.
    marks: Mapping[str, int]
    #: The summary in force as it is kept beside the log; `trouble` says why it cannot be read.
    summary: Checkpoint | None = None
    trouble: str | None = None
    #: False: there are entries of it, and no row that tells of them.
    there: bool = True


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A row of the log: what it holds, or why it cannot be read."""

    id: str
    seq: int | None
    kind: str
    entry: Entry | None
    trouble: str | None = None
    #: Who wrote it, as the row says.
    writer: str | None = None
    #: Tokens of the done turns before it, where the store keeps them.
    tokens_before: int | None = None
    #: Whether a turn says something else than its digest was made of.
    altered: bool = False


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A row of the archive: what it says, or why it cannot be read."""

    tenant: str
    uuid: str
    page: Page | None
    trouble: str | None = None
    #: The key of its text and how many bytes lie there; None for no such text.
    blob: str | None = None
    blob_bytes: int | None = None
    #: Whether the row says something else than its digest was made of.
    altered: bool = False


StrayKind: TypeAlias = Literal["terms", "vector", "watermark", "summary", "passage", "session", "text"]


@dataclass(frozen=True, slots=True)
class Stray:
    """Something that belongs to what is not there."""

    kind: StrayKind
    tenant: str | None
    conversation: str | None = None
    seq: int | None = None
    #: The tier of a watermark, the maker of a vector, the uuid of a passage's page, the key of a text.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Recount:
    """A conversation's row as it was seen, and as it should be."""

    seen: KeptConversation
    counters: Counters
    #: The checkpoint in force, and what its row counts: the messages it speaks for.
    checkpoint: Checkpoint | None = None
    covered_messages: int = 0
    #: Whose it is; of a row that is there the owner stays.
    owner: str | None = None
    #: When the first and the last entry were written, for a row that must be made.
    times: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long a page is, and when its text was purged."""

    length: int
    purged: datetime | None = None


@dataclass(frozen=True, slots=True)
class After:
    """A place in a list that is ordered by tenant and name: what follows it, at most `limit` of it."""

    tenant: str = ""
    name: str = ""
    #: Only this tenant's.
    only: str | None = None
    limit: int = 200


class Auditor(ABC):
    """Reads rows as they are, in slices that fit in memory, and mends what can be made again from the log."""

    #: Whether a done turn knows the tokens of those before it.
    keeps_sums: bool = False

    @abstractmethod
    async def complaints(self, *, full: bool) -> list[str]:
        """What the database itself finds wrong with its files and indexes; `full` takes longer and sees more."""

    @abstractmethod
    async def size(self, tenant: str | None) -> int:
        """About how many rows there are to look at."""

    @abstractmethod
    async def conversations(self, after: After) -> list[KeptConversation]:
        """Conversations by tenant and id, each with what is kept beside its log."""

    @abstractmethod
    async def conversation(self, scope: Scope) -> KeptConversation | None:
        """One of them, as it is now."""

    @abstractmethod
    async def lost(self, tenant: str | None) -> list[Scope]:
        """Conversations that have entries, and no row that tells of them."""

    @abstractmethod
    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[KeptEntry]:
        """Entries of one conversation by `seq`; those that have none come behind the last, all of them."""

    @abstractmethod
    async def entry(self, scope: Scope, entry_id: str) -> KeptEntry | None:
        """One entry of a conversation by its id."""

    @abstractmethod
    async def pages(self, after: After) -> list[KeptPage]:
        """Archived pages by tenant and uuid."""

    @abstractmethod
    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, Lengths]:
        """Those of these pages that are there, tombstones too."""

    @abstractmethod
    async def users(self, after: After) -> list[Scope]:
        """Users with facts, by tenant and id."""

    @abstractmethod
    async def altered_facts(self, owner: Scope) -> list[str]:
        """Facts of a user that say something else than their digest was made of, by id; what cannot be read is left out."""

    @abstractmethod
    async def strays(self, tenant: str | None, *, limit: int) -> list[Stray]:
        """What belongs to a conversation, turn or page that is not there, at most `limit` of each kind."""

    # -- mending ------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def recount(self, recount: Recount) -> bool:
        """Write what a conversation's row counts and the summary in force; False when the row is no longer as it was seen.

        Where a turn knows the tokens of those before it, those are counted anew too.
        """

    @abstractmethod
    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        """Put a watermark where it belongs, be it lower."""

    @abstractmethod
    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        """Put other passages in the place of a page's, without terms; a page that is gone or purged is passed over."""

    @abstractmethod
    async def set_bytes(self, tenant: str, uuid: str) -> None:
        """Let a page say what its text takes on disk."""

    @abstractmethod
    async def drop(self, strays: Sequence[Stray]) -> int:
        """Remove strays that can be made again (terms, vectors, watermarks, summaries, passages) if they still are some."""
