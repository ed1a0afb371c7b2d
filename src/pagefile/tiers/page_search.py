"""Finds archived pages by what is written in them and by what they are about, by word and by meaning.

Passages are segmented once, when a search first meets their page, and their terms are stored beside the page, so that the
index of a user can be rebuilt without reading the texts. What a page is about (its tool, query and synopsis) is one more
passage of it, and what the embedder, if there is one, makes its embedding of: so a page is found in another language too.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import anyio
import anyio.to_thread

from pagefile.errors import HandleNotFoundError, ModelUnavailableError
from pagefile.lru import Lru
from pagefile.ports import Embedder, PageIndex, PageKeeper, PageStore, PageTerms, Vector
from pagefile.records import Page, PageHit, Scope
from pagefile.text.bm25 import WordIndex
from pagefile.text.reading.json_tree import START as JSON_START
from pagefile.text.reading.json_tree import unescaped
from pagefile.text.speech import blended
from pagefile.text.words import terms
from pagefile.tiers.base import guarded
from pagefile.tiers.page_in import is_quoted

#: Pages whose terms are read, or that are embedded, at a time.
_BATCH = 50
#: What a similarity of 1 is worth beside the score of words. Chosen by `pagefile bench pages`.
_MEANING = 60.0
#: A page that shares no word with a query is found from this similarity on.
_NEAR_FROM = 0.15
#: Passages considered for each page that is wanted.
_PASSAGES = 20
#: Where a name consists of several words: `list_orders`, `exitCode`.
_IN_NAMES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


class _Key(NamedTuple):
    uuid: str
    start: int
    end: int

    @property
    def in_text(self) -> bool:
        """False for what the page is about."""
        return self.start >= 0


class Found(NamedTuple):
    """A page that has something in common with a query."""

    uuid: str
    score: float
    #: Its best passage; None if only what it is about fits.
    passage: _Key | None
    #: The share of the query's words, by their rarity, that one passage has.
    coverage: float
    #: Between the query and what the page is about; 0 without an embedder.
    similarity: float


@dataclass(slots=True)
class _Index:
    words: WordIndex[_Key] = field(default_factory=WordIndex[_Key])
    pages: dict[str, list[_Key]] = field(default_factory=dict[str, list[_Key]])
    embeddings: dict[str, Vector] = field(default_factory=dict[str, Vector])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, page: PageTerms, passages: Sequence[str], about: str) -> None:
        keys = [_Key(page.uuid, start, end) for start, end in page.spans]
        for key, words in zip(keys, passages, strict=True):
            self.words.add(key, words.split(" "))
        keys.append(_Key(page.uuid, -1, -1))
        self.words.add(keys[-1], terms(about))
        self.pages[page.uuid] = keys

    def drop(self, uuids: set[str]) -> None:
        for uuid in uuids:
            self.words.remove(self.pages.pop(uuid))
            self.embeddings.pop(uuid, None)

    def ranked(self, query: str, near: Mapping[str, float], passages: int) -> list[Found]:
        """The pages that share a word with the query, or are about the same, best first."""
        wanted = terms(query)
        names = self._names(wanted)
        asked = self._telling(wanted, names)
        best: dict[str, Found] = {}
        for one in self.words.search([*wanted, *names, *names], passages):
            key, uuid = one.key, one.key.uuid
            passage = key if key.in_text else None
            if uuid not in best:
                coverage, similarity = self.words.share(key, asked), near.get(uuid, 0.0)
                score = one.score + _MEANING * similarity
                best[uuid] = Found(uuid, score, passage, coverage, similarity)
            elif best[uuid].passage is None:
                best[uuid] = best[uuid]._replace(passage=passage)
        for uuid, similarity in near.items():
            if uuid not in best and similarity >= _NEAR_FROM:
                best[uuid] = Found(uuid, _MEANING * similarity, None, 0.0, similarity)
        return sorted(best.values(), key=lambda found: -found.score)

    def _names(self, wanted: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Pairs of words that are one name in a text, such as `exitCode`, by the term of that name."""
        pairs = [(a, b) for a, b in pairwise(wanted) if (a + b).isalpha() and (a + b).isascii()]
        return {name: pair for pair in pairs for name in terms("".join(pair)) if self.words.knows(name)}

    def _telling(self, wanted: Sequence[str], names: Mapping[str, tuple[str, str]]) -> Counter[str]:
        """The terms by which a question is judged: without pairs of characters that belong to different words.

        Chinese words come whole and in pairs, so a pair that is a word comes twice. A name stands for its words.
        """
        asked = Counter(wanted)
        strays = [
            term for term, times in asked.items() if not term.isascii() and (len(term) > 2 or times == 1)
        ]
        for term in strays:
            if not self.words.knows(term):
                del asked[term]
        for name, words in names.items():
            asked -= Counter(words)
            asked[name] = len(words)
        return asked


