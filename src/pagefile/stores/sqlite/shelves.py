"""Calls and sessions."""

from collections.abc import Sequence
from typing import Any

from pagefile.ports import CallLog, Clock, SessionStore
from pagefile.records import Call, JsonObject, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, own_json, text_time, time_text, to_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import check_writable
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values, keys, part_of, touched
from pagefile.stores.sqlite.writing import check_owner


class SqliteCalls(CallLog):
    """Calls in `context_calls`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, calls: Sequence[Call], *, keep: int, epoch: int | None = None) -> None:
        rows = [_call_values(call) for call in calls]
        chats = {(call.scope.tenant, call.scope.conversation) for call in calls}

        def write(connection: Connection) -> None:
            check_writable(connection, epoch, [call.scope for call in calls])
            connection.executemany(sql("call_put"), rows)
            for tenant, conversation in chats:
                values = {"tenant": tenant, "conversation": conversation, "keep": max(0, keep)}
                connection.execute(sql("calls_trim"), values)

        await self._writer.run(write)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        return await self._readers.run(lambda connection: _calls(connection, scope, limit, after))

    async def get(self, scope: Scope, call_id: str) -> Call:
        return await self._readers.run(lambda connection: _found(connection, scope, call_id))

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        def read(connection: Connection) -> Sequence[Scope]:
            rows: Any = connection.execute(sql("calls_loose"), {"tenant": tenant})
            return [Scope(*row) for row in rows]

        return await self._readers.run(read)

    async def restore(self, calls: Sequence[Call]) -> int:
        def write(connection: Connection) -> int:
            chats = {(call.scope.tenant, call.scope.conversation) for call in calls}
            full = {chat for chat in chats if _has_calls(connection, *chat)}
            new = 0
            for call in calls:
                if (call.scope.tenant, call.scope.conversation) not in full:
                    connection.execute(sql("call_put"), _call_values(call))
                    new += connection.changes()
            return new

        return await self._writer.run(write)


class SqliteSessions(SessionStore):
    """Session values in `sessions`."""

    def __init__(self, writer: Writer, readers: Readers, clock: Clock) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock

    async def get(self, scope: Scope) -> JsonObject | None:
        rules.conversation_of(scope)

        def read(connection: Connection) -> JsonObject | None:
            check_owner(connection, scope)
            return from_json(connection.execute(sql("session_get"), keys(scope)).get)

        return await self._readers.run(read)

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        text = to_json(value)

        def write(connection: Connection) -> None:
            check_writable(connection, epoch, [scope])
            check_owner(connection, scope)
            now = time_text(utc(self._clock.now()))
            connection.execute(sql("conversation_touch"), touched(scope, now))
            connection.execute(sql("session_put"), {**keys(scope), "value": text})

        await self._writer.run(write)


def _has_calls(connection: Connection, tenant: str, conversation: str | None) -> bool:
    values = {"tenant": tenant, "conversation": conversation}
    return connection.execute(sql("calls_any"), values).get is not None


def _call_values(call: Call) -> Values:
    return {
        **keys(call.scope),
        "id": call.id,
        "at": time_text(call.at),
        "turn": call.turn_id,
        "query": call.query,
        "options": own_json(call.options),
        "tokens": call.tokens,
        "ratio": float(call.ratio),
        "mode": call.mode,
        "prefix_hash": call.prefix_hash,
        "receipt": own_json(call.receipt),
    }


def _calls(connection: Connection, scope: Scope, limit: int, after: str | None) -> list[Call]:
    place: int | None = None
    if after is not None:
        row: Any = connection.execute(sql("call_place"), {"tenant": scope.tenant, "after": after}).fetchone()
        if row is None or not rules.lists(scope, Scope(scope.tenant, row[1], row[2])):
            raise rules.nothing_behind(after)
        place = row[0]
    values = {**keys(scope), "place": place, "limit": max(0, limit)}
    return [_call(row, scope.tenant) for row in connection.execute(sql(f"calls_of_{part_of(scope)}"), values)]


def _found(connection: Connection, scope: Scope, call_id: str) -> Call:
    row: Any = connection.execute(sql("call_get"), {"tenant": scope.tenant, "id": call_id}).fetchone()
    call = None if row is None else _call(row, scope.tenant)
    if call is None or not rules.lists(scope, rules.made_for(call)):
        raise rules.no_call(call_id)
    return call


def _call(row: Row, tenant: str) -> Call:
    call_id, user, conversation, at, turn_id, query, options, tokens, ratio, mode, prefix_hash, receipt = row
    return Call(
        id=call_id,
        scope=Scope(tenant, user, conversation),
        at=text_time(at),
        turn_id=turn_id,
        query=query,
        options=from_json(options),
        tokens=tokens,
        ratio=ratio,
        mode=mode,
        prefix_hash=prefix_hash,
        receipt=from_json(receipt),
    )
