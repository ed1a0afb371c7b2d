"""Facts, and the journal of their changes."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.digests import record_digest
from pagefile.stores.fact_rows import (
    JournalRow,
    Restored,
    check_expected,
    checked,
    fact_text,
    restored,
    revisions_of,
)
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, each, first, many, row, rows
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import keys, moment, of_tenant, values_of


class SqlFacts(SqlPort, FactStore):
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        values = {**keys(scope), "with_retracted": retracted}
        return await self._each(statement, values, of_tenant(Fact, scope.tenant))

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        fact = await self._player.read(lambda: _find(scope.tenant, fact_id))
        if fact is None or scope.user not in {None, fact.scope.user}:
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        rules.user_of(scope)
        return await self._player.read(lambda: _changed(scope))

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
        written = checked(scope, facts)

        def play() -> Play[Revision]:
            yield from check_writable(epoch, [scope, *(fact.scope for fact in written)])
            yield from row("fact_lock", keys(scope))
            newest, _ = yield from _changed(scope)
            check_expected(expected, newest)
            return (yield from _revise(scope, written, action, utc(at), newest))

        # A retry of a change that took effect would not find the revision it expects.
        return await self._player.write(play, again=expected is None)

    async def owners(self, tenant: str) -> Sequence[Scope]:
        return await self._each("fact_owners", {"tenant": tenant}, lambda one: Scope(tenant, *one))

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        plan = restored(scope, facts, revisions)
        return await self._player.write(lambda: _restore(scope, plan))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        values = {**keys(scope), "after_seq": after}

        def play() -> Play[list[Revision]]:
            return revisions_of((yield from each("fact_revisions_after", values, _journal_row)), scope)

        return await self._player.read(play)


def _revise(scope: Scope, written: Sequence[Fact], action: str, at: datetime, newest: int) -> Play[Revision]:
    before: list[Fact | None] = []
    for fact in written:
        before += [(yield from _owned(scope, fact.id))]
    number = yield from row("fact_revision_next", {"newest": newest})
    assert number is not None
    owner = Scope(scope.tenant, scope.user)
    revision = Revision(number[0], owner, at, action, tuple(before), tuple(written))
    yield from _write(Restored(tuple(written), (revision,)))
    return revision


def _write(plan: Restored) -> Play[None]:
    yield from many("fact_put", [{**values_of(fact), "digest": record_digest(fact)} for fact in plan.facts])
    yield from many("fact_revision_put", [_journal_values(*one) for one in plan.rows()])


def _restore(scope: Scope, plan: Restored) -> Play[tuple[int, int]]:
    yield from row("fact_lock", keys(scope))
    there = {fact_id for (fact_id,) in (yield from rows("fact_ids", keys(scope)))}
    newest, journal_rows = yield from _changed(scope)
    if plan.revisions and not there and not journal_rows:
        for fact in plan.facts:
            yield from _owned(scope, fact.id)
        yield from _write(plan)
        return len(plan.facts), len(plan.revisions)
    new = [fact for fact in plan.facts if fact.id not in there]
    for fact in new:
        newest = (yield from _revise(scope, [fact], "stored", fact.recorded, newest)).number
    return len(new), 0


def _owned(scope: Scope, fact_id: str) -> Play[Fact | None]:
    """The fact with this id, which must not be another user's."""
    fact = yield from _find(scope.tenant, fact_id)
    if fact is not None:
        rules.check_fact_owner(fact, scope.user)
    return fact


def _find(tenant: str, fact_id: str) -> Play[Fact | None]:
    values = {"tenant": tenant, "id": fact_id}
    return (yield from first("fact_get", values, of_tenant(Fact, tenant)))


def _changed(scope: Scope) -> Play[tuple[int, int]]:
    found = yield from row("facts_changed", keys(scope))
    assert found is not None
    return found[0], found[1]


def _journal_values(revision: Revision, was: Fact | None, became: Fact) -> Values:
    return {
        **keys(became.scope),
        "id": became.id,
        "seq": revision.number,
        "at": revision.at,
        "action": revision.action,
        "was": was and fact_text(was),
        "became": fact_text(became),
    }


def _journal_row(found: Row) -> JournalRow:
    number, at, action, was, became = found
    return number, moment(at), action, was, became
