"""Finds archived pages by what is written in them.

Passages are segmented once, when a search first meets their page, and their terms are stored beside the page, so that the
index of a user can be rebuilt without reading the texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio
import anyio.to_thread

from pagefile.errors import HandleNotFoundError
from pagefile.lru import Lru
from pagefile.ports import PageIndex, PageStore, PageTerms
from pagefile.records import PageHit, Scope
from pagefile.text.bm25 import Ranked, WordIndex
from pagefile.text.words import terms
from pagefile.tiers.page_in import is_quoted

#: Pages whose terms are read at a time.
_BATCH = 50


class _Key(NamedTuple):
    uuid: str
    start: int
    end: int


@dataclass(slots=True)
class _Index:
    words: WordIndex[_Key] = field(default_factory=WordIndex[_Key])
    pages: dict[str, list[_Key]] = field(default_factory=dict[str, list[_Key]])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, page: PageTerms, passages: Sequence[str]) -> None:
        keys = [_Key(page.uuid, start, end) for start, end in page.spans]
        for key, words in zip(keys, passages, strict=True):
            self.words.add(key, words.split(" "))
        self.pages[page.uuid] = keys

    def drop(self, uuids: set[str]) -> None:
        for uuid in uuids:
            self.words.remove(self.pages.pop(uuid))


@dataclass(eq=False, repr=False)
class PageSearch:
    """Finds pages by what is written in them."""

    pages: PageStore
    index: PageIndex
    max_postings: int

    def __post_init__(self) -> None:
        self._indexes: Lru[Scope, _Index] = Lru(self.max_postings, lambda index: index.words.postings)

    async def search(self, scope: Scope, query: str, limit: int) -> list[PageHit]:
        """The pages whose best passage answers the query, best first; one hit per page."""
        if not (wanted := terms(query)):
            return []
        index = await self._caught_up(scope)
        best: dict[str, Ranked[_Key]] = {}
        for ranked in index.words.search(wanted, limit * 20):
            best.setdefault(ranked.key.uuid, ranked)
        hits: list[PageHit] = []
        results: set[object] = set()
        for ranked in best.values():
            if len(hits) == limit:
                break
            try:
                page, text = await self.pages.load(scope, ranked.key.uuid)
            except HandleNotFoundError:
                continue
            if is_quoted(page.tool, text):
                # Earlier versions archived the answers of our own tools.
                continue
            # A fork of a conversation has its own pages for the same results.
            result = page.call_hash, page.content_hash, page.created
            if result in results:
                continue
            results.add(result)
            _, start, end = ranked.key
            hits.append(PageHit(page, ranked.score, text[start:end], start))
        return hits

    def forget(self) -> None:
        self._indexes.clear()

    async def _caught_up(self, scope: Scope) -> _Index:
        index = self._indexes.setdefault(scope, _Index())
        async with index.lock:
            there = await self.index.uuids(scope)
            index.drop(index.pages.keys() - set(there))
            missing = [uuid for uuid in there if uuid not in index.pages]
            for start in range(0, len(missing), _BATCH):
                for page in await self.index.read(scope, missing[start : start + _BATCH]):
                    passages = page.terms
                    if passages is None:
                        _, text = await self.pages.load(scope, page.uuid)
                        passages = await anyio.to_thread.run_sync(segmented, text, page.spans)
                        await self.index.write(scope, page.uuid, passages)
                    await anyio.to_thread.run_sync(index.add, page, passages)
        self._indexes.trim()
        return index


def segmented(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The terms of a text's passages as they are stored."""
    return tuple(" ".join(terms(text[start:end])) for start, end in spans)
