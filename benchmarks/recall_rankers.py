"""What is compared on recall: Pagefile through its own `recall`, with and without vectors, BM25 as anybody would write it, and vectors alone."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby

import numpy as np

from benchmarks.recall_data import Asked, Corpus, Said
from pagefile.engine import Memory
from pagefile.ports import Embedder
from pagefile.records import Scope, Turn
from pagefile.text.bm25 import WordIndex
from pagefile.text.sentences import CJK
from pagefile.text.speech import blended, embedded_texts

_WORD = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")


class Ranker(ABC):
    """Takes in the memory of a user and ranks its turns for a question."""

    name: str

    @abstractmethod
    async def take(self, corpus: Corpus) -> None:
        """Take in everything that was said."""

    @abstractmethod
    async def rank(self, asked: Asked, limit: int) -> list[str]:
        """The ids of the best turns of the user taken in last, best first."""


class PagefileRanker(Ranker):
    """`memory.recall` over a database."""

    def __init__(self, name: str, memory: Memory) -> None:
        self.name = name
        self._memory = memory
        self._user = ""

    async def take(self, corpus: Corpus) -> None:
        self._user = corpus.user
        for conversation, said in groupby(corpus.said, key=_conversation):
            # An import: what is measured is what is found, not how fast single turns are written.
            scope = Scope("default", corpus.user, f"{corpus.user}/{conversation}")
            await self._memory.engine.store.log.restore(_turns(scope, list(said)))
        self._memory.engine.worker.scan()
        await self._memory.settle()
        await self._memory.recall("builds the index", user_id=corpus.user, limit=1)

    async def rank(self, asked: Asked, limit: int) -> list[str]:
        hits = await self._memory.recall(asked.text, user_id=self._user, limit=limit, at=asked.at)
        return [str(hit.metadata["said"]) for hit in hits]


class PlainRanker(Ranker):
    """BM25 on words as they are written, and on pairs of characters where a script has no spaces."""

    name = "plain BM25"

    def __init__(self) -> None:
        self._index: WordIndex[int] = WordIndex()
        self._ids: list[str] = []

    async def take(self, corpus: Corpus) -> None:
        self._index = WordIndex()
        self._ids = [one.id for one in corpus.said]
        for number, one in enumerate(corpus.said):
            self._index.add(number, plain_terms(one.text))

    async def rank(self, asked: Asked, limit: int) -> list[str]:
        return [self._ids[found.key] for found in self._index.search(plain_terms(asked.text), limit)]


class DenseRanker(Ranker):
    """The nearest vectors: a turn's as Pagefile makes it, the question's as it was asked."""

    name = "dense alone"

    def __init__(self, vectors: Embedder) -> None:
        self._vectors = vectors
        self._rows = np.zeros((0, vectors.dimension), np.float32)
        self._ids: list[str] = []

    async def take(self, corpus: Corpus) -> None:
        self._ids = [one.id for one in corpus.said]
        texts = [embedded_texts(one.user, one.assistant) or ("",) for one in corpus.said]
        self._rows = np.stack([blended(list(await self._vectors.embed(some))) for some in texts])

    async def rank(self, asked: Asked, limit: int) -> list[str]:
        (question,) = await self._vectors.embed([asked.text])
        order: list[int] = np.argsort(-(self._rows @ question), kind="stable")[:limit].tolist()
        return [self._ids[number] for number in order]


def plain_terms(text: str) -> list[str]:
    """Lower-case words, none left out, none stemmed; pairs of Chinese characters."""
    found: list[str] = []
    for run in _WORD.findall(text.lower()):
        if re.match(f"[{CJK}]", run) and len(run) > 1:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            found.append(run)
    return found


def _conversation(said: Said) -> str:
    return said.conversation


def _turns(scope: Scope, said: Sequence[Said]) -> list[Turn]:
    """Turns as a log holds them. Nothing here makes a window, so their tokens are not counted."""
    return [
        Turn(
            # Not the set's own id, which it may use twice.
            id=f"{scope.conversation}/{number}",
            scope=scope,
            seq=number,
            status="done",
            user=one.user,
            assistant=one.assistant,
            steps=(),
            at=one.at,
            # Strictly rising, as a log's are, though a session has one time for all its turns.
            created=one.at + timedelta(microseconds=number),
            user_tokens=0,
            assistant_tokens=0,
            tokens=0,
            counter="none",
            metadata={"said": one.id},
        )
        for number, one in enumerate(said, 1)
    ]
