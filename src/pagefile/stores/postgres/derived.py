"""How far each tier has read, and the terms of turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pagefile.ports import Behind, SinceRequest, TermStore, TurnTerms, Watermarks
from pagefile.records import Scope, utc
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.queries import ALL_TENANTS
from pagefile.stores.postgres.rows import keys


class PostgresWatermarks(Watermarks):
    """Rows of `watermarks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        rows = await self._database.rows("watermarks_known", {**keys(scope), "tier": tier})
        return {row[0]: row[1] for row in rows}

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        values: Values = {**keys(scope), "tier": tier, "seq": seq}

        async def write(connection: Connection) -> None:
            await check_writable(connection, epoch, [scope])
            await connection.count("watermark_advance", values)

        await self._database.write(write)

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        values: Values = {"tier": tier, "tenants": tenant, "limit": max(0, limit)}
        rows = await self._database.rows("watermarks_behind", values)
        return [Behind(Scope(of, user, name), seq, last_seq) for of, user, name, seq, last_seq in rows]

    async def tiers(self) -> list[str]:
        return [row[0] for row in await self._database.rows("watermarks_tiers", ALL_TENANTS)]

    async def drop(self, tier: str) -> int:
        return await self._database.write(
            lambda connection: connection.count("watermarks_drop", {**ALL_TENANTS, "tier": tier})
        )


class PostgresTerms(TermStore):
    """Rows of `turn_terms`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        return await self._database.read(lambda connection: _since(connection, request, analyzer))

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        # Of a turn named twice, the last terms count: a statement may not write a row twice.
        newest = {(one.conversation, one.seq): one for one in terms}.values()
        values: Values = {
            "tenant": scope.tenant,
            "analyzer": analyzer,
            "names": [one.conversation for one in newest],
            "seqs": [one.seq for one in newest],
            "said_all": [one.said or "" for one in newest],
            "answered_all": [one.answered or "" for one in newest],
        }
        scopes = [scope, *(replace(scope, conversation=one.conversation) for one in newest)]

        async def write(connection: Connection) -> None:
            await check_writable(connection, epoch, scopes)
            await connection.count("terms_write", values)

        await self._database.write(write)


async def _since(connection: Connection, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
    known: Values = {"names": list(request.known), "seqs": list(request.known.values())}
    found: list[TurnTerms] = []
    for name, owner, after in await connection.rows("conversations_seen", {**keys(request.scope), **known}):
        if len(found) >= request.limit:
            break
        values = {
            **keys(Scope(request.scope.tenant, owner, name)),
            "after_seq": after,
            "limit": request.limit - len(found),
            "analyzer": analyzer,
        }
        found += [
            TurnTerms(name, seq, turn_id, utc(at), said, answered)
            for seq, turn_id, at, said, answered in await connection.rows("terms_after", values)
        ]
    return found
