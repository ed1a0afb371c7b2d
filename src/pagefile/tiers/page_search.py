"""Finds archived pages by what is written in them and by what they are about, by word and by meaning.

Passages are segmented once, when a search first meets their page, and their terms are stored beside the page, so that the
index of a user can be rebuilt without reading the texts. What a page is about (its tool, query and synopsis) is one more
passage of it. The embedder, if there is one, embeds that and the pieces of the page that stand out, and finds words of
other languages for those of a query (`vocabulary`). What shares most with a query is compared with it word by word, and a
long query to the letter: who quotes a result wants that result.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import anyio
import anyio.to_thread

from pagefile.arrays import np
from pagefile.errors import HandleNotFoundError, ModelUnavailableError
from pagefile.lru import Lru
from pagefile.ports import Embedder, PageIndex, PageKeeper, PageStore, PageTerms, Vector
from pagefile.records import Page, PageHit, Scope
from pagefile.text.bm25 import WordIndex, rarity
from pagefile.text.glossary import counterparts
from pagefile.text.piece_ranking import standing_out
from pagefile.text.reading.json_tree import START as JSON_START
from pagefile.text.reading.json_tree import unescaped
from pagefile.text.speech import blended
from pagefile.text.words import terms
from pagefile.tiers.base import guarded
from pagefile.tiers.loading import Loading
from pagefile.tiers.page_in import is_quoted
from pagefile.tiers.vocabulary import Vocabulary, words_in

#: Pages whose terms are read, or that are embedded, at a time.
_BATCH = 50
#: What a similarity of 1 is worth beside the score of words: to what the page is about, and to the piece of it that is
#: most similar. These and the next were chosen by `pagefile bench pages` and `pagefile bench runs`.
_MEANING, _PIECE = 60.0, 40.0
#: What a passage with all words of a query is worth beside that, and how fast it falls with the share that is missing: few
#: words, however rare, score little, and a name or a number is near to anything by meaning.
_COVERED, _FALLING = 80.0, 3
#: How many pieces of a page are embedded, and how much of each.
_PIECES, _PIECE_CHARS = 6, 300
#: How many pages are compared with the query word by word, what two words in a row are worth, and a query to the letter.
_COMPARED, _PAIR, _LETTER = 15, 3.0, 200.0
#: A query of this length may be a quotation. It is compared by parts of this length, this many at most.
_QUOTED_FROM, _PART, _MOST_PARTS = 40, 24, 64
#: A page that shares no word with a query is found from this similarity on, of what it is about or of one of its pieces.
_NEAR_FROM, _NEAR_PIECE = 0.15, 0.4
#: What a term counts that stands for one of the question's in the other language.
_COUNTERPART = 0.9
#: What a term in another script than the question's counts in addition.
_NAMED = 2
#: Passages considered for each page that is wanted.
_PASSAGES = 20
#: Numbers of things: long ones, and with letters. Years are those of anything.
_NUMBER = re.compile(r"(?!(?:1[5-9]|20)\d\d$)(?=.*\d.*\d.*\d).{3,}")
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
    #: The score without what the words of other languages, pairs of words, pieces and coverage add to it.
    points: float
    #: The share that the passage has together with what the page is about: who asks for a line of a result often says of which.
    together: float = 0.0
    #: Whether the passage has a number of the query that can only be meant, such as that of an order.
    numbered: bool = False


class _Similarity(NamedTuple):
    """How similar a page is to a query: what it is about, and the piece of it that is most similar."""

    about: float = 0.0
    piece: float = 0.0


@dataclass(slots=True)
class _Index:
    words: WordIndex[_Key] = field(default_factory=WordIndex[_Key])
    pages: dict[str, list[_Key]] = field(default_factory=dict[str, list[_Key]])
    #: Of each page the rows that the embedder made: of what it is about, then of its pieces.
    embeddings: dict[str, Vector] = field(default_factory=dict[str, Vector])
    #: Words that may translate one of a query.
    vocabulary: set[str] = field(default_factory=set[str])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, page: PageTerms, passages: Sequence[str], about: str) -> None:
        keys = [_Key(page.uuid, start, end) for start, end in page.spans]
        for key, words in zip(keys, passages, strict=True):
            self._add(key, words.split(" "))
        keys.append(_Key(page.uuid, -1, -1))
        self._add(keys[-1], terms(about))
        self.pages[page.uuid] = keys

    def _add(self, key: _Key, words: Sequence[str]) -> None:
        self.words.add(key, words)
        self.vocabulary |= words_in(words)

    def drop(self, uuids: set[str]) -> None:
        for uuid in uuids:
            self.words.remove(self.pages.pop(uuid))
            self.embeddings.pop(uuid, None)

    def ranked(
        self, query: str, near: Mapping[str, _Similarity], translated: Mapping[str, float], passages: int
    ) -> list[Found]:
        """The pages that share a word with the query, or are about the same, best first."""
        wanted = terms(query)
        names = self._names(wanted)
        quoted = _in_another_script(wanted)
        asked = self._telling(wanted, names) + quoted
        called = counterparts(wanted)
        translated = {**translated, **self._counterparts(called)}
        best: dict[str, Found] = {}
        words = Counter([*wanted, *names, *names]) + quoted
        for one in self.words.search({**translated, **words}, passages):
            key, uuid = one.key, one.key.uuid
            passage = key if key.in_text else None
            if uuid not in best:
                coverage = self.words.share(key, asked, instead=called)
                best[uuid] = _found(uuid, one.score, passage, coverage, near.get(uuid, _Similarity()))
            elif best[uuid].passage is None:
                best[uuid] = best[uuid]._replace(passage=passage)
        for uuid, one in near.items():
            if uuid not in best and (one.about >= _NEAR_FROM or one.piece >= _NEAR_PIECE):
                best[uuid] = _found(uuid, 0.0, None, 0.0, one)
        ranked = sorted(best.values(), key=lambda found: -found.score)
        return [self._judged(one, asked, called) for one in ranked[:_COMPARED]] + ranked[_COMPARED:]

    def _counterparts(self, called: Mapping[str, Collection[str]]) -> dict[str, float]:
        """What the terms of a query are called in the other language, where a page has it, with its weight."""
        weights: dict[str, float] = {}
        for others in called.values():
            known = [term for term in others if self.words.knows(term)]
            for term in known:
                weights[term] = max(weights.get(term, 0.0), _COUNTERPART / len(known) ** 0.5)
        return weights

    def _judged(
        self, found: Found, asked: Mapping[str, float], called: Mapping[str, Collection[str]]
    ) -> Found:
        """With what its passage has of a question."""
        about = _Key(found.uuid, -1, -1)
        numbers = {term: much for term, much in asked.items() if _NUMBER.fullmatch(term)}
        return found._replace(
            together=self.words.share(found.passage or about, asked, about, instead=called),
            numbered=found.passage is not None and self.words.share(found.passage, numbers) > 0,
        )

    def _names(self, wanted: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Pairs of words that are one name in a text, such as `exitCode`, by the term of that name."""
        pairs = [(a, b) for a, b in pairwise(wanted) if (a + b).isalpha() and (a + b).isascii()]
        return {name: pair for pair in pairs for name in terms("".join(pair)) if self.words.knows(name)}

    def _telling(self, wanted: Sequence[str], names: Mapping[str, tuple[str, str]]) -> Counter[str]:
        """The terms by which a question is judged: without pairs of characters that belong to different words.

        Chinese words come whole and in pairs, so a pair that is a word comes twice. A name counts as its words.
        """
        asked = Counter(wanted)
        candidates = [
            term for term, times in asked.items() if not term.isascii() and (len(term) > 2 or times == 1)
        ]
        for term in candidates:
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
    loading: Loading = field(default_factory=Loading)

    def __post_init__(self) -> None:
        self._indexes: Lru[Scope, _Index] = Lru(self.max_postings, lambda index: index.words.postings)
        self._vocabulary = Vocabulary()

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

    async def find(self, scope: Scope, query: str, limit: int, *, segment: bool = True) -> list[Found]:
        """The pages that have something in common with a query, best first; without `segment`, of those read before."""
        if not terms(query):
            return []
        index = await self._caught_up(scope, segment=segment)
        if not index.pages:
            return []
        near, translated = await self._meant(scope, index, query)
        found = index.ranked(query, near, translated, max(limit, _COMPARED) * _PASSAGES)
        return await self._compared(scope, query, found)

    async def embed_new(self, scope: Scope) -> None:
        """Embed the pages of a scope that have no embedding yet, and their words."""
        if self.embedder is not None:
            made = await self._embedded(scope, self.embedder, {})
            if made and self.embedder.local:
                read = await self.index.read(scope, made)
                passages = [words.split(" ") for page in read for words in page.terms or ()]
                await self._vocabulary.learn(set[str]().union(*map(words_in, passages)), self.embedder)

    def forget(self) -> None:
        self._indexes.clear()
        self._vocabulary.forget()

    async def _compared(self, scope: Scope, query: str, found: list[Found]) -> list[Found]:
        """The first pages in the order of how much of the query they have word by word, and of a quotation to the letter."""
        first = found[:_COMPARED]
        if len(first) < 2:
            return found
        uuids = [one.uuid for one in first]
        read = {page.uuid: page.terms or () for page in await self.index.read(scope, uuids)}
        added = await anyio.to_thread.run_sync(_pairs_in_common, query, read)
        if len(query) >= _QUOTED_FROM:
            for uuid in uuids:
                with suppress(HandleNotFoundError):
                    _, text = await self.pages.load(scope, uuid)
                    added[uuid] = added.get(uuid, 0.0) + _LETTER * _quoted(query, text)
        better = [one._replace(score=one.score + added.get(one.uuid, 0.0)) for one in first]
        return sorted(better, key=lambda one: -one.score) + found[_COMPARED:]

    async def _passage(self, scope: Scope, found: Found) -> tuple[int, int]:
        """The passage to show; the first one if no other fits better."""
        if found.passage is not None:
            return found.passage[1:]
        return next((one.spans[0] for one in await self.index.read(scope, [found.uuid]) if one.spans), (0, 0))

    async def segment_new(self, scope: Scope) -> None:
        """Read the pages of a scope that no search has met yet."""
        await self._caught_up(scope)

    async def _caught_up(self, scope: Scope, *, segment: bool = True) -> _Index:
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
                    if (
                        passages is None
                        and segment
                        and (text := await self._text(scope, page.uuid)) is not None
                    ):
                        passages = await self._segmented(scope, page, text)
                    if passages is None:
                        continue
                    said = "\n".join(about.get(page.uuid, ()))
                    await anyio.to_thread.run_sync(index.add, page, passages, said)
        self._indexes.trim()
        return index

    async def _text(self, scope: Scope, uuid: str) -> str | None:
        """The text of a page; None where it was purged or erased since it was listed."""
        try:
            return (await self.pages.load(scope, uuid))[1]
        except HandleNotFoundError:
            return None

    async def _segmented(self, scope: Scope, page: PageTerms, text: str) -> tuple[str, ...]:
        passages = await anyio.to_thread.run_sync(segmented, text, page.spans)
        await self.index.write(scope, page.uuid, passages)
        return passages

    # -- by meaning ----------------------------------------------------------------------------------------------------

    async def _meant(
        self, scope: Scope, index: _Index, query: str
    ) -> tuple[dict[str, _Similarity], dict[str, float]]:
        """How similar each page is to a query, and words of other languages for its own; what is not known in time is left out."""
        embedder, translated = self.embedder, dict[str, float]()
        if embedder is None or not index.pages:
            return {}, translated
        asked: Vector | None = None
        # Whatever a foreign embedder raises: the words are still there.
        with guarded(self.report), anyio.move_on_after(self.loading.or_longer(self.timeout_s)):
            (asked,) = await embedder.embed([query])
            await self._embedded(scope, embedder, index.embeddings)
            if embedder.local:
                words = words_in(terms(query))
                translated = await self._vocabulary.translations(
                    words, index.vocabulary, embedder, index.words.knows
                )
        if asked is None:
            self.report(
                ModelUnavailableError("The embedder did not answer in time: pages are found by words only.")
            )
            return {}, translated
        rows = {uuid: rows @ asked for uuid, rows in index.embeddings.items() if uuid in index.pages}
        return {
            uuid: _Similarity(float(one[0]), float(one[1:].max(initial=0.0))) for uuid, one in rows.items()
        }, translated

    async def _embedded(self, scope: Scope, embedder: Embedder, known: dict[str, Vector]) -> list[str]:
        """Add the embeddings of a scope's pages to those that are known: those that are stored, then new ones, which it returns."""
        there = await self.index.uuids(scope)
        if known.keys() >= set(there):
            return []
        if not embedder.dimension:
            await embedder.ready()
        known.update(await self.index.embeddings(scope, embedder.model))
        missing = [uuid for uuid in there if uuid not in known]
        for page in await self.keeper.named(scope, missing):
            about = _about(page)
            pieces = await self._pieces(scope, page)
            rows = await embedder.embed([*about, *pieces])
            made = {page.uuid: np.stack([blended([*rows[:2]]), *rows[2:]])}
            await self.index.embed(scope, embedder.model, made)
            known.update(made)
        return missing

    async def _pieces(self, scope: Scope, page: Page) -> list[str]:
        """What stands out in a page; its terms are stored on the way, since its text is at hand."""
        text = await self._text(scope, page.uuid)
        if text is None:
            return []
        for one in await self.index.read(scope, [page.uuid]):
            if one.terms is None:
                await self._segmented(scope, one, text)
        pieces = await anyio.to_thread.run_sync(standing_out, text, _PIECES)
        return [piece[:_PIECE_CHARS] for piece in pieces]


