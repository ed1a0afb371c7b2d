"""Facts as dicts, and the journal of their changes as a list."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.facts import check_expected, checked, fact_text, revisions_of
from pagefile.stores.inmemory.room import Room, within


class InMemoryFacts(FactStore):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        self._room.check_open()
        owner = Scope(scope.tenant, scope.user)
        facts = [
            fact
            for fact in self._room.facts.values()
            if within(fact.scope, owner) and (retracted or fact.retracted is None)
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
        numbers = [row[0] for of, row in self._room.fact_revisions if within(of, owner)]
        return max(numbers, default=0), len(numbers)

    async def revise(
        self, scope: Scope, facts: Sequence[Fact], *, action: str, at: datetime, expected: int | None = None
    ) -> Revision:
        self._room.check_open()
        written = checked(scope, facts)
        owner = Scope(scope.tenant, scope.user)
        newest = [row[0] for of, row in self._room.fact_revisions if within(of, owner)]
        check_expected(expected, max(newest, default=0))
        before = [self._room.facts.get((scope.tenant, fact.id)) for fact in written]
        for was in before:
            if was is not None:
                rules.check_fact_owner(was, scope.user)
        self._room.fact_revision += 1
        for was, fact in zip(before, written, strict=True):
            self._room.facts[scope.tenant, fact.id] = fact
            row = (self._room.fact_revision, utc(at), action, was and fact_text(was), fact_text(fact))
            self._room.fact_revisions.append((fact.scope, row))
        return Revision(self._room.fact_revision, owner, utc(at), action, tuple(before), tuple(written))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        self._room.check_open()
        owner = Scope(scope.tenant, rules.user_of(scope))
        rows = [row for of, row in self._room.fact_revisions if within(of, owner) and row[0] > after]
        return revisions_of(rows, owner)
