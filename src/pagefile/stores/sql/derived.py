"""How far each tier has read, and the terms of turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pagefile.ports import Behind, SinceRequest, TermStore, TurnTerms, Watermarks
from pagefile.records import Scope
from pagefile.stores.sql.epochs import check_writable
from pagefile.stores.sql.parameters import ALL_TENANTS
from pagefile.stores.sql.plays import Play, Player, Row, Values, count, each, many, rows
from pagefile.stores.sql.reader import since
from pagefile.stores.sql.rows import keys, moment


class SqlWatermarks(Watermarks):
    """Rows of `watermarks`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        # Of a user, the index leads from the user; else a scan of the tier's marks is what is asked for.
        statement = "watermarks_known" if scope.user is None else "watermarks_known_of_user"
        values = {**keys(scope), "tier": tier}
        return {one[0]: one[1] for one in await self._player.read(lambda: rows(statement, values))}

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        values = {**keys(scope), "tier": tier, "seq": seq}

        def play() -> Play[None]:
            yield from check_writable(epoch, [scope])
            yield from count("watermark_advance", values)

        await self._player.write(play)

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        values: Values = {"tier": tier, "tenants": tenant, "limit": max(0, limit)}
        return await self._player.read(
            lambda: each("watermarks_behind", values, lambda one: Behind(Scope(*one[:3]), *one[3:]))
        )

    async def tiers(self) -> list[str]:
        return await self._player.read(lambda: each("watermarks_tiers", ALL_TENANTS, lambda one: one[0]))

    async def drop(self, tier: str) -> int:
        return await self._player.write(lambda: count("watermarks_drop", {**ALL_TENANTS, "tier": tier}))


class SqlTerms(TermStore):
    """Rows of `turn_terms`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        return await self._player.read(lambda: since(request, "terms_after", _terms, analyzer=analyzer))

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        # Of a turn named twice, the last terms count: a statement may not write a row twice.
        newest = {(one.conversation, one.seq): one for one in terms}.values()
        written: list[Values] = [
            {
                "tenant": scope.tenant,
                "conversation": one.conversation,
                "seq": one.seq,
                "analyzer": analyzer,
                "said": one.said or "",
                "answered": one.answered or "",
            }
            for one in newest
        ]
        scopes = [scope, *(replace(scope, conversation=one.conversation) for one in newest)]

        def play() -> Play[None]:
            yield from check_writable(epoch, scopes)
            yield from many("terms_write", written)

        await self._player.write(play)


def _terms(found: Row, scope: Scope) -> TurnTerms:
    seq, turn_id, at, said, answered = found
    return TurnTerms(scope.conversation or "", seq, turn_id, moment(at), said, answered)
