"""How far each tier has read, and the terms of turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagefile.ports import Behind, SinceRequest, TermStore, TurnTerms, Watermarks
from pagefile.records import Scope
from pagefile.stores.encoding import text_time
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import check_writable
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.reader import seen
from pagefile.stores.sqlite.rows import Values, keys


class SqliteWatermarks(Watermarks):
    """Rows of `watermarks`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        # Of a user, the index leads from the user; else a scan of the tier's marks is what is asked for.
        statement = "watermarks_known" if scope.user is None else "watermarks_known_of_user"
        values = {**keys(scope), "tier": tier}

        def read(connection: Connection) -> dict[str, int]:
            rows: Any = connection.execute(sql(statement), values)
            return dict(rows)

        return await self._readers.run(read)

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        values = {**keys(scope), "tier": tier, "seq": seq}

        def write(connection: Connection) -> None:
            check_writable(connection, epoch, [scope])
            connection.execute(sql("watermark_advance"), values)

        await self._writer.run(write)

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        values = {"tier": tier, "tenant": tenant, "limit": max(0, limit)}

        def read(connection: Connection) -> list[Behind]:
            rows: Any = connection.execute(sql("watermarks_behind"), values)
            return [Behind(Scope(of, user, name), seq, last_seq) for of, user, name, seq, last_seq in rows]

        return await self._readers.run(read)

    async def tiers(self) -> list[str]:
        def read(connection: Connection) -> list[str]:
            rows: Any = connection.execute(sql("watermarks_tiers"))
            return [tier for (tier,) in rows]

        return await self._readers.run(read)

    async def drop(self, tier: str) -> int:
        def write(connection: Connection) -> int:
            connection.execute(sql("watermarks_drop"), {"tier": tier})
            return connection.changes()

        return await self._writer.run(write)


class SqliteTerms(TermStore):
    """Rows of `turn_terms`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        return await self._readers.run(lambda connection: _since(connection, request, analyzer))

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        rows: list[Values] = [
            {
                "tenant": scope.tenant,
                "conversation": one.conversation,
                "seq": one.seq,
                "analyzer": analyzer,
                "said": one.said or "",
                "answered": one.answered or "",
            }
            for one in terms
        ]

        scopes = [scope, *(replace(scope, conversation=one.conversation) for one in terms)]

        def write(connection: Connection) -> None:
            check_writable(connection, epoch, scopes)
            connection.executemany(sql("terms_write"), rows)

        await self._writer.run(write)


def _since(connection: Connection, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
    found: list[TurnTerms] = []
    for scope, last_seq in seen(connection, request.scope):
        name = scope.conversation or ""
        known = request.known.get(name, 0)
        if len(found) >= request.limit:
            break
        if last_seq > known:
            values = {
                **keys(scope),
                "after": known,
                "limit": request.limit - len(found),
                "analyzer": analyzer,
            }
            rows: Any = connection.execute(sql("terms_after"), values)
            found += [
                TurnTerms(name, seq, turn_id, text_time(at), said, answered)
                for seq, turn_id, at, said, answered in rows
            ]
    return found
