"""Windows that were handed out."""

from collections.abc import Sequence

from pagefile.ports import CallLog
from pagefile.records import Call, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, own_json
from pagefile.stores.sql.epochs import check_writable
from pagefile.stores.sql.plays import Play, Player, Row, Values, count, each, first, many, row
from pagefile.stores.sql.rows import keys, moment, part_of


class SqlCalls(CallLog):
    """Calls in `context_calls`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def add(self, calls: Sequence[Call], *, keep: int, epoch: int | None = None) -> None:
        written = [_call_values(call) for call in calls]
        # In one order, so that two who write the same conversations do not wait for each other in a circle.
        chats = {(call.scope.tenant, call.scope.conversation): call.scope for call in calls}
        trims = [chats[key] for key in sorted(chats, key=lambda key: (key[0], key[1] or ""))]

        def play() -> Play[None]:
            yield from check_writable(epoch, [call.scope for call in calls])
            yield from many("call_put", written)
            for scope in trims:
                part = "tenant" if scope.conversation is None else "conversation"
                yield from count(f"calls_trim_{part}", {**keys(scope), "keep": max(0, keep)})

        await self._player.write(play)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        return await self._player.read(lambda: _calls(scope, limit, after))

    async def get(self, scope: Scope, call_id: str) -> Call:
        values = {"tenant": scope.tenant, "id": call_id}
        call = await self._player.read(
            lambda: first("call_get", values, lambda one: _call(one, scope.tenant))
        )
        if call is None or not rules.lists(scope, rules.made_for(call)):
            raise rules.no_call(call_id)
        return call

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        values = {"tenants": tenant}
        return await self._player.read(lambda: each("calls_loose", values, lambda one: Scope(*one)))

    async def restore(self, calls: Sequence[Call]) -> int:
        return await self._player.write(lambda: _restore(calls))


def _restore(calls: Sequence[Call]) -> Play[int]:
    new = 0
    full: dict[Scope, bool] = {}
    for call in calls:
        place = Scope(call.scope.tenant, None, call.scope.conversation)
        if place not in full:
            full[place] = (yield from row("calls_any", keys(place))) is not None
        if not full[place]:
            new += yield from count("call_put", _call_values(call))
    return new


def _calls(scope: Scope, limit: int, after: str | None) -> Play[list[Call]]:
    place: int | None = None
    if after is not None:
        found = yield from row("call_place", {"tenant": scope.tenant, "after": after})
        if found is None or not rules.lists(scope, Scope(scope.tenant, found[1], found[2])):
            raise rules.nothing_behind(after)
        place = found[0]
    values = {**keys(scope), "place": place, "limit": max(0, limit)}
    return (yield from each(f"calls_of_{part_of(scope)}", values, lambda one: _call(one, scope.tenant)))


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


def _call(found: Row, tenant: str) -> Call:
    call_id, user, conversation, at, turn_id, query, options, tokens, ratio, mode, prefix_hash, receipt = (
        found
    )
    return Call(
        id=call_id,
        scope=Scope(tenant, user, conversation),
        at=moment(at),
        turn_id=turn_id,
        query=query,
        options=from_json(options),
        tokens=tokens,
        ratio=ratio,
        mode=mode,
        prefix_hash=prefix_hash,
        receipt=from_json(receipt),
    )