def _in_another_script(wanted: Sequence[str]) -> Counter[str]:
    """The terms of a Chinese question that are not Chinese, or of another one that are, with what they count in addition.

    They are names. Where the result is in another language than the question, little else leads to it.
    """
    plain = [term for term in wanted if term.isascii()]
    other = [term for term in wanted if not term.isascii()]
    few = min(plain, other, key=len)
    return Counter(dict.fromkeys(few, _NAMED))


def _found(uuid: str, words: float, passage: _Key | None, coverage: float, near: _Similarity) -> Found:
    points = words + _MEANING * near.about
    score = points + _PIECE * near.piece + _COVERED * coverage**_FALLING
    return Found(uuid, score, passage, coverage, near.about, points)


def _pairs_in_common(query: str, pages: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """What the pairs of words that follow one another in a query are worth to the pages that have them: rare ones more."""
    wanted = set(pairwise(terms(query)))
    held = {
        uuid: {pair for one in passages for pair in wanted.intersection(pairwise(one.split(" ")))}
        for uuid, passages in pages.items()
    }
    often = Counter(pair for pairs in held.values() for pair in pairs)
    return {
        uuid: _PAIR * sum(rarity(len(held), often[pair]) for pair in pairs) for uuid, pairs in held.items()
    }


def _quoted(query: str, text: str) -> float:
    """The share of a query that is in a text to the letter."""
    last = len(query) - _PART
    parts = [query[at : at + _PART] for at in range(0, last + 1, max(1, last // _MOST_PARTS))]
    plain = unescaped(text) if JSON_START.match(text) else text
    return sum(part in text or part in plain for part in parts) / len(parts)


def _about(page: Page) -> tuple[str, str]:
    """What a page is about, in two texts: the call that brought it, and its synopsis."""
    return _IN_NAMES.sub(" ", f"{page.tool} {page.query_summary}"), page.result_summary


def segmented(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The terms of a text's passages as they are stored; strings of JSON as they read."""
    read = unescaped if JSON_START.match(text) else str
    return tuple(" ".join(terms(read(text[start:end]))) for start, end in spans)
