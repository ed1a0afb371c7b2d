"""Erases what was said once it is older than its tenant's policy allows, and notes it in the audit log.

A conversation that was not used since then is erased as a whole, with everything derived from it. One that is still in use loses its old
turns one by one, each with its pages, facts and recorded windows. A pinned page keeps what it belongs to: the turn, and with it the
conversation. Erasing is what `memory.forget` does, so nothing is left that an erasure would not leave.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from pagefile.engine.audit_log import AuditEntry, AuditLog, now_text
from pagefile.engine.policy import Policy
from pagefile.errors import NotFoundError
from pagefile.ports import After, Auditor, Clock, ConversationQuery, EntryQuery, Store
from pagefile.records import ConversationInfo, ErasureReceipt, Scope, Turn
from pagefile.tiers.base import Backlog, Pace, Tier

logger = logging.getLogger("pagefile")

EVERY_S = 3600.0
#: Old turns that are erased of one conversation in a sweep: each erasure rewrites what was derived from it.
_MOST_TURNS = 200

Erase = Callable[..., Awaitable[ErasureReceipt]]


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

    async def maintain_all(self, backlog: Backlog) -> None:
        if not backlog.sweep:
            return
        after = After()
        while found := await self.auditor.conversations(after):
            for one in found:
                days = self.policy.days(one.scope.tenant)
                if days and one.there:
                    await self._kept_to(one.scope, timedelta(days=days))
                await backlog.pause(0.0)
            last = found[-1].scope
            after = After(last.tenant, last.conversation or "")

    async def _kept_to(self, scope: Scope, age: timedelta) -> None:
        """Erase what is too old in a conversation."""
        before = self.clock.now() - age
        heads = await self.store.reader.heads(ConversationQuery(scope, limit=1))
        if not heads or heads[0].created > before:
            return
        pinned = {page.uuid for page in await self.store.page_keeper.pinned(scope)}
        if heads[0].updated < before and not pinned:
            await self.erase(scope)
            self._note("retention: conversation", scope, 1)
            return
        count = await self._old_turns(heads[0], pinned, age)
        if count:
            self._note("retention: turns", scope, count)

    async def _old_turns(self, head: ConversationInfo, pinned: set[str], age: timedelta) -> int:
        before, count = self.clock.now() - age, 0
        for entry in await self.store.reader.entries(EntryQuery(head.scope, limit=_MOST_TURNS)):
            if entry.created >= before:
                break
            keeps = isinstance(entry, Turn) and any(not pinned.isdisjoint(step.pages) for step in entry.steps)
            if isinstance(entry, Turn) and not keeps and not entry.erased:
                try:
                    await self.erase(head.scope, turn_id=entry.id)
                    count += 1
                except NotFoundError:
                    continue
        return count

    def _note(self, verb: str, scope: Scope, count: int) -> None:
        logger.info("%s: %d erased by policy", verb, count)
        if self.audit is not None:
            self.audit.note(
                AuditEntry(now_text(), None, verb, scope.tenant, scope.user, scope.conversation, count=count)
            )
