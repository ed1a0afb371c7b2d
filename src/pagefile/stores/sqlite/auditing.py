"""Rows as they lie in the file, and the mending of what is derived."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, cast

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
from pagefile.stores.encoding import from_json, text_time, time_text, to_json
from pagefile.stores.sqlite.driver import Connection, Row
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, checkpoint_of, entry_of, fact_of, keys, page_of

#: How many things the file's own check names before it gives up.
_COMPLAINTS = 100
#: Columns before those of the summary in the fragment `kept`.
_OWN_COLUMNS = 13
_KINDS: tuple[StrayKind, ...] = ("terms", "vector", "watermark", "summary", "session", "passage", "text")


class SqliteAuditor(Auditor):
    """Every table, read by its key."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def complaints(self, *, full: bool) -> list[str]:
        check = "integrity_check" if full else "quick_check"

        def read(connection: Connection) -> list[str]:
            rows = connection.execute(f"PRAGMA {check}({_COMPLAINTS})").fetchall()
            return [str(row[0]) for row in rows if row[0] != "ok"]

        return await self._readers.run(read)

    async def size(self, tenant: str | None) -> int:
        return await self._readers.run(
            lambda connection: connection.execute(sql("audit_size"), {"tenant": tenant}).get
        )

    async def conversations(self, after: After) -> list[KeptConversation]:
        return [_kept(row) for row in await self._rows("audit_conversations", _place(after))]

    async def conversation(self, scope: Scope) -> KeptConversation | None:
        rows = await self._rows("audit_conversation", keys(scope))
        return _kept(rows[0]) if rows else None

    async def lost(self, tenant: str | None) -> list[Scope]:
        rows = await self._rows("audit_lost", {"tenant": tenant})
        return [Scope(of, user, name) for of, name, user in rows]

    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[KeptEntry]:
        values = {**keys(scope), "after": after_seq, "limit": limit}

        def read(connection: Connection) -> list[Row]:
            ended = connection.execute(sql("audit_entries"), values).fetchall()
            more = [] if len(ended) >= limit else connection.execute(sql("audit_open"), values).fetchall()
            return ended + more

        return [kept_entry(row, scope, entry_of) for row in await self._readers.run(read)]

    async def entry(self, scope: Scope, entry_id: str) -> KeptEntry | None:
        rows = await self._rows("audit_entry", {**keys(scope), "id": entry_id})
        return kept_entry(rows[0], scope, entry_of) if rows else None

    async def pages(self, after: After) -> list[KeptPage]:
        return [kept_page(row, page_of) for row in await self._rows("audit_pages", _place(after))]

    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, Lengths]:
        rows = await self._rows("audit_lengths", {"tenant": tenant, "uuids": to_json(list(uuids))})
        return {uuid: Lengths(length, purged and text_time(purged)) for uuid, length, purged in rows}

    async def users(self, after: After) -> list[Scope]:
        return [Scope(tenant, user) for tenant, user in await self._rows("audit_users", _place(after))]

    async def altered_facts(self, owner: Scope) -> list[str]:
        return altered_facts(await self._rows("audit_facts", keys(owner)), owner.tenant, fact_of)

    async def strays(self, tenant: str | None, *, limit: int) -> list[Stray]:
        found: list[Stray] = []
        for kind in _KINDS:
            rows = await self._rows(f"strays_{kind}", {"tenant": tenant, "limit": limit})
            found += [Stray(kind, *row) for row in rows]
        return found

    async def recount(self, recount: Recount) -> bool:
        values = _recounted(recount)

        def write(connection: Connection) -> bool:
            connection.execute(sql("audit_recount" if recount.seen.there else "audit_remake"), values)
            if not connection.changes():
                return False
            connection.execute(sql("summary_drop"), values)
            if recount.checkpoint is not None:
                summary = {**keys(recount.seen.scope), **summary_values(recount.checkpoint)}
                summary["create_time"] = time_text(recount.checkpoint.created)
                connection.execute(
                    sql("summary_put"), {**summary, "covered_messages": recount.covered_messages}
                )
            return True

        return await self._writer.run(write)

    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        await self._change("audit_mark", {**keys(scope), "tier": tier, "seq": seq})

    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        key = {"tenant": tenant, "uuid": uuid}
        rows = [
            {**key, "number": number, "start": start, "end": end} for number, (start, end) in enumerate(spans)
        ]

        def write(connection: Connection) -> None:
            if connection.execute(sql("audit_living"), key).get:
                connection.execute(sql("passages_drop"), key)
                connection.executemany(sql("passage_put"), rows)

        await self._writer.run(write)

    async def set_bytes(self, tenant: str, uuid: str) -> None:
        await self._change("audit_bytes", {"tenant": tenant, "uuid": uuid})

    async def drop(self, strays: Sequence[Stray]) -> int:
        return sum([await self._change(f"stray_drop_{one.kind}", told(one)) for one in droppable(strays)])

    async def _rows(self, statement: str, values: Values) -> list[Row]:
        def read(connection: Connection) -> list[Row]:
            with closing(connection.execute(sql(statement), values)) as cursor:
                return cursor.fetchall()

        return await self._readers.run(read)

    async def _change(self, statement: str, values: Values) -> int:
        def write(connection: Connection) -> int:
            connection.execute(sql(statement), values)
            return connection.changes()

        return await self._writer.run(write)


def _place(after: After) -> Values:
    return {"tenant": after.tenant, "name": after.name, "only": after.only, "limit": after.limit}


def _kept(row: Row) -> KeptConversation:
    tenant, name, owner, *counted, marks = row[:_OWN_COLUMNS]
    last_created = counted.pop()
    scope = Scope(tenant, owner, name)
    counters = Counters(*counted, last_created=last_created and text_time(last_created))
    kept = KeptConversation(scope, counters, cast("dict[str, int]", from_json(marks)))
    if row[_OWN_COLUMNS] is None:
        return kept
    try:
        summary = checkpoint_of(row[_OWN_COLUMNS:], scope)
    except UNREADABLE as error:
        return KeptConversation(scope, counters, kept.marks, trouble=repr(error))
    return KeptConversation(scope, counters, kept.marks, summary)


def _recounted(recount: Recount) -> Values:
    seen, times = recount.seen.counters, recount.times
    values: dict[str, Any] = {**keys(recount.seen.scope), **counter_values(recount.counters)}
    for name, moment in (
        ("last_created", recount.counters.last_created),
        ("seen_created", seen.last_created),
        ("first", times and times[0]),
        ("last", times and times[1]),
    ):
        values[name] = moment and time_text(moment)
    return {**values, "seen_seq": seen.last_seq, "owner": recount.owner}
