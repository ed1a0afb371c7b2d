"""Facts, and the journal of their changes."""

from collections.abc import Sequence
from datetime import datetime

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.facts import JournalRow, check_expected, checked, fact_text, revisions_of
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.rows import keys


class PostgresFacts(FactStore):
    """Facts in the table of that name, changes in `fact_revisions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        rows = await self._database.rows(statement, {**keys(scope), "retracted": retracted})
        return [_fact(row, scope.tenant) for row in rows]

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        row = await self._database.row("fact_get", {"tenant": scope.tenant, "id": fact_id})
        fact = None if row is None else _fact(row, scope.tenant)
        if fact is None or scope.user not in {None, fact.scope.user}:
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        rules.user_of(scope)
        return await self._database.read(lambda connection: _changed(connection, scope))

    async def revise(
        self, scope: Scope, facts: Sequence[Fact], *, action: str, at: datetime, expected: int | None = None
    ) -> Revision:
        written = checked(scope, facts)
        moment = utc(at)

        async def write(connection: Connection) -> Revision:
            await connection.row("fact_lock", keys(scope))
            check_expected(expected, (await _changed(connection, scope))[0])
            before = [await _find(connection, scope.tenant, fact.id) for fact in written]
            for was in before:
                if was is not None:
                    rules.check_fact_owner(was, scope.user)
            next_row = await connection.row("fact_revision_next", {})
            assert next_row is not None
            await connection.many("fact_put", [_fact_values(fact) for fact in written])
            told: Values = {"seq": next_row[0], "at": moment, "action": action}
            await connection.many(
                "fact_revision_put",
                [
                    {
                        **keys(fact.scope),
                        "id": fact.id,
                        **told,
                        "was": was and fact_text(was),
                        "became": fact_text(fact),
                    }
                    for was, fact in zip(before, written, strict=True)
                ],
            )
            owner = Scope(scope.tenant, scope.user)
            return Revision(next_row[0], owner, moment, action, tuple(before), tuple(written))

        # A change that was already made would not find the revision it expects.
        return await self._database.write(write, again=expected is None)

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        rows = await self._database.rows("fact_revisions_after", {**keys(scope), "after_seq": after})
        return revisions_of(map(_journal_row, rows), scope)


def _journal_row(row: Row) -> JournalRow:
    number, at, action, was, became = row
    return number, utc(at), action, was, became


async def _changed(connection: Connection, scope: Scope) -> tuple[int, int]:
    row = await connection.row("facts_changed", keys(scope))
    assert row is not None
    return row[0], row[1]


async def _find(connection: Connection, tenant: str, fact_id: str) -> Fact | None:
    row = await connection.row("fact_get", {"tenant": tenant, "id": fact_id})
    return None if row is None else _fact(row, tenant)


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
    }


def _fact(row: Row, tenant: str) -> Fact:
    fact_id, user, conversation, *rest = row
    return Fact(fact_id, Scope(tenant, user, conversation), *rest)
