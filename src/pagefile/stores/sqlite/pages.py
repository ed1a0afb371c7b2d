"""Archived tool results: the text is compressed and stored once for equal results."""

import hashlib
import zlib
from dataclasses import dataclass, replace
from typing import Any

from pagefile.ports import PageDraft, PageStore
from pagefile.records import Page, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, plain, text_time, time_text, to_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values, keys

_ZLIB_LEVEL = 6


@dataclass(frozen=True, slots=True)
class _Blob:
    hash: str
    codec: str
    data: bytes


class SqlitePages(PageStore):
    """Pages in `tool_result_archive`, their texts in `blobs`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, draft: PageDraft) -> Page:
        page = replace(draft.page, input=plain(draft.page.input), created=utc(draft.page.created))
        # Compressing takes a while: neither the event loop nor the writer should wait for it.
        blob = await self._readers.run(lambda _: _packed(draft.text))
        return await self._writer.run(lambda connection: _put(connection, page, blob))

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        def read(connection: Connection) -> tuple[Page, str]:
            row: Any = connection.execute(sql("page_load"), {**keys(scope), "uuid": uuid}).fetchone()
            if row is None:
                raise rules.no_page(uuid)
            return _page(row[2:], scope.tenant), _unpacked(row[0], row[1])

        return await self._readers.run(read)

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        return await self._readers.run(lambda connection: _pages(connection, scope, limit, after))


def _packed(text: str) -> _Blob:
    raw = text.encode()
    small = zlib.compress(raw, _ZLIB_LEVEL)
    key = hashlib.sha256(raw).hexdigest()
    return _Blob(key, "zlib", small) if len(small) < len(raw) else _Blob(key, "raw", raw)


def _unpacked(codec: str, data: bytes) -> str:
    return (zlib.decompress(data) if codec == "zlib" else data).decode()


def _put(connection: Connection, page: Page, blob: _Blob) -> Page:
    connection.execute(sql("blob_put"), {"hash": blob.hash, "codec": blob.codec, "data": blob.data})
    connection.execute(sql("page_put"), {**_page_values(page), "blob": blob.hash})
    if connection.changes():
        return page
    row: Any = connection.execute(sql("page_stored"), {**keys(page.scope), "uuid": page.uuid}).fetchone()
    stored = _page(row[1:], page.scope.tenant)
    if row[0] != blob.hash or stored.scope.user != page.scope.user:
        raise rules.page_taken(page.uuid)
    return stored


def _page_values(page: Page) -> Values:
    return {
        **keys(page.scope),
        "uuid": page.uuid,
        "tool": page.tool,
        "input": to_json(page.input),
        "query_summary": page.query_summary,
        "result_summary": page.result_summary,
        "length": page.length,
        "sources": to_json(page.sources),
        "created": time_text(page.created),
        "tokens": page.tokens,
        "counter": page.counter,
        "content_hash": page.content_hash,
    }


def _page(row: Row, tenant: str) -> Page:
    (
        uuid,
        user,
        conversation,
        tool,
        given,
        query_summary,
        result_summary,
        length,
        sources,
        created,
        *rest,
    ) = row
    return Page(
        uuid,
        Scope(tenant, user, conversation),
        tool,
        from_json(given),
        query_summary,
        result_summary,
        length,
        tuple(from_json(sources)),
        text_time(created),
        *rest,
    )


def _pages(connection: Connection, scope: Scope, limit: int, after: str | None) -> list[Page]:
    created: str | None = None
    if after is not None:
        row: Any = connection.execute(sql("page_stored"), {**keys(scope), "uuid": after}).fetchone()
        last = None if row is None else _page(row[1:], scope.tenant)
        if (
            last is None
            or scope.user not in {None, last.scope.user}
            or scope.conversation not in {None, last.scope.conversation}
        ):
            raise rules.nothing_behind(after)
        created = time_text(last.created)
    part = (
        "conversation" if scope.conversation is not None else "user" if scope.user is not None else "tenant"
    )
    values = {**keys(scope), "after": after, "created": created, "limit": max(0, limit)}
    return [_page(row, scope.tenant) for row in connection.execute(sql(f"pages_of_{part}"), values)]
