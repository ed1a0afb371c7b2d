"""Looks after archived pages: pins, uses, equal calls, purging."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pagefile.ports import PageKeeper, PurgeRequest
from pagefile.records import Page, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import time_text, to_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, keys, page_of, part_of


class SqlitePageKeeper(PageKeeper):
    """The columns of `tool_result_archive` that change."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def page(self, scope: Scope, uuid: str) -> Page:
        return await self._readers.run(lambda connection: _reached(connection, scope, uuid))

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        values = {"tenant": scope.tenant, "uuid": uuid, "pinned": int(pinned)}

        def write(connection: Connection) -> Page:
            page = rules.check_living(_reached(connection, scope, uuid))
            connection.execute(sql("page_pin"), values)
            return replace(page, pinned=pinned)

        return await self._writer.run(write)

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        rows: list[Values] = [{**keys(scope), "uuid": uuid, "at": time_text(at)} for uuid in uuids]

        def write(connection: Connection) -> None:
            connection.executemany(sql("page_touch"), rows)

        await self._writer.run(write)

    async def pinned(self, scope: Scope) -> list[Page]:
        def read(connection: Connection) -> list[Page]:
            rows = connection.execute(sql(f"pinned_of_{part_of(scope)}"), keys(scope))
            return [page_of(row, scope.tenant) for row in rows]

        return await self._readers.run(read)

    async def tenants(self) -> list[str]:
        def read(connection: Connection) -> list[str]:
            return [str(row[0]) for row in connection.execute(sql("page_tenants"))]

        return await self._readers.run(read)

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        values = {**keys(scope), "call_hash": call_hash, "since": time_text(since)}

        def read(connection: Connection) -> Page | None:
            row: Any = connection.execute(sql("page_of_call"), values).fetchone()
            return None if row is None else page_of(row, scope.tenant)

        return await self._readers.run(read)

    async def purge(self, request: PurgeRequest) -> list[Page]:
        # Most often nothing is due: then the writer and the write-ahead log are left alone.
        if not await self._readers.run(lambda connection: _due(connection, request)):
            return []
        return await self._writer.run(lambda connection: _purge(connection, request), purge=True)

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        return await self._writer.run(lambda connection: _erase(connection, scope, uuids), purge=True)


def _erase(connection: Connection, scope: Scope, uuids: Sequence[str]) -> int:
    values = {**keys(scope), "uuids": to_json(sorted(set(uuids)))}
    found = [(str(row[0]), row[1]) for row in connection.execute(sql("pages_reached"), values)]
    rows: list[Values] = [{"tenant": scope.tenant, "uuid": uuid, "hash": blob} for uuid, blob in found]
    for statement in ("passages_drop", "page_erase", "erase_blob"):
        connection.executemany(sql(statement), rows)
    return len(found)


def _reached(connection: Connection, scope: Scope, uuid: str) -> Page:
    row: Any = connection.execute(sql("page_reached"), {**keys(scope), "uuid": uuid}).fetchone()
    if row is None:
        raise rules.no_page(uuid)
    return page_of(row, scope.tenant)


def _purge(connection: Connection, request: PurgeRequest) -> list[Page]:
    due, tenant = _due(connection, request), request.scope.tenant
    rows: list[Values] = [
        {"tenant": tenant, "uuid": page.uuid, "at": time_text(request.at), "hash": blob} for blob, page in due
    ]
    for statement in ("page_bury", "passages_drop", "erase_blob"):
        connection.executemany(sql(statement), rows)
    return [replace(page, purged=utc(request.at)) for _, page in due]


def _due(connection: Connection, request: PurgeRequest) -> list[tuple[str, Page]]:
    """The pages to purge, oldest first, each with the key of its text."""
    values = {
        **keys(request.scope),
        "uuids": to_json(sorted(request.uuids or ())),
        "before": request.before and time_text(request.before),
        "max_bytes": request.max_bytes,
    }
    rows = connection.execute(sql(f"due_of_{part_of(request.scope)}"), values)
    return [(row[0], page_of(row[1:], request.scope.tenant)) for row in rows]
