"""Rows exactly as the tables hold them, and the repair of derived data."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TypeVar, get_args

from pagefile.ports import audit
from pagefile.records import Entry, Fact, Page, Scope, Turn
from pagefile.stores.encoding import from_json, moment, record_digest, turn_digest
from pagefile.stores.sql.erasure import replace_summary
from pagefile.stores.sql.pages import put_spans
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, count, many, row, rows
from pagefile.stores.sql.rows import ENTRY_COLUMNS, checkpoint_of, exact_entry, exact_turn, keys, of_tenant
from pagefile.stores.sql.texts import ALL_TENANTS

T = TypeVar("T")

#: Columns before those of the summary in the fragment `kept`.
_OWN_COLUMNS = 14
_KINDS: tuple[audit.OrphanKind, ...] = get_args(audit.OrphanKind)


class SqlAuditor(SqlPort, audit.Auditor):
    """Every table, read by its key; how a database checks its own files is left to each backend."""

    async def size(self, tenant: str | None) -> int:
        found = await self._row("audit_size", {"tenants": tenant})
        return 0 if found is None else found[0]

    async def conversations(self, after: audit.After) -> list[audit.KeptConversation]:
        return await self._each("audit_conversations", _page_values(after), _conversation_row)

    async def conversation(self, scope: Scope) -> audit.KeptConversation | None:
        return await self._first("audit_conversation", keys(scope), _conversation_row)

    async def lost(self, tenant: str | None) -> list[Scope]:
        return await self._each("audit_lost", {"tenants": tenant}, lambda one: Scope(one[0], one[2], one[1]))

    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[audit.KeptEntry]:
        values: Values = {**keys(scope), "after_seq": after_seq, "limit": limit}

        def play() -> Play[list[audit.KeptEntry]]:
            ended = yield from rows("audit_entries", values)
            more = [] if len(ended) >= limit else (yield from rows("audit_open", values))
            return [_kept_entry(one, scope) for one in (*ended, *more)]

        return await self._player.read(play)

    async def entry(self, scope: Scope, entry_id: str) -> audit.KeptEntry | None:
        values = {**keys(scope), "id": entry_id}
        return await self._first("audit_entry", values, lambda one: _kept_entry(one, scope))

    async def pages(self, after: audit.After) -> list[audit.KeptPage]:
        return await self._each("audit_pages", _page_values(after), _kept_page)

    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, audit.Lengths]:
        values: Values = {"tenant": tenant, "uuids": list(uuids)}
        found = await self._rows("audit_lengths", values)
        return {uuid: audit.Lengths(length, purged and moment(purged)) for uuid, length, purged in found}

    async def users(self, after: audit.After) -> list[Scope]:
        return await self._each("audit_users", _page_values(after), lambda one: Scope(*one))

    async def altered_facts(self, owner: Scope) -> list[str]:
        # The digest as it was written, then the fragment `fact`.
        found = await self._rows("audit_facts", keys(owner))
        digests = [(one, _read(partial(_fact_digest, owner.tenant, one[1:]))[0]) for one in found]
        # One that cannot be read has no digest.
        return [one[1] for one, digest in digests if digest is None or digest != one[0]]

    async def orphans(self, tenant: str | None, *, limit: int) -> list[audit.Orphan]:
        def play() -> Play[list[audit.Orphan]]:
            there = yield from row("has_vectors", {})
            found: list[audit.Orphan] = []
            for kind in _KINDS:
                if kind != "vector" or (there and there[0]):
                    orphans = yield from rows(f"orphans_{kind}", {"tenants": tenant, "limit": limit})
                    found += [audit.Orphan(kind, *one) for one in orphans]
            return found

        return await self._player.read(play)

    async def recount(self, recount: audit.Recount) -> bool:
        scope, seen = recount.seen.scope, recount.seen.counters
        first, last = recount.times or (None, None)
        values: Values = {**keys(scope), "owner": recount.owner, "first": first, "last": last}
        values |= asdict(recount.counters) | {"done_tokens": recount.counters.done_tokens or 0}
        values |= {"seen_created": seen.last_created, "seen_seq": seen.last_seq}

        def play() -> Play[bool]:
            if not (yield from count("audit_recount" if recount.seen.there else "audit_remake", values)):
                return False
            yield from replace_summary(scope, recount.checkpoint, recount.covered_messages)
            return True

        return await self._player.write(play)

    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        await self._change("audit_mark", {**keys(scope), "tier": tier, "seq": seq})

    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        def play() -> Play[None]:
            if (yield from row("audit_living", {"tenant": tenant, "uuid": uuid})) is not None:
                yield from count("passages_drop", {"tenant": tenant, "uuids": [uuid]})
                yield from put_spans(tenant, uuid, spans)

        await self._player.write(play)

    async def set_bytes(self, tenant: str, uuid: str) -> None:
        await self._change("audit_bytes", {"tenant": tenant, "uuid": uuid})

    async def copy(self, tenant: str, uuid: str) -> str | None:
        found = await self._row("audit_copy", {"tenant": tenant, "uuid": uuid})
        return None if found is None else found[0]

    async def set_copy(self, tenant: str, uuid: str, text: str) -> None:
        await self._change("audit_copy_put", {"tenant": tenant, "uuid": uuid, "content": text})

    async def drop(self, orphans: Sequence[audit.Orphan]) -> int:
        return sum(
            [await self._change(f"orphan_drop_{one.kind}", asdict(one)) for one in orphans if one.derived]
        )


def _page_values(after: audit.After) -> Values:
    return {"after_tenant": after.tenant, "name": after.name, "tenants": after.only, "limit": after.limit}


def _conversation_row(found: Row) -> audit.KeptConversation:
    tenant, name, owner, *counted, last_created, done_tokens, marks = found[:_OWN_COLUMNS]
    scope, stored = Scope(tenant, owner, name), found[_OWN_COLUMNS:]
    times = {"last_created": last_created and moment(last_created), "done_tokens": done_tokens}
    summary, trouble = (None, None) if stored[0] is None else _read(partial(checkpoint_of, stored, scope))
    return audit.KeptConversation(
        scope, audit.Counters(*counted, **times), from_json(marks) or {}, summary, trouble
    )


def _kept_entry(found: Row, scope: Scope) -> audit.KeptEntry:
    """The fragment `entry`, then who wrote it, its digest and, where it is stored, the sum before it."""
    own, (writer, digest, before) = found[:ENTRY_COLUMNS], found[ENTRY_COLUMNS:]

    def read() -> tuple[Entry, bool]:
        entry = exact_entry(own, scope)
        return entry, digest is not None and isinstance(entry, Turn) and turn_digest(entry) != digest

    kept, trouble = _read(read)
    entry, altered = kept or (None, False)
    return audit.KeptEntry(own[1], own[2], own[0], entry, trouble, writer, before, altered)


def _kept_page(found: Row) -> audit.KeptPage:
    """The tenant, the key and the size of the text, the digest, then the fragment `page`."""
    tenant, blob, size, digest, uuid = found[:5]

    def read() -> tuple[Page, bool]:
        page = of_tenant(Page, tenant)(found[4:])
        return page, digest is not None and record_digest(page) != digest

    kept, trouble = _read(read)
    page, altered = kept or (None, False)
    return audit.KeptPage(tenant, uuid, page, trouble, blob, size, altered)


def _fact_digest(tenant: str, fact: Row) -> str:
    return record_digest(of_tenant(Fact, tenant)(fact))


def _read(read: Callable[[], T]) -> tuple[T | None, str | None]:
    """What is in a row, or why it cannot be read."""
    try:
        return read(), None
    except audit.UNREADABLE as error:
        return None, repr(error)


# -- rows of earlier versions, which have no digest

ROWS_AT_ONCE = 1000

#: By the kind of a row: the columns of its key in the statement `<kind>s_without_digest`, and its digest. A row is the tenant, of a
#: turn the conversation, then the record.
_DIGESTS: dict[str, tuple[dict[str, int], Callable[[Row], str | None]]] = {
    "turn": (
        {"id": 3, "conversation": 1, "tenant": 0},
        lambda row: turn_digest(exact_turn(row[2:], Scope(row[0], None, row[1]))),
    ),
    "page": ({"uuid": 1, "tenant": 0}, lambda row: record_digest(of_tenant(Page, row[0])(row[1:]))),
    "fact": ({"tenant": 0, "id": 1}, lambda row: _fact_digest(row[0], row[1:])),
}


def fill_digests() -> Play[None]:
    """Fill in the digest of every turn, page and fact that has none, in the transaction that migrates them.

    A row that cannot be read stays without one, and `verify` reports it.
    """
    for kind, (columns, digest_of) in _DIGESTS.items():
        key: Values = dict.fromkeys(columns, "")
        while True:
            behind = {**ALL_TENANTS, **key, "after_tenant": key["tenant"], "limit": ROWS_AT_ONCE}
            found = yield from rows(f"{kind}s_without_digest", behind)
            if not found:
                break
            keys = [{name: row[place] for name, place in columns.items()} for row in found]
            digests = [_read(partial(digest_of, row))[0] for row in found]
            known = zip(keys, digests, strict=True)
            yield from many(f"{kind}_digest", [{**one, "digest": digest} for one, digest in known if digest])
            key = keys[-1]
