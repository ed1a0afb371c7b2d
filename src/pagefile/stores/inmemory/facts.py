"""Facts as dicts, and the journal of their changes as a list."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.facts import Restored, check_expected, checked, fact_text, restored, revisions_of
from pagefile.stores.inmemory.room import Room


class InMemoryFacts(FactStore):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        self._room.check_open()
        owner = Scope(scope.tenant, scope.user)
        facts = [
            fact
            for fact in self._room.facts.values()
            if fact.scope.within(owner) and (retracted or fact.retracted is None)
        ]
        return sorted(facts, key=lambda fact: (fact.recorded, fact.id))

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        self._room.check_open()
        fact = self._room.facts.get((scope.tenant, fact_id))
        if fact is None or scope.user not in (None, fact.scope.user):
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        self._room.check_open()
        owner = Scope(scope.tenant, rules.user_of(scope))
        numbers = [row[0] for of, row in self._room.fact_revisions if of.within(owner)]
        return max(numbers, default=0), len(numbers)

    async def revise(
        self,
        scope: Scope,
        facts: Sequence[Fact],
        *,
        action: str,
        at: datetime,
        epoch: int | None,
        expected: int | None = None,
    ) -> Revision:
        self._room.check_epoch(epoch, scope, *(fact.scope for fact in facts))
        written = checked(scope, facts)
        newest = (await self.changed(scope))[0]
        check_expected(expected, newest)
        before = [self._owned(scope, fact.id) for fact in written]
        # A journal that was restored has numbers of elsewhere, and goes on behind them.
        self._room.fact_revision += 1
        number = max(newest + 1, self._room.fact_revision)
        owner = Scope(scope.tenant, scope.user)
        revision = Revision(number, owner, utc(at), action, tuple(before), tuple(written))
        self._write(Restored(tuple(written), (revision,)))
        return revision

    async def owners(self, tenant: str) -> Sequence[Scope]:
        self._room.check_open()
        users = {fact.scope.user for fact in self._room.facts.values() if fact.scope.tenant == tenant}
        return [Scope(tenant, user) for user in sorted(filter(None, users))]

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        plan = restored(scope, facts, revisions)
        there = {fact.id for fact in await self.list(scope, retracted=True)}
        new = [fact for fact in plan.facts if fact.id not in there]
        for fact in new:
            self._owned(scope, fact.id)
        if plan.revisions and not there and await self.changed(scope) == (0, 0):
            self._write(plan)
            return len(plan.facts), len(plan.revisions)
        for fact in new:
            await self.put(fact)
        return len(new), 0

    def _owned(self, scope: Scope, fact_id: str) -> Fact | None:
        fact = self._room.facts.get((scope.tenant, fact_id))
        if fact is not None:
            rules.check_fact_owner(fact, scope.user)
        return fact

    def _write(self, plan: Restored) -> None:
        for fact in plan.facts:
            self._room.facts[fact.scope.tenant, fact.id] = fact
        for revision, was, became in plan.rows():
            told = revision.number, revision.at, revision.action
            row = (*told, was and fact_text(was), fact_text(became))
            self._room.fact_revisions.append((became.scope, row))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        self._room.check_open()
        owner = Scope(scope.tenant, rules.user_of(scope))
        rows = [row for of, row in self._room.fact_revisions if of.within(owner) and row[0] > after]
        return revisions_of(rows, owner)
