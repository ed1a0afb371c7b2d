"""Facts, and the journal of their changes."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.digests import fact_digest
from pagefile.stores.facts import (
    JournalRow,
    Restored,
    check_expected,
    checked,
    fact_text,
    restored,
    revisions_of,
)
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.rows import fact_of, keys


class PostgresFacts(FactStore):
    """Facts in the table of that name, changes in `fact_revisions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        rows = await self._database.rows(statement, {**keys(scope), "retracted": retracted})
        return [fact_of(row, scope.tenant) for row in rows]

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        row = await self._database.row("fact_get", {"tenant": scope.tenant, "id": fact_id})
        fact = None if row is None else fact_of(row, scope.tenant)
        if fact is None or scope.user not in {None, fact.scope.user}:
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        rules.user_of(scope)
        return await self._database.read(lambda connection: _changed(connection, scope))

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
        moment = utc(at)

        async def write(connection: Connection) -> Revision:
            await check_writable(connection, epoch, [scope, *(fact.scope for fact in written)])
            await connection.row("fact_lock", keys(scope))
            newest = (await _changed(connection, scope))[0]
            check_expected(expected, newest)
            return await _revise(connection, scope, written, action, moment, newest)

        # A change that was already made would not find the revision it expects.
        return await self._database.write(write, again=expected is None)

    async def owners(self, tenant: str) -> Sequence[Scope]:
        rows = await self._database.rows("fact_owners", {"tenant": tenant})
        return [Scope(tenant, user) for (user,) in rows]

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        plan = restored(scope, facts, revisions)
        return await self._database.write(lambda connection: _restore(connection, scope, plan))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        rows = await self._database.rows("fact_revisions_after", {**keys(scope), "after_seq": after})
        return revisions_of(map(_journal_row, rows), scope)


async def _revise(
    connection: Connection, scope: Scope, written: Sequence[Fact], action: str, moment: datetime, newest: int
) -> Revision:
    before = [await _owned(connection, scope, fact.id) for fact in written]
    next_row = await connection.row("fact_revision_next", {"newest": newest})
    assert next_row is not None
    owner = Scope(scope.tenant, scope.user)
    revision = Revision(next_row[0], owner, moment, action, tuple(before), tuple(written))
    await _write(connection, Restored(tuple(written), (revision,)))
    return revision


async def _write(connection: Connection, plan: Restored) -> None:
    await connection.many("fact_put", [_fact_values(fact) for fact in plan.facts])
    await connection.many("fact_revision_put", [_journal_values(*row) for row in plan.rows()])


async def _restore(connection: Connection, scope: Scope, plan: Restored) -> tuple[int, int]:
    await connection.row("fact_lock", keys(scope))
    there = {fact_id for (fact_id,) in await connection.rows("fact_ids", keys(scope))}
    newest, rows = await _changed(connection, scope)
    if plan.revisions and not there and not rows:
        for fact in plan.facts:
            await _owned(connection, scope, fact.id)
        await _write(connection, plan)
        return len(plan.facts), len(plan.revisions)
    new = [fact for fact in plan.facts if fact.id not in there]
    for fact in new:
        newest = (await _revise(connection, scope, [fact], "stored", fact.recorded, newest)).number
    return len(new), 0


async def _owned(connection: Connection, scope: Scope, fact_id: str) -> Fact | None:
    """The fact of an id, which must not be another user's."""
    fact = await _find(connection, scope.tenant, fact_id)
    if fact is not None:
        rules.check_fact_owner(fact, scope.user)
    return fact


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


def _journal_row(row: Row) -> JournalRow:
    number, at, action, was, became = row
    return number, utc(at), action, was, became


async def _changed(connection: Connection, scope: Scope) -> tuple[int, int]:
    row = await connection.row("facts_changed", keys(scope))
    assert row is not None
    return row[0], row[1]


async def _find(connection: Connection, tenant: str, fact_id: str) -> Fact | None:
    row = await connection.row("fact_get", {"tenant": tenant, "id": fact_id})
    return None if row is None else fact_of(row, tenant)


def _fact_values(fact: Fact) -> Values:
    return {
        **keys(fact.scope),
        "id": fact.id,
        "content": fact.text,
        "category": fact.category,
        "confidence": fact.confidence,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "recorded": fact.recorded,
        "retracted_at": fact.retracted,
        "source_turn": fact.source_turn,
        "source_quote": fact.source_quote,
        "tokens": fact.tokens,
        "counter": fact.counter,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "supersedes": fact.supersedes,
        "project": fact.project,
        "agent": fact.agent,
        "digest": fact_digest(fact),
    }
