"""Reading stored rows as they are, damage included, and repairing what is derived from the log.

The other ports assume intact data: an unreadable row raises, and orphans are never returned. A check that
nothing is lost must see both.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pagefile.records import Checkpoint, Entry, Page, Scope

__all__ = [
    "UNREADABLE",
    "After",
    "Auditor",
    "Counters",
    "KeptConversation",
    "KeptEntry",
    "KeptPage",
    "Lengths",
    "Orphan",
    "OrphanKind",
    "Recount",
]

#: The exceptions that reading a corrupt stored value can raise.
UNREADABLE = (ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Counters:
    """What a conversation's row says about its log; all of it can be recounted."""

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
    #: Tokens of all done turns; None if the store does not keep them.
    done_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation as stored."""

    #: With its owner.
    scope: Scope
    counters: Counters
    #: The watermark of each tier.
    marks: Mapping[str, int]
    #: The current summary as stored beside the log; `trouble` says why it cannot be read.
    summary: Checkpoint | None = None
    trouble: str | None = None
    #: False if there are entries but no row for the conversation.
    there: bool = True


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A row of the log: what it holds, or why it cannot be read."""

    id: str
    seq: int | None
    kind: str
    entry: Entry | None
    trouble: str | None = None
    #: The writer, according to the row.
    writer: str | None = None
    #: Tokens of the done turns before it, if the store keeps them.
    tokens_before: int | None = None
    #: Whether the turn no longer matches its digest.
    altered: bool = False


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A row of the archive: its contents, or why it cannot be read."""

    tenant: str
    uuid: str
    page: Page | None
    trouble: str | None = None
    #: The key of its text and the number of bytes stored; None if there is no such text.
    blob: str | None = None
    blob_bytes: int | None = None
    #: Whether the row no longer matches its digest.
    altered: bool = False


OrphanKind: TypeAlias = Literal["terms", "vector", "watermark", "summary", "session", "passage", "text"]


@dataclass(frozen=True, slots=True)
class Orphan:
    """An orphan: something whose owner does not exist."""

    kind: OrphanKind
    tenant: str | None
    conversation: str | None = None
    seq: int | None = None
    #: The tier of a watermark, the model of a vector, the uuid of a passage's page, or the key of a text.
    name: str = ""

    @property
    def derived(self) -> bool:
        """Whether it can be rebuilt; a session is user data, and a text may be all that is left of a page."""
        return self.kind not in {"session", "text"}


@dataclass(frozen=True, slots=True)
class Recount:
    """A conversation's row as it was read, and as it should be."""

    seen: KeptConversation
    counters: Counters
    #: The current checkpoint, and the number of messages it covers.
    checkpoint: Checkpoint | None = None
    covered_messages: int = 0
    #: The owner; an existing row keeps its own.
    owner: str | None = None
    #: When the first and the last entry were written, for a row that must be created.
    times: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Lengths:
    """The length of a page, and when its text was purged."""

    length: int
    purged: datetime | None = None


@dataclass(frozen=True, slots=True)
class After:
    """A position in a list ordered by tenant and name, and how many of the following rows to read."""

    tenant: str = ""
    name: str = ""
    #: Restrict to this tenant.
    only: str | None = None
    limit: int = 200


class Auditor(ABC):
    """Reads rows as they are, in slices that fit in memory, and repairs what can be rebuilt from the log."""

    #: Whether done turns store the tokens of the turns before them.
    keeps_sums: bool = False

    @abstractmethod
    async def errors(self, *, full: bool) -> list[str]:
        """Errors the database itself finds in its files and indexes; `full` takes longer and finds more."""

    @abstractmethod
    async def size(self, tenant: str | None) -> int:
        """Roughly how many rows there are to check."""

    @abstractmethod
    async def conversations(self, after: After) -> list[KeptConversation]:
        """Conversations by tenant and id, each with what is stored beside its log."""

    @abstractmethod
    async def conversation(self, scope: Scope) -> KeptConversation | None:
        """One conversation in its current state."""

    @abstractmethod
    async def lost(self, tenant: str | None) -> list[Scope]:
        """Conversations that have entries but no row."""

    @abstractmethod
    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[KeptEntry]:
        """Entries of one conversation by `seq`; after the last of them, all entries without one."""

    @abstractmethod
    async def entry(self, scope: Scope, entry_id: str) -> KeptEntry | None:
        """One entry of a conversation by its id."""

    @abstractmethod
    async def pages(self, after: After) -> list[KeptPage]:
        """Archived pages by tenant and uuid."""

    @abstractmethod
    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, Lengths]:
        """The lengths of those pages that exist, tombstones included."""

    @abstractmethod
    async def users(self, after: After) -> list[Scope]:
        """Users with facts, by tenant and id."""

    @abstractmethod
    async def altered_facts(self, owner: Scope) -> list[str]:
        """Ids of a user's facts that no longer match their digest; unreadable ones are left out."""

    @abstractmethod
    async def orphans(self, tenant: str | None, *, limit: int) -> list[Orphan]:
        """Orphans of missing conversations, turns and pages, at most `limit` of each kind."""

    async def copy(self, tenant: str, uuid: str) -> str | None:
        """The plain copy of a page's text that other programs read; None if there is none."""
        return None

    # -- repair
    # ----------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def recount(self, recount: Recount) -> bool:
        """Write the counters of a conversation's row and its current summary; False if the row has changed
        since it was read.

        If turns store the tokens of the turns before them, those are recounted too.
        """

    @abstractmethod
    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        """Set a watermark, even to a lower value."""

    @abstractmethod
    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        """Replace a page's passages, without terms; a missing or purged page is ignored."""

    @abstractmethod
    async def set_bytes(self, tenant: str, uuid: str) -> None:
        """Update the stored size of a page's text."""

    async def set_copy(self, tenant: str, uuid: str, text: str) -> None:
        """Write the plain copy of a page's text again."""

    @abstractmethod
    async def drop(self, orphans: Sequence[Orphan]) -> int:
        """Remove orphans that can be rebuilt (terms, vectors, watermarks, summaries, passages), if they still are."""
