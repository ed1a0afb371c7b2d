"""The small tables beside the log: recorded windows, API keys, watermarks, terms, and the progress of erasures elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from pagefile import ports
from pagefile.errors import ConflictError
from pagefile.records import ApiKey, Scope, WindowRecord, utc
from pagefile.stores import rules
from pagefile.stores.encoding import moment, record_of
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, count, each, first, many, row
from pagefile.stores.sql.reader import check_writable, since
from pagefile.stores.sql.rows import keys, of_tenant, part_of, values_of
from pagefile.stores.sql.texts import ALL_TENANTS


class SqlCalls(SqlPort, ports.WindowLog):
    async def add(self, calls: Sequence[WindowRecord], *, keep: int, epoch: int | None = None) -> None:
        written = [values_of(call) for call in calls]
        # In a fixed order, so that two writers of the same conversations do not deadlock.
        chats = {(call.scope.tenant, call.scope.conversation): call.scope for call in calls}
        trims = [chats[key] for key in sorted(chats, key=lambda key: (key[0], key[1] or ""))]

        def play() -> Play[None]:
            yield from check_writable(epoch, [call.scope for call in calls])
            yield from many("call_put", written)
            for scope in trims:
                part = "tenant" if scope.conversation is None else "conversation"
                yield from count(f"calls_trim_{part}", {**keys(scope), "keep": max(0, keep)})

        await self._player.write(play)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[WindowRecord]:
        return await self._player.read(lambda: _calls(scope, limit, after))

    async def sizes(self, scope: Scope, *, limit: int = 100) -> Sequence[ports.CallSize]:
        values = {**keys(scope), "limit": max(0, limit)}

        def size(one: Row) -> ports.CallSize:
            call_id, user, name, at, tokens, ratio = one
            return ports.CallSize(call_id, Scope(scope.tenant, user, name), moment(at), tokens, ratio)

        return await self._each(f"call_sizes_of_{part_of(scope)}", values, size)

    async def get(self, scope: Scope, call_id: str) -> WindowRecord:
        values = {"tenant": scope.tenant, "id": call_id}
        call = await self._first("call_get", values, of_tenant(WindowRecord, scope.tenant))
        if call is None or not rules.lists(scope, rules.made_for(call)):
            raise rules.no_call(call_id)
        return call

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        return await self._each("calls_loose", {"tenants": tenant}, lambda one: Scope(*one))

    async def restore(self, calls: Sequence[WindowRecord]) -> int:
        return await self._player.write(lambda: _restore(calls))


def _restore(calls: Sequence[WindowRecord]) -> Play[int]:
    new = 0
    full: dict[Scope, bool] = {}
    for call in calls:
        place = Scope(call.scope.tenant, None, call.scope.conversation)
        if place not in full:
            full[place] = (yield from row("calls_any", keys(place))) is not None
        if not full[place]:
            new += yield from count("call_put", values_of(call))
    return new


def _calls(scope: Scope, limit: int, after: str | None) -> Play[list[WindowRecord]]:
    place: int | None = None
    if after is not None:
        found = yield from row("call_place", {"tenant": scope.tenant, "after": after})
        if found is None or not rules.lists(scope, Scope(scope.tenant, found[1], found[2])):
            raise rules.nothing_behind(after)
        place = found[0]
    values = {**keys(scope), "place": place, "limit": max(0, limit)}
    return (yield from each(f"calls_of_{part_of(scope)}", values, of_tenant(WindowRecord, scope.tenant)))


class SqlKeys(SqlPort, ports.KeyStore):
    async def add(self, key: ApiKey) -> None:
        # A retry of an insert that took effect would find the key taken.
        await self._player.write(lambda: _add(key), again=False)

    async def get(self, key_id: str) -> ApiKey | None:
        return await self._first("key_get", {**ALL_TENANTS, "id": key_id}, _key)

    async def list(self) -> list[ApiKey]:
        return await self._each("keys_all", ALL_TENANTS, _key)

    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        def play() -> Play[ApiKey]:
            old = rules.rotated((yield from _existing("key_locked", key_id)), successor, until)
            yield from _add(successor)
            yield from count("key_expire", {**ALL_TENANTS, "id": key_id, "expires": old.expires})
            return old

        return await self._player.write(play, again=False)

    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        values = {**ALL_TENANTS, "id": key_id, "at": utc(at)}

        def play() -> Play[ApiKey]:
            yield from count("key_revoke", values)
            return (yield from _existing("key_get", key_id))

        return await self._player.write(play)

    async def used(self, key_id: str, at: datetime) -> None:
        await self._change("key_used", {**ALL_TENANTS, "id": key_id, "at": utc(at)})


def _existing(statement: str, key_id: str) -> Play[ApiKey]:
    key = yield from first(statement, {**ALL_TENANTS, "id": key_id}, _key)
    if key is None:
        raise rules.no_key(key_id)
    return key


def _add(key: ApiKey) -> Play[None]:
    if not (yield from count("key_add", values_of(key))):
        raise ConflictError(f"The key {key.id!r} already exists: make one with a new id.")


def _key(found: Row) -> ApiKey:
    key_id, name, tenant, user, *rest = found
    return record_of(ApiKey, (key_id, name, Scope(tenant, user), *rest))


class SqlWatermarks(SqlPort, ports.Watermarks):
    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        # For a user the index on users is best; otherwise a scan of the tier's watermarks is needed anyway.
        statement = "watermarks_known" if scope.user is None else "watermarks_known_of_user"
        found = await self._rows(statement, {**keys(scope), "tier": tier})
        return {one[0]: one[1] for one in found}

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        values = {**keys(scope), "tier": tier, "seq": seq}

        def play() -> Play[None]:
            yield from check_writable(epoch, [scope])
            yield from count("watermark_advance", values)

        await self._player.write(play)

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[ports.Behind]:
        values: Values = {"tier": tier, "tenants": tenant, "limit": max(0, limit)}
        return await self._each(
            "watermarks_behind", values, lambda one: ports.Behind(Scope(*one[:3]), *one[3:])
        )

    async def tiers(self) -> list[str]:
        return await self._each("watermarks_tiers", ALL_TENANTS, lambda one: one[0])

    async def drop(self, tier: str) -> int:
        return await self._change("watermarks_drop", {**ALL_TENANTS, "tier": tier})


class SqlTerms(SqlPort, ports.TermStore):
    #: As in `SqlReader`.
    together = 1

    async def since(self, request: ports.SinceRequest, analyzer: str) -> list[ports.TurnTerms]:
        statements = "terms_after", "terms_after_each"
        return await self._player.read(
            lambda: since(request, statements, _terms, self.together, analyzer=analyzer)
        )

    async def write(
        self, scope: Scope, terms: Sequence[ports.TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        # For a turn named twice, the last terms count: a statement may not write a row twice.
        newest = {(one.conversation, one.seq): one for one in terms}.values()
        made = {"tenant": scope.tenant, "analyzer": analyzer}
        written: list[Values] = [
            {**made, **asdict(one), "said": one.said or "", "answered": one.answered or ""} for one in newest
        ]
        scopes = [scope, *(replace(scope, conversation=one.conversation) for one in newest)]

        def play() -> Play[None]:
            yield from check_writable(epoch, scopes)
            yield from many("terms_write", written)

        await self._player.write(play)


def _terms(found: Row, scope: Scope) -> ports.TurnTerms:
    seq, turn_id, at, said, answered = found
    return ports.TurnTerms(scope.conversation or "", seq, turn_id, moment(at), said, answered)


class SqlErasures(SqlPort, ports.Erasures):
    async def begin(self, place: str) -> None:
        # Called whenever an index is prepared, also in a read-only database.
        if not await self._rows("erasure_mark", {"name": place}):
            await self._change("erasure_mark_begin", {"name": place})

    async def owed(self, place: str) -> ports.Owed:
        found = await self._rows("erasures_owed", {"name": place})
        return ports.Owed(found[0][0] if found else 0, {scope: epoch for _, scope, epoch in found if scope})

    async def done(self, place: str, owed: ports.Owed) -> None:
        await self._change("erasure_mark_done", {"name": place, "epoch": owed.since, "through": owed.through})

    async def redo(self, place: str, epoch: int) -> None:
        await self._change("erasure_mark_redo", {"name": place, "epoch": epoch})

    async def places(self) -> Mapping[str, int]:
        return {one[0]: one[1] for one in await self._rows("erasure_marks", {})}
