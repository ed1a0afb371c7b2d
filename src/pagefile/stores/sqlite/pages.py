"""Archived tool results: the text is compressed and stored once for equal results."""

from typing import Any

from pagefile.ports import PageDraft, PageStore
from pagefile.records import Page, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import stored_page, time_text
from pagefile.stores.packing import Blob, packed, unpacked
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import check_writable
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.media import put_blob
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, keys, page_of, page_values, part_of


class SqlitePages(PageStore):
    """Pages in `tool_result_archive`, their texts in `blobs`, their passages in `archive_passage`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, draft: PageDraft) -> Page:
        # Compressing takes a while: neither the event loop nor the writer should wait for it.
        blob = await self._readers.run(lambda _: packed(draft.text))
        page = stored_page(draft.page, len(blob.data))
        values, passages = page_values(page), _passage_values(page, draft.spans)

        def write(connection: Connection) -> Page:
            check_writable(connection, draft.epoch, draft.fenced)
            stored = _stored(connection, page, blob)
            if stored is not None:
                return stored
            living = page.purged is None
            if living:
                put_blob(connection, blob)
            connection.execute(sql("page_put"), {**values, "blob": blob.hash if living else None})
            connection.executemany(sql("passage_put"), passages)
            return page

        return await self._writer.run(write)

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        def read(connection: Connection) -> tuple[Page, str]:
            row: Any = connection.execute(sql("page_load"), {**keys(scope), "uuid": uuid}).fetchone()
            if row is None:
                raise rules.no_page(uuid)
            return rules.check_living(page_of(row[2:], scope.tenant)), unpacked(row[0], row[1])

        return await self._readers.run(read)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        return await self._readers.run(lambda connection: _pages(connection, scope, limit, after))


def _stored(connection: Connection, page: Page, blob: Blob) -> Page | None:
    """The page that is there already, unless it is a tombstone whose text has come back."""
    row: Any = connection.execute(sql("page_stored"), {**keys(page.scope), "uuid": page.uuid}).fetchone()
    if row is None:
        return None
    stored = page_of(row[1:], page.scope.tenant)
    rules.check_same_page(stored, page, same_text=row[0] == blob.hash)
    return None if stored.purged is not None and page.purged is None else stored


def _passage_values(page: Page, spans: tuple[tuple[int, int], ...]) -> list[Values]:
    if page.purged is not None:
        return []
    key = {"tenant": page.scope.tenant, "uuid": page.uuid}
    return [
        {**key, "number": number, "start": start, "end": end} for number, (start, end) in enumerate(spans)
    ]


def _pages(connection: Connection, scope: Scope, limit: int, after: str | None) -> list[Page]:
    created: str | None = None
    if after is not None:
        row: Any = connection.execute(sql("page_stored"), {**keys(scope), "uuid": after}).fetchone()
        last = None if row is None else page_of(row[1:], scope.tenant)
        if last is None or not rules.lists_page(scope, last.scope):
            raise rules.nothing_behind(after)
        created = time_text(last.created)
    values = {**keys(scope), "after": after, "created": created, "limit": max(0, limit)}
    rows = connection.execute(sql(f"pages_of_{part_of(scope)}"), values)
    return [page_of(row, scope.tenant) for row in rows]
