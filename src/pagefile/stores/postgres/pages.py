"""Archived tool results: the text is compressed and stored once for equal results."""

from typing import Any

import anyio.to_thread

from pagefile.ports import PageDraft, PageStore
from pagefile.records import Page, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import stored_page
from pagefile.stores.packing import Blob, packed, unpacked
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.rows import keys, page_of, page_values, part_of

#: Texts up to here are packed and unpacked at once; a thread would take longer.
_SMALL_CHARS = 20_000


class PostgresPages(PageStore):
    """Pages in `tool_result_archive`, their texts in `blobs`, their passages in `archive_passage`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, draft: PageDraft) -> Page:
        self._database.check_open()
        blob = await _packed(draft.text)
        page = stored_page(draft.page, len(blob.data))
        return await self._database.write(lambda connection: _put(connection, page, blob, draft))

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        row: Any = await self._database.row("page_load", {**keys(scope), "uuid": uuid})
        if row is None:
            raise rules.no_page(uuid)
        page = rules.check_living(page_of(row[2:], scope.tenant))
        if page.length <= _SMALL_CHARS:
            return page, unpacked(row[0], row[1])
        return page, await anyio.to_thread.run_sync(unpacked, row[0], row[1])

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        return await self._database.read(lambda connection: _pages(connection, scope, limit, after))


async def _packed(text: str) -> Blob:
    return packed(text) if len(text) <= _SMALL_CHARS else await anyio.to_thread.run_sync(packed, text)


async def _put(connection: Connection, page: Page, blob: Blob, draft: PageDraft) -> Page:
    await check_writable(connection, draft.epoch, draft.fenced)
    stored = await _stored(connection, page, blob)
    if stored is not None:
        return stored
    living = page.purged is None
    if living:
        await connection.count("blob_put", {"hash": blob.hash, "codec": blob.codec, "data": blob.data})
    await connection.count("page_put", {**page_values(page), "blob": blob.hash if living else None})
    if living and draft.spans:
        starts, ends = zip(*draft.spans, strict=True)
        spans: Values = {"tenant": page.scope.tenant, "uuid": page.uuid, "starts": starts, "ends": ends}
        await connection.count("passages_put", spans)
    return page


async def _stored(connection: Connection, page: Page, blob: Blob) -> Page | None:
    """The page that is there already, unless it is a tombstone whose text has come back."""
    row = await connection.row("page_locked", {"tenant": page.scope.tenant, "uuid": page.uuid})
    if row is None:
        return None
    stored = page_of(row[1:], page.scope.tenant)
    rules.check_same_page(stored, page, same_text=row[0] == blob.hash)
    return None if stored.purged is not None and page.purged is None else stored


async def _pages(connection: Connection, scope: Scope, limit: int, after: str | None) -> list[Page]:
    created = None
    if after is not None:
        row = await connection.row("page_stored", {"tenant": scope.tenant, "uuid": after})
        last = None if row is None else page_of(row[1:], scope.tenant)
        if last is None or not rules.lists_page(scope, last.scope):
            raise rules.nothing_behind(after)
        created = last.created
    values = {**keys(scope), "after": after, "created": created, "limit": max(0, limit)}
    rows = await connection.rows(f"pages_of_{part_of(scope)}", values)
    return [page_of(row, scope.tenant) for row in rows]
