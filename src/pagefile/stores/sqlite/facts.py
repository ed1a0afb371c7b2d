"""Facts, and the journal of their changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.digests import fact_digest
from pagefile.stores.encoding import text_time, time_text
from pagefile.stores.facts import (
    JournalRow,
    Restored,
    check_expected,
    checked,
    fact_text,
    restored,
    revisions_of,
)
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import check_writable
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values, fact_of, keys


class SqliteFacts(FactStore):
    """Facts in the table of that name, changes in `fact_revisions`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        values = {**keys(scope), "retracted": retracted}

        def read(connection: Connection) -> list[Fact]:
            return [fact_of(row, scope.tenant) for row in connection.execute(sql(statement), values)]

        return await self._readers.run(read)

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        def read(connection: Connection) -> Fact:
            fact = _find(connection, scope.tenant, fact_id)
            if fact is None or scope.user not in {None, fact.scope.user}:
                raise rules.no_fact(fact_id)
            return fact

        return await self._readers.run(read)

    async def changed(self, scope: Scope) -> tuple[int, int]:
        rules.user_of(scope)
        return await self._readers.run(lambda connection: _changed(connection, scope))

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

        def write(connection: Connection) -> Revision:
            check_writable(connection, epoch, [scope, *(fact.scope for fact in written)])
            check_expected(expected, _changed(connection, scope)[0])
            return _revise(connection, scope, written, action, moment)

        return await self._writer.run(write)

    async def owners(self, tenant: str) -> Sequence[Scope]:
        def read(connection: Connection) -> Sequence[Scope]:
            rows: Any = connection.execute(sql("fact_owners"), {"tenant": tenant})
            return [Scope(tenant, user) for (user,) in rows]

        return await self._readers.run(read)

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        plan = restored(scope, facts, revisions)
        return await self._writer.run(lambda connection: _restore(connection, scope, plan))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        values = {**keys(scope), "after_seq": after}

        def read(connection: Connection) -> Sequence[Revision]:
            rows: Any = connection.execute(sql("fact_revisions_after"), values)
            return revisions_of(map(_journal_row, rows), scope)

        return await self._readers.run(read)


def _revise(
    connection: Connection, scope: Scope, written: Sequence[Fact], action: str, moment: datetime
) -> Revision:
    before = [_owned(connection, scope, fact.id) for fact in written]
    newest = _changed(connection, scope)[0]
    number: Any = connection.execute(sql("fact_revision_next"), {"newest": newest}).get
    owner = Scope(scope.tenant, scope.user)
    revision = Revision(number, owner, moment, action, tuple(before), tuple(written))
    for was, fact in zip(before, written, strict=True):
        connection.execute(sql("fact_put"), _fact_values(fact))
        connection.execute(sql("fact_revision_put"), _journal_values(revision, was, fact))
    return revision


def _restore(connection: Connection, scope: Scope, plan: Restored) -> tuple[int, int]:
    rows: Any = connection.execute(sql("fact_ids"), keys(scope))
    there = {fact_id for (fact_id,) in rows}
    if plan.revisions and not there and _changed(connection, scope) == (0, 0):
        for fact in plan.facts:
            _owned(connection, scope, fact.id)
        connection.executemany(sql("fact_put"), [_fact_values(fact) for fact in plan.facts])
        connection.executemany(sql("fact_revision_put"), [_journal_values(*row) for row in plan.rows()])
        return len(plan.facts), len(plan.revisions)
    new = [fact for fact in plan.facts if fact.id not in there]
    for fact in new:
        _revise(connection, scope, [fact], "stored", fact.recorded)
    return len(new), 0


def _owned(connection: Connection, scope: Scope, fact_id: str) -> Fact | None:
    """The fact of an id, which must not be another user's."""
    fact = _find(connection, scope.tenant, fact_id)
    if fact is not None:
        rules.check_fact_owner(fact, scope.user)
    return fact


def _journal_values(revision: Revision, was: Fact | None, became: Fact) -> Values:
    return {
        **keys(became.scope),
        "id": became.id,
        "seq": revision.number,
        "at": time_text(revision.at),
        "action": revision.action,
        "was": was and fact_text(was),
        "became": fact_text(became),
    }


def _journal_row(row: Row) -> JournalRow:
    number, at, action, was, became = row
    return number, text_time(at), action, was, became


def _changed(connection: Connection, scope: Scope) -> tuple[int, int]:
    row: Any = connection.execute(sql("facts_changed"), keys(scope)).fetchone()
    return row[0], row[1]


def _find(connection: Connection, tenant: str, fact_id: str) -> Fact | None:
    rows = connection.execute(sql("fact_get"), {"tenant": tenant, "id": fact_id}).fetchall()
    return fact_of(rows[0], tenant) if rows else None


def _fact_values(fact: Fact) -> Values:
    return {
        **keys(fact.scope),
        "id": fact.id,
        "content": fact.text,
        "category": fact.category,
        "confidence": float(fact.confidence),
        "valid_from": time_text(fact.valid_from),
        "valid_to": fact.valid_to and time_text(fact.valid_to),
        "recorded": time_text(fact.recorded),
        "retracted": fact.retracted and time_text(fact.retracted),
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
