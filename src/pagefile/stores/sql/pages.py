"""Archived tool results: the text is compressed and stored once for equal results."""

from collections.abc import Sequence

from pagefile.ports import PageDraft, PageStore
from pagefile.records import Page, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import stored_page
from pagefile.stores.packing import Blob, packed, unpacked
from pagefile.stores.sql.epochs import check_writable
from pagefile.stores.sql.media import blob_values
from pagefile.stores.sql.plays import Play, Player, Values, count, each, many, row
from pagefile.stores.sql.rows import keys, page_of, page_values, part_of

#: Texts up to here are unpacked at once; a thread would take longer. Packing takes more time: a player decides.
_SMALL_CHARS = 20_000


class SqlPages(PageStore):
    """Pages in `tool_result_archive`, their texts in `blobs`, their passages in `archive_passage`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def put(self, draft: PageDraft) -> Page:
        text = draft.text
        blob = await self._player.compute(lambda: packed(text), small=len(text) <= _SMALL_CHARS)
        page = stored_page(draft.page, len(blob.data))
        return await self._player.write(lambda: _put(page, blob, draft))

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        found = await self._player.read(lambda: row("page_load", {**keys(scope), "uuid": uuid}))
        if found is None:
            raise rules.no_page(uuid)
        codec, data = found[:2]
        page = rules.check_living(page_of(found[2:], scope.tenant))
        if page.length <= _SMALL_CHARS:
            return page, unpacked(codec, data)
        return page, await self._player.compute(lambda: unpacked(codec, data))

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        return await self._player.read(lambda: _pages(scope, limit, after))


def _put(page: Page, blob: Blob, draft: PageDraft) -> Play[Page]:
    yield from check_writable(draft.epoch, draft.fenced)
    stored = yield from _stored(page, blob)
    if stored is not None:
        return stored
    living = page.purged is None
    if living:
        yield from count("blob_put", blob_values(blob))
    yield from count("page_put", {**page_values(page), "blob": blob.hash if living else None})
    if living:
        yield from put_spans(page.scope.tenant, page.uuid, draft.spans)
    return page


def put_spans(tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> Play[None]:
    """Write where the passages of a page begin and end."""
    passages: list[Values] = [
        {"tenant": tenant, "uuid": uuid, "number": number, "start": start, "end": end}
        for number, (start, end) in enumerate(spans)
    ]
    yield from many("passage_put", passages)


def _stored(page: Page, blob: Blob) -> Play[Page | None]:
    """The page that is there already, unless it is a tombstone whose text has come back."""
    found = yield from row("page_locked", {"tenant": page.scope.tenant, "uuid": page.uuid})
    if found is None:
        return None
    stored = page_of(found[1:], page.scope.tenant)
    rules.check_same_page(stored, page, same_text=found[0] == blob.hash)
    return None if stored.purged is not None and page.purged is None else stored


def _pages(scope: Scope, limit: int, after: str | None) -> Play[list[Page]]:
    created = None
    if after is not None:
        found = yield from row("page_stored", {"tenant": scope.tenant, "uuid": after})
        last = None if found is None else page_of(found[1:], scope.tenant)
        if last is None or not rules.lists_page(scope, last.scope):
            raise rules.nothing_behind(after)
        created = last.created
    values = {**keys(scope), "after": after, "created": created, "limit": max(0, limit)}
    return (yield from each(f"pages_of_{part_of(scope)}", values, lambda one: page_of(one, scope.tenant)))
