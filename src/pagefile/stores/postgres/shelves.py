"""Calls."""

from collections.abc import Sequence

from pagefile.ports import CallLog
from pagefile.records import Call, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, own_json
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.rows import keys, part_of


class PostgresCalls(CallLog):
    """Calls in `context_calls`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, calls: Sequence[Call], *, keep: int, epoch: int | None = None) -> None:
        rows = [_call_values(call) for call in calls]
        # In one order, so that two who write the same conversations do not wait for each other in a circle.
        chats = {(call.scope.tenant, call.scope.conversation): call.scope for call in calls}
        trims = [chats[key] for key in sorted(chats, key=lambda key: (key[0], key[1] or ""))]

        async def write(connection: Connection) -> None:
            await check_writable(connection, epoch, [call.scope for call in calls])
            await connection.many("call_put", rows)
            for scope in trims:
                part = "tenant" if scope.conversation is None else "conversation"
                await connection.count(f"calls_trim_{part}", {**keys(scope), "keep": max(0, keep)})

        await self._database.write(write)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        return await self._database.read(lambda connection: _calls(connection, scope, limit, after))

    async def get(self, scope: Scope, call_id: str) -> Call:
        row = await self._database.row("call_get", {"tenant": scope.tenant, "id": call_id})
        call = None if row is None else _call(row, scope.tenant)
        if call is None or not rules.lists(scope, rules.made_for(call)):
            raise rules.no_call(call_id)
        return call

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        rows = await self._database.rows("calls_loose", {"tenants": tenant})
        return [Scope(*row) for row in rows]

    async def restore(self, calls: Sequence[Call]) -> int:
        return await self._database.write(lambda connection: _restore(connection, calls))


async def _restore(connection: Connection, calls: Sequence[Call]) -> int:
    new = 0
    full: dict[Scope, bool] = {}
    for call in calls:
        place = Scope(call.scope.tenant, None, call.scope.conversation)
        if place not in full:
            full[place] = await connection.row("calls_any", keys(place)) is not None
        if not full[place]:
            new += await connection.count("call_put", _call_values(call))
    return new


def _call_values(call: Call) -> Values:
    return {
        **keys(call.scope),
        "id": call.id,
        "at": utc(call.at),
        "turn": call.turn_id,
        "query": call.query,
        "options": own_json(call.options),
        "tokens": call.tokens,
        "ratio": float(call.ratio),
        "mode": call.mode,
        "prefix_hash": call.prefix_hash,
        "receipt": own_json(call.receipt),
    }


async def _calls(connection: Connection, scope: Scope, limit: int, after: str | None) -> list[Call]:
    place: int | None = None
    if after is not None:
        row = await connection.row("call_place", {"tenant": scope.tenant, "after": after})
        if row is None or not rules.lists(scope, Scope(scope.tenant, row[1], row[2])):
            raise rules.nothing_behind(after)
        place = row[0]
    values = {**keys(scope), "place": place, "limit": max(0, limit)}
    rows = await connection.rows(f"calls_of_{part_of(scope)}", values)
    return [_call(row, scope.tenant) for row in rows]


def _call(row: Row, tenant: str) -> Call:
    call_id, user, conversation, at, turn_id, query, options, tokens, ratio, mode, prefix_hash, receipt = row
    return Call(
        id=call_id,
        scope=Scope(tenant, user, conversation),
        at=at,
        turn_id=turn_id,
        query=query,
        options=from_json(options),
        tokens=tokens,
        ratio=ratio,
        mode=mode,
        prefix_hash=prefix_hash,
        receipt=from_json(receipt),
    )
