"""Archived pages, images and files as dicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import anyio.to_thread
import numpy as np

from pagefile.ports import (
    EmbeddingModel,
    MediaStore,
    PageDraft,
    PageIndex,
    PageKeeper,
    PageStore,
    PageTerms,
    PurgeRequest,
    Vector,
)
from pagefile.records import Page, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import packed, stored_page
from tests.oracle.tables import Port, Shelved, Tables, behind

#: Compressing texts of this many characters or more would block the event loop.
_THREAD_FROM_CHARS = 20_000


class OraclePages(Port, PageStore):
    async def put(self, draft: PageDraft) -> Page:
        page = stored_page(draft.page, await _packed_bytes(draft.text))
        self._tables.check_epoch(draft.epoch, *draft.fenced)
        key = page.scope.tenant, page.uuid
        stored = self._tables.pages.get(key)
        if stored is not None:
            rules.check_same_page(stored.page, page, same_text=stored.text == draft.text)
            if stored.page.purged is None or page.purged is not None:
                return stored.page
        living = page.purged is None
        self._tables.pages[key] = Shelved(page, draft.text if living else None, draft.spans if living else ())
        return page

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        shelved = _named(self._tables, scope, uuid)
        return rules.check_living(shelved.page), shelved.text or ""

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        pages = list(reversed(_oldest_first(self._tables, lambda page: rules.lists_page(scope, page.scope))))
        return behind(pages, lambda page: page.uuid, after)[:limit]


class OraclePageKeeper(Port, PageKeeper):
    async def page(self, scope: Scope, uuid: str) -> Page:
        return _named(self._tables, scope, uuid).page

    async def named(self, scope: Scope, uuids: Sequence[str]) -> list[Page]:
        return _oldest_first(self._tables, lambda page: page.uuid in uuids and _reaches(scope, page.scope))

    async def holding(self, scope: Scope, hashes: Sequence[str]) -> list[Page]:
        held = {
            key
            for key, one in self._tables.pages.items()
            if one.text is not None and packed(one.text).hash in hashes
        }
        return _oldest_first(
            self._tables, lambda page: (page.scope.tenant, page.uuid) in held and _reaches(scope, page.scope)
        )

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        shelved = _named(self._tables, scope, uuid)
        page = replace(rules.check_living(shelved.page), pinned=pinned)
        self._tables.pages[scope.tenant, uuid] = replace(shelved, page=page)
        return page

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        tables = self._tables
        for uuid in uuids:
            shelved = _reached(tables, scope, uuid)
            if shelved is not None and shelved.page.purged is None:
                page, now = shelved.page, utc(at)
                last = now if page.last_load is None else max(now, page.last_load)
                touched = replace(page, loads=page.loads + 1, last_load=last)
                tables.pages[scope.tenant, uuid] = replace(shelved, page=touched)

    async def pinned(self, scope: Scope) -> list[Page]:
        return _oldest_first(self._tables, lambda page: page.pinned and rules.lists_page(scope, page.scope))

    async def tenants(self) -> list[str]:
        return sorted(
            {page.scope.tenant for page in _oldest_first(self._tables, lambda page: page.purged is None)}
        )

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        equal = _oldest_first(
            self._tables,
            lambda page: (
                page.call_hash == call_hash != ""
                and page.created >= utc(since)
                and page.purged is None
                and _reaches(scope, page.scope)
            ),
        )
        return equal[-1] if equal else None

    async def due(self, request: PurgeRequest) -> list[Page]:
        held = _oldest_first(
            self._tables, lambda page: page.purged is None and rules.lists_page(request.scope, page.scope)
        )
        chosen = {page.uuid for page in held if not page.pinned and _is_named(page, request)}
        rest = [page for page in held if page.uuid not in chosen]
        chosen |= {page.uuid for page in _beyond(rest, request)}
        return [page for page in held if page.uuid in chosen]

    async def purge(self, request: PurgeRequest) -> list[Page]:
        purged = [replace(page, purged=utc(request.at)) for page in await self.due(request)]
        for page in purged:
            self._tables.pages[page.scope.tenant, page.uuid] = Shelved(page, None, ())
        return purged

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        found = [uuid for uuid in dict.fromkeys(uuids) if _reached(self._tables, scope, uuid) is not None]
        for uuid in found:
            del self._tables.pages[scope.tenant, uuid]
        left = self._tables.hashes()
        for name in [name for name in self._tables.blobs if name not in left]:
            del self._tables.blobs[name]
        return len(found)


class OraclePageIndex(Port, PageIndex):
    async def uuids(self, scope: Scope) -> list[str]:
        held = _oldest_first(
            self._tables, lambda page: page.purged is None and rules.lists_page(scope, page.scope)
        )
        return [page.uuid for page in held]

    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        found = [_reached(self._tables, scope, uuid) for uuid in uuids]
        return [
            PageTerms(shelved.page.uuid, shelved.spans, shelved.terms if shelved.spans else ())
            for shelved in found
            if shelved is not None and shelved.page.purged is None
        ]

    async def embeddings(self, scope: Scope, model: EmbeddingModel) -> Mapping[str, Vector]:
        held = {uuid: self._tables.pages[scope.tenant, uuid].embedding for uuid in await self.uuids(scope)}
        return {uuid: made[1] for uuid, made in held.items() if made is not None and made[0] == model.key}

    async def embed(self, scope: Scope, model: EmbeddingModel, made: Mapping[str, Vector]) -> None:
        rules.check_embeddings(model, made)
        for uuid, vector in made.items():
            shelved = _reached(self._tables, scope, uuid)
            if shelved is not None and shelved.page.purged is None:
                embedding = model.key, vector.astype(np.float32)
                self._tables.pages[scope.tenant, uuid] = replace(shelved, embedding=embedding)

    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        shelved = _reached(self._tables, scope, uuid)
        if shelved is None or shelved.page.purged is not None:
            return
        rules.check_terms(uuid, len(shelved.spans), len(terms))
        self._tables.pages[scope.tenant, uuid] = replace(shelved, terms=tuple(terms))


async def _packed_bytes(text: str) -> int:
    if len(text) < _THREAD_FROM_CHARS:
        return len(packed(text).data)
    return len((await anyio.to_thread.run_sync(packed, text)).data)


def _reached(tables: Tables, scope: Scope, uuid: str) -> Shelved | None:
    shelved = tables.pages.get((scope.tenant, uuid))
    return shelved if shelved is not None and _reaches(scope, shelved.page.scope) else None


def _reaches(scope: Scope, owned: Scope) -> bool:
    """Whether a scope may use a page whose uuid it knows: a user's page follows them into every conversation."""
    if owned.tenant != scope.tenant:
        return False
    if scope.user is None and scope.conversation is not None:
        return owned.user is None and scope.conversation == owned.conversation
    return scope.user in {None, owned.user} or rules.lists_page(scope, owned)


