"""Archived tool results, their passages, and the images and files of turns: equal bytes are compressed and stored once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from pagefile import ports
from pagefile.arrays import np
from pagefile.records import Page, Scope, Turn, utc
from pagefile.stores import encoding, rules
from pagefile.stores.encoding import Blob
from pagefile.stores.sql.plays import Play, Player, Row, SqlPort, Values, count, each, first, many, row, rows
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import keys, of_tenant, part_of, values_of
from pagefile.stores.sql.texts import ALL_TENANTS

#: Texts up to this size are unpacked in place; a thread would take longer. Packing takes more time: a player decides.
_SMALL_CHARS = 20_000


class SqlPages(SqlPort, ports.PageStore):
    """Pages in `tool_result_archive`, their texts in `blobs`, their passages in `archive_passage`."""

    async def put(self, draft: ports.PageDraft) -> Page:
        text = draft.text
        blob = await self._player.compute(lambda: encoding.packed(text), small=len(text) <= _SMALL_CHARS)
        page = encoding.stored_page(draft.page, len(blob.data))
        return await self._player.write(lambda: _put(page, blob, draft))

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        found = await self._row("page_load", {**keys(scope), "uuid": uuid})
        if found is None:
            raise rules.no_page(uuid)
        codec, data = found[:2]
        page = rules.check_living(of_tenant(Page, scope.tenant)(found[2:]))
        if page.length <= _SMALL_CHARS:
            return page, encoding.unpacked(codec, data)
        return page, await self._player.compute(lambda: encoding.unpacked(codec, data))

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        return await self._player.read(lambda: _pages(scope, limit, after))


def _put(page: Page, blob: Blob, draft: ports.PageDraft) -> Play[Page]:
    yield from check_writable(draft.epoch, draft.fenced)
    tenant, living = page.scope.tenant, page.purged is None
    found = yield from row("page_locked", {"tenant": tenant, "uuid": page.uuid})
    if found is not None:
        stored = of_tenant(Page, tenant)(found[1:])
        rules.check_same_page(stored, page, same_text=found[0] == blob.hash)
        # The text of a tombstone may come back.
        if stored.purged is None or not living:
            return stored
    if living:
        yield from count("blob_put", blob._asdict())
    digests = {"digest": encoding.record_digest(page), "blob": blob.hash if living else None}
    yield from count("page_put", {**values_of(page), **digests, "full": draft.text if living else None})
    if living:
        yield from put_spans(tenant, page.uuid, draft.spans)
    return page


def put_spans(tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> Play[None]:
    passages: list[Values] = [
        {"tenant": tenant, "uuid": uuid, "number": number, "start": start, "end": end}
        for number, (start, end) in enumerate(spans)
    ]
    yield from many("passage_put", passages)


def _pages(scope: Scope, limit: int, after: str | None) -> Play[list[Page]]:
    created = None
    if after is not None:
        found = yield from row("page_stored", {"tenant": scope.tenant, "uuid": after})
        last = None if found is None else of_tenant(Page, scope.tenant)(found[1:])
        if last is None or not rules.lists_page(scope, last.scope):
            raise rules.nothing_behind(after)
        created = last.created
    values = {**keys(scope), "after": after, "created": created, "limit": max(0, limit)}
    return (yield from each(f"pages_of_{part_of(scope)}", values, of_tenant(Page, scope.tenant)))


class SqlMedia(SqlPort, ports.MediaStore):
    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the port's word
        found = await self._row("media_load", {**keys(scope), "hash": hash})
        if found is None:
            raise rules.no_media(hash)
        codec, data = found
        return await self._player.compute(lambda: encoding.unpacked_bytes(codec, data))


async def packed_blobs(player: Player, blobs: Mapping[str, bytes]) -> dict[str, Blob]:
    if not blobs:
        return {}
    rules.check_blobs(blobs)
    return await player.compute(lambda: {key: encoding.packed_bytes(data) for key, data in blobs.items()})


def attach(
    scope: Scope, turn: Turn | ports.TurnDraft | ports.Extend, turn_id: str, blobs: Mapping[str, Blob]
) -> Play[None]:
    named = rules.attached(turn, blobs)
    place = {**keys(scope), "id": turn_id}
    yield from many("blob_put", [blobs[key]._asdict() for key in named])
    yield from many(
        "attach", [{**place, "hash": key, "media_type": media_type} for key, media_type in named.items()]
    )


class SqlPageKeeper(SqlPort, ports.PageKeeper):
    async def page(self, scope: Scope, uuid: str) -> Page:
        return await self._player.read(lambda: _page(scope, uuid))

    async def named(self, scope: Scope, uuids: Sequence[str]) -> list[Page]:
        values = {**keys(scope), "uuids": sorted(set(uuids))}
        return await self._each("pages_named", values, of_tenant(Page, scope.tenant))

    async def holding(self, scope: Scope, hashes: Sequence[str]) -> list[Page]:
        values = {**keys(scope), "hashes": sorted(set(hashes))}
        return await self._each("pages_holding", values, of_tenant(Page, scope.tenant))

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        values = {**keys(scope), "uuid": uuid, "pinned": pinned}

        def play() -> Play[Page]:
            yield from count("page_pin", values)
            return rules.check_living((yield from _page(scope, uuid)))

        return await self._player.write(play)

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        # In a fixed order, so that two writers of the same pages do not deadlock.
        touched: list[Values] = [{**keys(scope), "uuid": uuid, "at": utc(at)} for uuid in sorted(uuids)]
        # The load may have been counted before the connection was lost, and must not be counted twice.
        await self._player.write(lambda: many("page_touch", touched), again=False)

    async def pinned(self, scope: Scope) -> list[Page]:
        return await self._each(f"pinned_of_{part_of(scope)}", keys(scope), of_tenant(Page, scope.tenant))

    async def tenants(self) -> list[str]:
        return await self._each("page_tenants", ALL_TENANTS, lambda one: one[0])

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        values = {**keys(scope), "call_hash": call_hash, "since": utc(since)}
        return await self._first("page_of_call", values, of_tenant(Page, scope.tenant))

    async def due(self, request: ports.PurgeRequest) -> list[Page]:
        return [page for _, page in await self._player.read(lambda: _due(request))]

    async def purge(self, request: ports.PurgeRequest) -> list[Page]:
        # Usually nothing is due: then nothing is locked, and the write-ahead log is not truncated.
        if not await self.due(request):
            return []
        return await self._player.write(lambda: _purge(request), again=False, erases=True)

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        values = {**keys(scope), "uuids": sorted(set(uuids))}

        def play() -> Play[int]:
            return (yield from drop_pages(scope.tenant, (yield from rows("pages_reached", values))))

        return await self._player.write(play, erases=True)


def page_reached(scope: Scope, uuid: str) -> Play[Page | None]:
    """A page that the scope may use, if there is one."""
    return (yield from first("page_reached", {**keys(scope), "uuid": uuid}, of_tenant(Page, scope.tenant)))


def _page(scope: Scope, uuid: str) -> Play[Page]:
    page = yield from page_reached(scope, uuid)
    if page is None:
        raise rules.no_page(uuid)
    return page


def erase_blobs(hashes: Iterable[str]) -> Play[int]:
    """Remove those that no page and no attachment of any tenant refers to; returns how many."""
    return (yield from count("erase_blobs", {**ALL_TENANTS, "hashes": sorted(set(hashes))}))


def drop_pages(tenant: str, found: Sequence[Row]) -> Play[int]:
    """Remove pages, given by uuid and the key of their text, with their passages; returns how many."""
    values: Values = {"tenant": tenant, "uuids": [uuid for uuid, _ in found]}
    yield from count("passages_drop", values)
    yield from count("pages_erase", values)
    yield from erase_blobs(blob for _, blob in found if blob)
    return len(found)


def _purge(request: ports.PurgeRequest) -> Play[list[Page]]:
    due = yield from _due(request)
    values: Values = {"tenant": request.scope.tenant, "at": utc(request.at)}
    named = {**values, "uuids": [page.uuid for _, page in due]}
    # Pages that were pinned or purged meanwhile stay as they are.
    buried = set((yield from each("pages_bury", named, lambda one: one[0])))
    gone = [(blob, page) for blob, page in due if page.uuid in buried]
    yield from count("passages_drop", {**values, "uuids": [page.uuid for _, page in gone]})
    yield from erase_blobs(blob for blob, _ in gone)
    return [replace(page, purged=utc(request.at)) for _, page in gone]


def _due(request: ports.PurgeRequest) -> Play[list[tuple[str, Page]]]:
    """The pages to purge, oldest first, each with the key of its text."""
    scope = request.scope
    bounds = {"before": request.before and utc(request.before), "max_bytes": request.max_bytes}
    lists = {"uuids": sorted(request.uuids or ()), "spared": sorted(request.spared)}
    values = {**keys(scope), **lists, **bounds}
    found = yield from rows(f"due_of_{part_of(scope)}", values)
    return [(blob, of_tenant(Page, scope.tenant)(page)) for blob, *page in found]


class SqlPageIndex(SqlPort, ports.PageIndex):
    async def uuids(self, scope: Scope) -> list[str]:
        # By every window.
        often = "uuids", scope
        return await self._each(f"uuids_of_{part_of(scope)}", keys(scope), lambda one: one[0], often=often)

    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[ports.PageTerms]:
        found = await self._rows("passages_read", {**keys(scope), "uuids": list(uuids)})
        return [_page_terms(list(group)) for _, group in groupby(found, key=lambda one: one[0])]

    async def embeddings(self, scope: Scope, model: ports.EmbeddingModel) -> Mapping[str, ports.Vector]:
        values = {**keys(scope), "maker": model.key}
        found = await self._rows(f"embeddings_of_{part_of(scope)}", values)
        made = {uuid: np.frombuffer(data, dtype="<f4") for uuid, data in found}
        size = model.dimension
        return {
            uuid: row.reshape(-1, size) for uuid, row in made.items() if len(row) and len(row) % size == 0
        }

    async def embed(
        self, scope: Scope, model: ports.EmbeddingModel, made: Mapping[str, ports.Vector]
    ) -> None:
        rules.check_embeddings(model, made)
        written: list[Values] = [
            {**keys(scope), "uuid": uuid, "maker": model.key, "data": vector.astype("<f4").tobytes()}
            for uuid, vector in sorted(made.items())
        ]
        await self._player.write(lambda: many("page_embed", written))

    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        written: list[Values] = [
            {"tenant": scope.tenant, "uuid": uuid, "number": number, "terms": text}
            for number, text in enumerate(terms)
        ]

        def play() -> Play[None]:
            passages = yield from row("passages_count", {**keys(scope), "uuid": uuid})
            if passages is not None:
                rules.check_terms(uuid, passages[0], len(written))
                yield from many("passage_terms", written)

        await self._player.write(play)


def _page_terms(found: Sequence[Row]) -> ports.PageTerms:
    """The rows of one page; one without passages has a single row without a number."""
    uuid, number = found[0][1], found[0][2]
    if number is None:
        return ports.PageTerms(uuid, (), ())
    terms = [one[5] for one in found]
    spans = tuple((one[3], one[4]) for one in found)
    return ports.PageTerms(uuid, spans, None if None in terms else tuple(terms))
