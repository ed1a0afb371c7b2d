"""Rows as they lie in the tables, and the mending of what is derived."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pagefile.errors import StoreCorruptError, StoreUnavailableError
from pagefile.ports import (
    UNREADABLE,
    After,
    Auditor,
    Counters,
    KeptConversation,
    KeptEntry,
    KeptPage,
    Lengths,
    Recount,
    Stray,
    StrayKind,
)
from pagefile.records import Scope
from pagefile.stores.auditing import (
    altered_facts,
    counter_values,
    droppable,
    kept_entry,
    kept_page,
    summary_values,
    told,
)
from pagefile.stores.encoding import from_json
from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.queries import sql
from pagefile.stores.postgres.rows import checkpoint_of, entry_of, fact_of, keys, page_of

logger = logging.getLogger("pagefile")

#: Columns before those of the summary in the fragment `kept`.
_OWN_COLUMNS = 14
_KINDS: tuple[StrayKind, ...] = ("terms", "watermark", "summary", "session", "passage", "text")


class PostgresAuditor(Auditor):
    """Every table, read by its key."""

    keeps_sums = True

    def __init__(self, database: Database) -> None:
        self._database = database

    async def complaints(self, *, full: bool) -> list[str]:
        """Indexes are looked into where somebody made the extension amcheck, and only in full: it reads all of them."""
        found = await self._database.row("audit_amcheck", {})
        if not full or found is None:
            return []
        statement = sql("audit_index")
        statement = replace(statement, text=statement.text.replace("{extension}", quoted(found[0])))
        complaints: list[str] = []
        for (index,) in await self._database.rows("audit_indexes", {}):
            values: Values = {"name": index}
            try:
                await self._database.read(lambda connection, v=values: connection.row(statement, v))
            except StoreCorruptError as error:
                complaints.append(f"index {index}: {error}")
            except StoreUnavailableError as error:
                logger.warning("the indexes of the database are not looked into: %s", error)
                break
        return complaints

    async def size(self, tenant: str | None) -> int:
        row = await self._database.row("audit_size", {"tenants": tenant})
        return 0 if row is None else row[0]

    async def conversations(self, after: After) -> list[KeptConversation]:
        return [_kept(row) for row in await self._database.rows("audit_conversations", _place(after))]

    async def conversation(self, scope: Scope) -> KeptConversation | None:
        row = await self._database.row("audit_conversation", keys(scope))
        return None if row is None else _kept(row)

    async def lost(self, tenant: str | None) -> list[Scope]:
        rows = await self._database.rows("audit_lost", {"tenants": tenant})
        return [Scope(of, user, name) for of, name, user in rows]

    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[KeptEntry]:
        values: Values = {**keys(scope), "after_seq": after_seq, "limit": limit}

        async def read(connection: Connection) -> list[Row]:
            ended = await connection.rows("audit_entries", values)
            more = [] if len(ended) >= limit else await connection.rows("audit_open", values)
            return [*ended, *more]

        return [kept_entry(row, scope, entry_of) for row in await self._database.read(read)]

    async def entry(self, scope: Scope, entry_id: str) -> KeptEntry | None:
        row = await self._database.row("audit_entry", {**keys(scope), "id": entry_id})
        return None if row is None else kept_entry(row, scope, entry_of)

    async def pages(self, after: After) -> list[KeptPage]:
        return [kept_page(row, page_of) for row in await self._database.rows("audit_pages", _place(after))]

    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, Lengths]:
        rows = await self._database.rows("audit_lengths", {"tenant": tenant, "uuids": list(uuids)})
        return {uuid: Lengths(length, purged) for uuid, length, purged in rows}

    async def users(self, after: After) -> list[Scope]:
        rows = await self._database.rows("audit_users", _place(after))
        return [Scope(tenant, user) for tenant, user in rows]

    async def altered_facts(self, owner: Scope) -> list[str]:
        return altered_facts(await self._database.rows("audit_facts", keys(owner)), owner.tenant, fact_of)

    async def strays(self, tenant: str | None, *, limit: int) -> list[Stray]:
        there = await self._database.row("audit_has_vectors", {})
        kinds: tuple[StrayKind, ...] = (*_KINDS, "vector") if there and there[0] else _KINDS
        found: list[Stray] = []
        for kind in kinds:
            rows = await self._database.rows(f"strays_{kind}", {"tenants": tenant, "limit": limit})
            found += [Stray(kind, *row) for row in rows]
        return found

    async def recount(self, recount: Recount) -> bool:
        values = _recounted(recount)

        async def write(connection: Connection) -> bool:
            statement = "audit_recount" if recount.seen.there else "audit_remake"
            if not await connection.count(statement, values):
                return False
            await connection.count("audit_sums", values)
            await connection.count("audit_summary_drop", values)
            if recount.checkpoint is not None:
                summary = {
                    **keys(recount.seen.scope),
                    **summary_values(recount.checkpoint),
                    "created": recount.checkpoint.created,
                    "covered_messages": recount.covered_messages,
                }
                await connection.count("audit_summary", summary)
            return True

        return await self._database.write(write)

    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        await self._change("audit_mark", {**keys(scope), "tier": tier, "seq": seq})

    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        key: Values = {"tenant": tenant, "uuid": uuid}
        rows = [
            {**key, "place": place, "skip": start, "length": end} for place, (start, end) in enumerate(spans)
        ]

        async def write(connection: Connection) -> None:
            if await connection.row("audit_living", key) is not None:
                await connection.count("audit_passages_drop", key)
                await connection.many("audit_passage_put", rows)

        await self._database.write(write)

    async def set_bytes(self, tenant: str, uuid: str) -> None:
        await self._change("audit_bytes", {"tenant": tenant, "uuid": uuid})

    async def drop(self, strays: Sequence[Stray]) -> int:
        return sum([await self._change(f"stray_drop_{one.kind}", told(one)) for one in droppable(strays)])

    async def _change(self, statement: str, values: Values) -> int:
        return await self._database.write(lambda connection: connection.count(statement, values))


def _place(after: After) -> Values:
    return {
        "after_tenant": after.tenant,
        "name": after.name,
        "tenants": after.only,
        "limit": after.limit,
    }


def _kept(row: Row) -> KeptConversation:
    tenant, name, owner, *counted, marks = row[:_OWN_COLUMNS]
    scope = Scope(tenant, owner, name)
    counters = Counters(*counted)
    known: dict[str, int] = from_json(marks) or {}
    if row[_OWN_COLUMNS] is None:
        return KeptConversation(scope, counters, known)
    try:
        summary = checkpoint_of(row[_OWN_COLUMNS:], scope)
    except UNREADABLE as error:
        return KeptConversation(scope, counters, known, trouble=repr(error))
    return KeptConversation(scope, counters, known, summary)


def _recounted(recount: Recount) -> Values:
    seen, times = recount.seen.counters, recount.times
    values: dict[str, Any] = {**keys(recount.seen.scope), **counter_values(recount.counters)}
    return {
        **values,
        "last_created": recount.counters.last_created,
        "done_tokens": recount.counters.done_tokens or 0,
        "seen_created": seen.last_created,
        "seen_seq": seen.last_seq,
        "owner": recount.owner,
        "first": times and times[0],
        "last": times and times[1],
    }
