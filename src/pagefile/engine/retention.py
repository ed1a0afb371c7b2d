"""Erases what was said once it is older than its tenant's policy allows, and notes it in the audit log.

A conversation that was not used since then is erased as a whole, with everything derived from it. One that is still in use loses its old
turns one by one, each with its pages, facts and recorded windows. A pinned page keeps what it belongs to: the turn, and with it the
conversation. Erasing is what `memory.forget` does, so nothing is left that an erasure would not leave.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic

from pagefile.engine.audit_log import AuditEntry, AuditLog, now_text
from pagefile.engine.policy import Policy
from pagefile.errors import NotFoundError
from pagefile.lru import Lru
from pagefile.ports import After, Auditor, Clock, ConversationQuery, EntryQuery, Store
from pagefile.records import ErasureReceipt, Scope, Turn
from pagefile.tiers.base import Backlog, Pace, Tier

logger = logging.getLogger("pagefile")

EVERY_S = 3600.0
#: Entries that are read at a time.
_SLICE = 200
#: Conversations of which it is remembered up to where nothing is left to erase.
_MOST_CONVERSATIONS = 100_000

Erase = Callable[..., Awaitable[ErasureReceipt]]
Pause = Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class Held:
    """What a tenant has, and what of it is older than its policy allows."""

    tenant: str
    conversations: int = 0
    due_conversations: int = 0
    #: Old turns of conversations in use.
    due_turns: int = 0


@dataclass(eq=False, repr=False)
class Retention(Tier):
    """Background work like a tier's, in the process that does it."""

    name = "retention"
    pace = Pace(first_sweep_s=5.0, sweep_every_s=EVERY_S, together=True)

    policy: Policy
    store: Store
    auditor: Auditor
    clock: Clock
    erase: Erase
    audit: AuditLog | None = None
    #: Up to which place of the log all turns of a conversation are erased. One that was erased and is written again begins anew.
    _bare: Lru[tuple[Scope, datetime], int] = field(
        default_factory=lambda: Lru[tuple[Scope, datetime], int](_MOST_CONVERSATIONS)
    )

    async def maintain_all(self, backlog: Backlog) -> None:
        if backlog.sweep:
            await self.sweep(backlog.pause)

    async def sweep(self, pause: Pause) -> None:
        """Erase everything that is too old, with pauses in which others write."""
        async with self.store.many_erasures():
            async for scope in self._conversations():
                await self._kept_to(scope, pause)
                await pause(0.0)

    async def held(self) -> list[Held]:
        """What each tenant has, and what of it is too old. Nothing is erased."""
        found: dict[str, Held] = {}
        async for scope in self._conversations():
            held = found.setdefault(scope.tenant, Held(scope.tenant))
            held.conversations += 1
            async for turn_id in self._due(scope, sweeping=False):
                held.due_conversations += turn_id is None
                held.due_turns += turn_id is not None
        return [*found.values()]

    async def _conversations(self) -> AsyncGenerator[Scope]:
        after = After()
        while found := await self.auditor.conversations(after):
            for one in found:
                if one.there:
                    yield one.scope
            last = found[-1].scope
            after = After(last.tenant, last.conversation or "")

    async def _kept_to(self, scope: Scope, pause: Pause) -> None:
        """Erase what is too old in a conversation."""
        count = 0
        async for turn_id in self._due(scope, sweeping=True):
            if turn_id is None:
                await self._erased(scope, pause)
                self._note("retention: conversation", scope, 1)
            else:
                count += await self._erased(scope, pause, turn_id=turn_id)
        if count:
            self._note("retention: turns", scope, count)

    async def _due(self, scope: Scope, *, sweeping: bool) -> AsyncGenerator[str | None]:
        """The turns of a conversation that are too old; None if it is, as a whole. When sweeping, each is erased before the next."""
        days = self.policy.days(scope.tenant)
        heads = await self.store.reader.heads(ConversationQuery(scope, limit=1)) if days else ()
        before = self.clock.now() - timedelta(days=days)
        if not heads or heads[0].created > before:
            return
        pinned = {page.uuid for page in await self.store.page_keeper.pinned(scope)}
        if heads[0].updated < before and not pinned:
            yield None
            return
        scope = heads[0].scope
        written = scope, heads[0].created
        bare, place = sweeping, self._bare.get(written, 0)
        while entries := await self.store.reader.entries(EntryQuery(scope, after_seq=place, limit=_SLICE)):
            for entry in entries:
                if entry.created >= before or entry.seq is None:
                    return
                if isinstance(entry, Turn) and not entry.erased:
                    if any(not pinned.isdisjoint(step.pages) for step in entry.steps):
                        # It may be unpinned: the next sweep looks at it again.
                        bare = False
                    else:
                        yield entry.id
                place = entry.seq
                if bare:
                    self._bare[written] = place

    async def _erased(self, scope: Scope, pause: Pause, **part: str) -> int:
        """Whether there was something to erase. Then others write for as long as it took."""
        began = monotonic()
        try:
            await self.erase(scope, **part)
        except NotFoundError:
            return 0
        await pause(monotonic() - began)
        return 1

    def _note(self, verb: str, scope: Scope, count: int) -> None:
        logger.info("%s: %d erased by policy", verb, count)
        if self.audit is not None:
            self.audit.note(
                AuditEntry(now_text(), None, verb, scope.tenant, scope.user, scope.conversation, count=count)
            )
