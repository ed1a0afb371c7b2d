"""Facts, and the journal of their changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import text_time, time_text
from pagefile.stores.facts import JournalRow, check_expected, checked, fact_text, revisions_of
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values, keys


class SqliteFacts(FactStore):
    """Facts in the table of that name, changes in `fact_revisions`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        values = {**keys(scope), "retracted": retracted}

        def read(connection: Connection) -> list[Fact]:
            return [_fact(row, scope.tenant) for row in connection.execute(sql(statement), values)]

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
        self, scope: Scope, facts: Sequence[Fact], *, action: str, at: datetime, expected: int | None = None
    ) -> Revision:
        written = checked(scope, facts)
        moment = utc(at)

        def write(connection: Connection) -> Revision:
            check_expected(expected, _changed(connection, scope)[0])
            before = [_find(connection, scope.tenant, fact.id) for fact in written]
            number: Any = connection.execute(sql("fact_revision_next")).get
            for was, fact in zip(before, written, strict=True):
                if was is not None:
                    rules.check_fact_owner(was, scope.user)
                connection.execute(sql("fact_put"), _fact_values(fact))
                told = {"seq": number, "at": time_text(moment), "action": action}
                texts = {"was": was and fact_text(was), "became": fact_text(fact)}
                connection.execute(
                    sql("fact_revision_put"), {**keys(fact.scope), "id": fact.id, **told, **texts}
                )
            owner = Scope(scope.tenant, scope.user)
            return Revision(number, owner, moment, action, tuple(before), tuple(written))

        return await self._writer.run(write)

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        values = {**keys(scope), "after_seq": after}

        def read(connection: Connection) -> Sequence[Revision]:
            rows: Any = connection.execute(sql("fact_revisions_after"), values)
            return revisions_of(map(_journal_row, rows), scope)

        return await self._readers.run(read)


def _journal_row(row: Row) -> JournalRow:
    number, at, action, was, became = row
    return number, text_time(at), action, was, became


def _changed(connection: Connection, scope: Scope) -> tuple[int, int]:
    row: Any = connection.execute(sql("facts_changed"), keys(scope)).fetchone()
    return row[0], row[1]


def _find(connection: Connection, tenant: str, fact_id: str) -> Fact | None:
    rows = connection.execute(sql("fact_get"), {"tenant": tenant, "id": fact_id}).fetchall()
    return _fact(rows[0], tenant) if rows else None


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
    }


def _fact(row: Row, tenant: str) -> Fact:
    (
        fact_id,
        user,
        conversation,
        text,
        category,
        confidence,
        valid_from,
        valid_to,
        recorded,
        retracted,
        *rest,
    ) = row
    return Fact(
        fact_id,
        Scope(tenant, user, conversation),
        text,
        category,
        confidence,
        text_time(valid_from),
        valid_to and text_time(valid_to),
        text_time(recorded),
        retracted and text_time(retracted),
        *rest,
    )