@dataclass(eq=False, repr=False)
class PageSearch:
    """Finds pages by what is written in them, and by what they are about."""

    pages: PageStore
    keeper: PageKeeper
    index: PageIndex
    max_postings: int
    embedder: Embedder | None = None
    #: How long a search waits for embeddings; after that it goes by words.
    timeout_s: float = 1.0
    report: Callable[[Exception], object] = lambda _: None

    def __post_init__(self) -> None:
        self._indexes: Lru[Scope, _Index] = Lru(self.max_postings, lambda index: index.words.postings)

    async def search(self, scope: Scope, query: str, limit: int) -> list[PageHit]:
        """The pages whose best passage answers the query, best first; one hit per page."""
        hits: list[PageHit] = []
        results: set[object] = set()
        for found in await self.find(scope, query, limit):
            if len(hits) == limit:
                break
            try:
                page, text = await self.pages.load(scope, found.uuid)
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
            start, end = await self._passage(scope, found)
            hits.append(PageHit(page, found.score, text[start:end], start))
        return hits

    async def find(self, scope: Scope, query: str, limit: int) -> list[Found]:
        """The pages that have something in common with a query, best first."""
        if not terms(query):
            return []
        index = await self._caught_up(scope)
        near = await self._near(scope, index, query)
        return index.ranked(query, near, limit * _PASSAGES)

    async def embed_new(self, scope: Scope) -> None:
        """Embed the pages of a scope that have no embedding yet."""
        if self.embedder is not None:
            await self._embedded(scope, self.embedder, {})

    def forget(self) -> None:
        self._indexes.clear()

    async def _passage(self, scope: Scope, found: Found) -> tuple[int, int]:
        """The passage to show; the first one if no other fits better."""
        if found.passage is not None:
            return found.passage[1:]
        return next((one.spans[0] for one in await self.index.read(scope, [found.uuid]) if one.spans), (0, 0))

    async def _caught_up(self, scope: Scope) -> _Index:
        index = self._indexes.setdefault(scope, _Index())
        async with index.lock:
            there = await self.index.uuids(scope)
            index.drop(index.pages.keys() - set(there))
            missing = [uuid for uuid in there if uuid not in index.pages]
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                about = {page.uuid: _about(page) for page in await self.keeper.named(scope, batch)}
                for page in await self.index.read(scope, batch):
                    passages = page.terms
                    if passages is None:
                        _, text = await self.pages.load(scope, page.uuid)
                        passages = await anyio.to_thread.run_sync(segmented, text, page.spans)
                        await self.index.write(scope, page.uuid, passages)
                    said = "\n".join(about.get(page.uuid, ()))
                    await anyio.to_thread.run_sync(index.add, page, passages, said)
        self._indexes.trim()
        return index

    # -- by meaning ----------------------------------------------------------------------------------------------------

    async def _near(self, scope: Scope, index: _Index, query: str) -> dict[str, float]:
        """How similar each page is to a query; what is not known in time is left out."""
        embedder = self.embedder
        if embedder is None or not index.pages:
            return {}
        asked: Vector | None = None
        # Whatever a foreign embedder raises: the words are still there.
        with guarded(self.report), anyio.move_on_after(self.timeout_s):
            (asked,) = await embedder.embed([query])
            await self._embedded(scope, embedder, index.embeddings)
        if asked is None:
            self.report(ModelUnavailableError("The embedder did not answer: pages are found by words only."))
            return {}
        return {
            uuid: float(vector @ asked) for uuid, vector in index.embeddings.items() if uuid in index.pages
        }

    async def _embedded(self, scope: Scope, embedder: Embedder, known: dict[str, Vector]) -> None:
        """Add the embeddings of a scope's pages to those that are known: those that are stored, then new ones."""
        there = await self.index.uuids(scope)
        if known.keys() >= set(there):
            return
        if not embedder.dimension:
            await embedder.ready()
        known.update(await self.index.embeddings(scope, embedder.model))
        missing = [uuid for uuid in there if uuid not in known]
        for start in range(0, len(missing), embedder.batch):
            pages = await self.keeper.named(scope, missing[start : start + embedder.batch])
            rows = await embedder.embed([text for page in pages for text in _about(page)])
            made = {page.uuid: blended([rows[2 * n], rows[2 * n + 1]]) for n, page in enumerate(pages)}
            await self.index.embed(scope, embedder.model, made)
            known.update(made)


def _about(page: Page) -> tuple[str, str]:
    """What a page is about, in two texts: the call that brought it, and its synopsis."""
    return _IN_NAMES.sub(" ", f"{page.tool} {page.query_summary}"), page.result_summary


def segmented(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The terms of a text's passages as they are stored; strings of JSON as they read."""
    read = unescaped if JSON_START.match(text) else str
    return tuple(" ".join(terms(read(text[start:end]))) for start, end in spans)
