"""The request to purge pages, and what it freed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pagefile.cli.measures import size_text, span_text
from pagefile.cli.output import plural, warn
from pagefile.cli.pages import every_page, page_named
from pagefile.engine import Memory
from pagefile.records import Page


@dataclass(frozen=True, slots=True)
class Wish:
    """Whose pages to purge, and which."""

    uuids: Sequence[str] | None = None
    older_than: timedelta | None = None
    max_bytes: int | None = None
    user_id: str | None = None
    conversation: str | None = None
    tenant: str | None = None

    @property
    def conditions(self) -> list[str]:
        """Each condition in words."""
        said: list[str] = []
        if self.uuids:
            said.append(plural(len(self.uuids), "named page"))
        if self.older_than is not None:
            said.append(f"pages older than {span_text(self.older_than)}")
        if self.max_bytes is not None:
            said.append(f"the oldest pages beyond {size_text(self.max_bytes)}")
        return said

    @property
    def words(self) -> str:
        """The request in words."""
        whose = {"conversation": self.conversation, "user": self.user_id, "tenant": self.tenant}
        of = "".join(f" of {kind} {name!r}" for kind, name in whose.items() if name is not None)
        return " and ".join(self.conditions) + of

    async def checked(self, memory: Memory) -> "Wish":
        """The request with its uuids as stored; a missing page is an error before anything is removed."""
        if self.uuids is None:
            return self
        pages = [await page_named(memory, uuid, self.tenant) for uuid in self.uuids]
        for page in pages:
            if page.pinned:
                warn(f"{page.uuid} is pinned and stays: `pagefile archive unpin` it first.")
        return replace(self, uuids=list(dict.fromkeys(page.uuid for page in pages)))

    async def done(self, memory: Memory) -> tuple[list[Page], int]:
        """The purged pages, and the bytes this freed."""
        gone = await memory.purge(
            user_id=self.user_id,
            conversation_id=self.conversation,
            tenant=self.tenant,
            uuids=self.uuids,
            older_than=self.older_than,
            max_bytes=self.max_bytes,
        )
        # Equal texts are stored once, and removed with the last page that uses them.
        texts = {page.content_hash: page.stored_bytes for page in gone}
        if texts:
            async for page in every_page(memory, tenant=self.tenant):
                if page.purged is None:
                    texts.pop(page.content_hash, None)
        return gone, sum(texts.values())
