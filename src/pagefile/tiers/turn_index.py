"""What recall derives from the log, tracked by watermarks: the terms of turns, and their vectors.

Everything here can be rebuilt, and building it is idempotent: results are stored first, then the watermark
rises, so that a process that dies in between leaves work undone but nothing wrong.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from pagefile import ports
from pagefile.arrays import Keyed, np
from pagefile.errors import PagefileError
from pagefile.lru import Lru
from pagefile.records import Scope, Turn
from pagefile.text.speech import blended, embedded_texts, question_text, said_terms
from pagefile.text.words import terms
from pagefile.tiers.base import Vectors

#: Names the way `said_terms` and `terms` split a text: it must change whenever their output does, which a
#: test detects.
ANALYZER = "words-3"
#: Questions whose vectors are cached: a tool loop asks the same one repeatedly.
_QUESTIONS = 256
#: From this many turns on, segmenting them would block the event loop.
THREAD_FROM = 20


class Derived(ABC):
    """Something computed from every done turn."""

    @property
    @abstractmethod
    def tier(self) -> str:
        """The name of its watermarks."""

    @abstractmethod
    async def take(self, turns: Sequence[Turn], *, epoch: int) -> None:
        """Compute and store it for these turns, replacing earlier results; `ErasedError` if erased since `epoch`."""

    async def doubt(self, epoch: int) -> None:
        """Results from that epoch may have been erased meanwhile: make sure that external storage does not keep them."""


class Plan:
    """Conversations to read, and the state in which that was decided."""

    def __init__(self, behind: Sequence[ports.Behind], erased: int, epoch: int) -> None:
        self.behind = deque(behind)
        self.erased = erased
        self._epoch = epoch
        #: The epochs of conversations that are read again from their beginning.
        self._again: dict[Scope, int] = {}
        #: Log entries to read, including those that are not turns.
        self.left = sum(map(_entries, behind))

    def pop(self) -> ports.Behind:
        one = self.behind.popleft()
        self.left -= _entries(one)
        return one

    def push(self, one: ports.Behind) -> None:
        self.behind.appendleft(one)
        self.left += _entries(one)

    def epoch_of(self, begun: Sequence[ports.Behind]) -> int:
        """The epoch in which the positions of all these were known: earlier reads may contain erased data."""
        return min((self._again.get(_place(one), self._epoch) for one in begun), default=self._epoch)

    def take_back(self, one: ports.Behind, again: Sequence[ports.Behind], epoch: int) -> None:
        """A conversation must be read again, if it still exists."""
        rest = [other for other in self.behind if _place(other) != _place(one)]
        self.behind = deque([*again, *rest])
        self._again[_place(one)] = epoch
        self.left = sum(map(_entries, self.behind))

    def clear(self) -> None:
        self.behind.clear()
        self.left = 0


def _place(one: ports.Behind) -> Scope:
    """A conversation, regardless of its current owner."""
    return replace(one.scope, user=None)


def _entries(one: ports.Behind) -> int:
    return max(0, one.last_seq - one.seq)


@dataclass(eq=False, repr=False)
class Terms(Derived):
    """Terms, stored so that a new process can start its word index from them."""

    store: ports.TermStore

    @property
    def tier(self) -> str:
        return f"terms:{ANALYZER}"

    async def take(self, turns: Sequence[Turn], *, epoch: int) -> None:
        made = await anyio.to_thread.run_sync(partial(terms_of, turns))
        tenants: dict[str, list[ports.TurnTerms]] = {}
        for turn, one in zip(turns, made, strict=True):
            tenants.setdefault(turn.scope.tenant, []).append(one)
        for tenant, rows in tenants.items():
            await self.store.write(Scope(tenant), rows, ANALYZER, epoch=epoch)


def terms_of(turns: Sequence[Turn]) -> list[ports.TurnTerms]:
    made: list[ports.TurnTerms] = []
    for turn in turns:
        place = turn.scope.conversation or "", turn.seq or 0, turn.id, turn.at
        said, answered = said_terms(turn.user or ""), terms(turn.assistant or "")
        made.append(ports.TurnTerms(*place, " ".join(said), " ".join(answered)))
    return made


class OtherModelError(PagefileError):
    """The vectors here were made by another embedder."""


@dataclass(eq=False, repr=False)
class TurnVectors(Derived):
    """Vectors of turns: made by the embedder, kept in a vector store, and searched by recall."""

    index: ports.VectorIndex
    embedder: ports.Embedder
    marks: ports.Watermarks
    erasures: ports.Erasures

    def __post_init__(self) -> None:
        self.prepared = False
        #: Whether there is anything to find; if not, embedding a question is pointless.
        self.any = False
        #: The models whose vectors are being made again: those that the embedder is the successor of.
        self.replaced: Sequence[ports.EmbeddingModel] = ()
        self._questions: Lru[str, ports.Vector] = Lru(_QUESTIONS)
        #: Of turns that were asked about before they were indexed, by what was embedded.
        self._early: Lru[tuple[str, ...], ports.Vector] = Lru(_QUESTIONS)
        #: Whether the embedder has answered in this process: one of our own has to be loaded first.
        self.answered = False
        self._erasures = 0

    @property
    def tier(self) -> str:
        return tier_of(self.index, self.embedder.model)

    async def collections(self) -> tuple[int, list[ports.Collection]]:
        """The number of this embedder's vectors, and the vectors of others."""
        if not self.embedder.dimension:
            await self.embedder.ready()
        model = self.embedder.model
        collections = await self.index.collections()
        own = sum(one.vectors for one in collections if one.model == model)
        return own, [one for one in collections if one.model != model and one.vectors]

    async def models(self) -> tuple[bool, list[ports.EmbeddingModel]]:
        """Whether there are vectors of this embedder, and of which others there are any."""
        if not self.embedder.dimension:
            await self.embedder.ready()
        models = await self.index.models()
        return self.embedder.model in models, [model for model in models if model != self.embedder.model]

    async def prepare(self, *, beside: bool = False) -> None:
        """Prepare the vector store for this embedder; idempotent.

        If it holds only vectors of another embedder, or all vectors are elsewhere, it raises
        `OtherModelError` and creates nothing, unless `beside` allows new ones next to them, or the embedder is
        the successor of those that made them.
        """
        if self.prepared:
            return
        own, others = await self.models()
        tiers = [] if own else await self.marks.tiers()
        here = f"episodes:{self.index.name}:"
        elsewhere = [tier for tier in tiers if tier.startswith("episodes:") and not tier.startswith(here)]
        replaced = [model for model in others if model.name in self.embedder.replaces]
        if (len(others) > len(replaced) or elsewhere) and not own and not beside:
            explained = self._explained((await self.collections())[1], elsewhere)
            # One wrong answer may have told the dimension: the next attempt asks again.
            self.embedder.relearn()
            raise OtherModelError(explained)
        if self.index.apart:
            await self.erasures.begin(self.index.name)
        await self.index.prepare(self.embedder.model)
        if self.tier in tiers:
            # The vector store was emptied: its watermarks no longer apply.
            await self.marks.drop(self.tier)
        self.any, self.replaced = own, replaced
        self.prepared = True

    async def drop_replaced(self) -> int:
        """Remove the vectors of predecessors, once all turns have one of this embedder; returns how many those were."""
        if not self.replaced or await self.marks.behind(self.tier, limit=1):
            return 0
        dropped = 0
        for model in self.replaced:
            dropped += await self.index.drop(model)
            await self.marks.drop(tier_of(self.index, model))
        self.replaced = ()
        return dropped

    async def doubt(self, epoch: int) -> None:
        if self.index.apart:
            # It may already have followed an erasure, and may be unreachable now: the erasure is owed again.
            with suppress(PagefileError):
                await self.erasures.redo(self.index.name, epoch)
                await self.index.erase_before((await self.erasures.owed(self.index.name)).scopes)

    async def take(self, turns: Sequence[Turn], *, epoch: int) -> None:
        texts = [(turn, embedded_texts(turn.user, turn.assistant)) for turn in turns]
        said = [(turn, some) for turn, some in texts if some]
        vectors = await self._blends([some for _, some in said])
        rows = [
            ports.VectorRow(turn.scope, turn.seq or 0, turn.id, turn.at, vector)
            for (turn, _), vector in zip(said, vectors, strict=True)
        ]
        if rows:
            if self.index.apart:
                # Erasures during the computation must be owed before the vectors are put, in case this
                # process dies afterwards.
                await self.erasures.redo(self.index.name, epoch)
            await self.index.put(self.embedder.model, rows, epoch=epoch)
            self.any = True

    async def near(
        self, scope: Scope, question: str, limit: int, shared: Vectors | None = None
    ) -> Sequence[ports.VectorHit]:
        """The turns closest to a question, of whose texts other tiers may have vectors in `shared`; the closest first."""
        vector = await self._asked(question, shared)
        return () if vector is None else await self.index.search(self.embedder.model, scope, vector, limit)

    async def similarities(
        self, scope: Scope, question: str, limit: int, shared: Vectors | None = None
    ) -> Keyed:
        """How similar they are, by the hash of their conversation, seq and id."""
        if (vector := await self._asked(question, shared)) is None:
            return Keyed.of({})
        return await self.index.similarities(self.embedder.model, scope, vector, limit)

    async def similar(
        self, question: str, turns: Sequence[Turn], shared: Vectors | None = None
    ) -> list[float]:
        """How similar turns are that have no vectors yet: they are embedded now, and not stored."""
        asked, erasures = await self._question(question, shared), self._erasures
        texts = [embedded_texts(turn.user, turn.assistant) for turn in turns]
        known = {some: self._early[some] for some in texts if some in self._early}
        missing = [some for some in dict.fromkeys(texts) if some and some not in known]
        known |= dict(zip(missing, await self._blends(missing), strict=True))
        if erasures == self._erasures:
            self._early.update(known)
        return [float(known[some] @ asked) if some else 0.0 for some in texts]

    async def _blends(self, texts: Sequence[Sequence[str]]) -> list[ports.Vector]:
        """A vector for each turn, of the texts that make it up."""
        vectors = await self._embedded([text for some in texts for text in some])
        ends = np.cumsum([0, *map(len, texts)])
        return [
            blended(list(vectors[end - len(some) : end])) for some, end in zip(texts, ends[1:], strict=True)
        ]

    async def _asked(self, question: str, shared: Vectors | None) -> ports.Vector | None:
        """The vector of a question; None where there is nothing to compare it with."""
        await self.prepare()
        if not self.any or self.replaced:
            # Another process may make them.
            self.any, others = await self.models()
            self.replaced = [model for model in self.replaced if model in others]
        return await self._question(question, shared) if self.any else None

    async def _question(self, question: str, shared: Vectors | None) -> ports.Vector:
        text = question_text(question)
        if text not in self._questions:
            known: Vectors = {} if shared is None else shared
            if text not in known:
                known[text] = (await self._embedded([text]))[0]
            self._questions[text] = known[text]
        return self._questions[text]

    async def _embedded(self, texts: Sequence[str]) -> ports.Vector:
        parts = [
            await self.embedder.embed(texts[start : start + self.embedder.batch])
            for start in range(0, len(texts), self.embedder.batch)
        ]
        self.answered = True
        return np.concatenate([np.zeros((0, self.embedder.dimension), dtype=np.float32), *parts])

    def forget(self) -> None:
        self._questions.clear()
        self._early.clear()
        self.embedder.forget()
        self._erasures += 1

    def _explained(self, others: Sequence[ports.Collection], elsewhere: Sequence[str]) -> str:
        mine = self.embedder.model.key
        if others:
            there = ", ".join(f"{one.model.key} ({one.vectors:,} vectors)" for one in others)
            return (
                f"the embedder is {mine} now, and what is in {self.index.name} was made by {there}: "
                "run `pagefile rebuild` to rebuild all vectors, or go back to that embedder"
            )
        there = ", ".join(tier.partition(":")[2].replace(":", ": ", 1) for tier in elsewhere)
        return (
            f"vectors live in {self.index.name} now, and there are none of {mine} in it; they were made elsewhere ({there}): "
            "run `pagefile rebuild` to rebuild all vectors, or go back to that index"
        )


def tier_of(index: ports.VectorIndex, model: ports.EmbeddingModel) -> str:
    """The name of the watermarks of a model's vectors in an index."""
    return f"episodes:{index.name}:{model.key}"
