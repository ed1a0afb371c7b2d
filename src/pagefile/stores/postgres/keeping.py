"""Looks after archived pages: pins, uses, equal calls, purging."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pagefile.ports import PageKeeper, PurgeRequest
from pagefile.records import Page, Scope, utc
from pagefile.stores import rules
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.erasing import erase_blobs
from pagefile.stores.postgres.queries import ALL_TENANTS
from pagefile.stores.postgres.rows import keys, page_of, part_of


class PostgresPageKeeper(PageKeeper):
    """The columns of `tool_result_archive` that change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, scope: Scope, uuid: str) -> Page:
        row = await self._database.row("page_reached", {**keys(scope), "uuid": uuid})
        if row is None:
            raise rules.no_page(uuid)
        return page_of(row, scope.tenant)

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        row = await self._database.row("page_pin", {**keys(scope), "uuid": uuid, "pinned": pinned})
        if row is None:
            rules.check_living(await self.page(scope, uuid))
            raise rules.no_page(uuid)
        return page_of(row, scope.tenant)

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        values: Values = {**keys(scope), "uuids": list(uuids), "at": utc(at)}
        # Counted twice would be wrong: after a lost connection nobody knows whether it was.
        await self._database.write(lambda connection: connection.count("page_touch", values), again=False)

    async def pinned(self, scope: Scope) -> list[Page]:
        rows = await self._database.rows(f"pinned_of_{part_of(scope)}", keys(scope))
        return [page_of(row, scope.tenant) for row in rows]

    async def tenants(self) -> list[str]:
        return [str(row[0]) for row in await self._database.rows("page_tenants", ALL_TENANTS)]

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        values = {**keys(scope), "call_hash": call_hash, "since": utc(since)}
        row = await self._database.row("page_of_call", values)
        return None if row is None else page_of(row, scope.tenant)

    async def purge(self, request: PurgeRequest) -> list[Page]:
        # Most often nothing is due: then nothing is locked.
        if not await self._database.read(lambda connection: _due(connection, request)):
            return []
        return await self._database.write(lambda connection: _purge(connection, request), again=False)

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        return await self._database.write(lambda connection: _erase(connection, scope, uuids))


async def _erase(connection: Connection, scope: Scope, uuids: Sequence[str]) -> int:
    found = await connection.rows("pages_reached", {**keys(scope), "uuids": sorted(set(uuids))})
    values: Values = {"tenant": scope.tenant, "uuids": [row[0] for row in found]}
    await connection.count("passages_drop", values)
    await connection.count("pages_erase", values)
    await erase_blobs(connection, (row[1] for row in found if row[1]))
    return len(found)


async def _purge(connection: Connection, request: PurgeRequest) -> list[Page]:
    due = await _due(connection, request)
    values: Values = {"tenant": request.scope.tenant, "at": utc(request.at)}
    named = {"uuids": [page.uuid for _, page in due]}
    buried = {row[0] for row in await connection.rows("pages_bury", {**values, **named})}
    gone = [(blob, page) for blob, page in due if page.uuid in buried]
    await connection.count("passages_drop", {**values, "uuids": [page.uuid for _, page in gone]})
    await erase_blobs(connection, (blob for blob, _ in gone))
    return [replace(page, purged=utc(request.at)) for _, page in gone]


async def _due(connection: Connection, request: PurgeRequest) -> list[tuple[str, Page]]:
    """The pages to purge, oldest first, each with the key of its text."""
    values: Values = {
        **keys(request.scope),
        "uuids": sorted(request.uuids or ()),
        "before": request.before and utc(request.before),
        "max_bytes": request.max_bytes,
    }
    rows = await connection.rows(f"due_of_{part_of(request.scope)}", values)
    return [(row[0], page_of(row[1:], request.scope.tenant)) for row in rows]