def _named(tables: Tables, scope: Scope, uuid: str) -> Shelved:
    shelved = _reached(tables, scope, uuid)
    if shelved is None:
        raise rules.no_page(uuid)
    return shelved


def _oldest_first(tables: Tables, wanted: Callable[[Page], bool]) -> list[Page]:
    pages = [shelved.page for shelved in tables.pages.values() if wanted(shelved.page)]
    return sorted(pages, key=lambda page: (page.created, page.uuid))


def _is_named(page: Page, request: PurgeRequest) -> bool:
    old = request.before is not None and page.created < utc(request.before)
    return (old and page.uuid not in request.spared) or page.uuid in (request.uuids or ())


def _beyond(pages: Sequence[Page], request: PurgeRequest) -> list[Page]:
    """The oldest pages that are neither pinned nor spared, as many as must go until the rest is small enough."""
    gone: list[Page] = []
    size = sum(page.stored_bytes for page in pages)
    for page in (page for page in pages if not page.pinned and page.uuid not in request.spared):
        if request.max_bytes is None or size <= request.max_bytes:
            break
        gone.append(page)
        size -= page.stored_bytes
    return gone


class OracleMedia(Port, MediaStore):
    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the port's word
        seen = {
            (scope.tenant, rules.conversation_of(conversation.scope))
            for conversation in self._tables.seen(scope)
        }
        if not any(place[:2] in seen and place[3] == hash for place in self._tables.attachments):
            raise rules.no_media(hash)
        return self._tables.blobs[hash]
