"""Which texts answer a query, by their words alone.

`WordIndex` is BM25 that grows one document at a time: a conversation gains a turn every few seconds, and
refitting ten thousand for each is what makes lexical search seem slow.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pagefile.arrays import Bools, Float32s, Float64s, Int32s, Numbers, np
from pagefile.text.postings import ASIDE, Document, Holders, Postings

K = TypeVar("K", bound=Hashable)

#: How fast repetition saturates. Turns are short and repeat a word for emphasis at most, so below the usual
#: 1.5.
K1 = 1.2
#: How much a long document is discounted: the usual value; turns with their neighbours differ little in
#: length.
B = 0.75
#: Removed documents stay in the postings until they are this share of all: then the index is packed.
PACK_AT = 0.25


@dataclass(frozen=True, slots=True)
class Ranked(Generic[K]):
    """A document that shares words with the query."""

    key: K
    score: float


class Match(NamedTuple):
    """The documents that contain one term of a query, by their slot in the index, and how often."""

    word: str
    asked: float
    #: The query weight of the term times its rarity.
    weight: float
    slots: Int32s
    counts: Float32s


class Matches(NamedTuple):
    """The matches of a query in an index: enough to score the documents differently."""

    terms: Sequence[Match]
    lengths: Float32s
    average: float


class SlotIndex(ABC, Generic[K]):
    """Documents in slots, in order of insertion. A removed one leaves its slot empty until the index is packed."""

    def __init__(self) -> None:
        self._slot_of: dict[K, int] = {}
        self._keys: list[K] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, key: object) -> bool:
        return key in self._slot_of

    def remove(self, keys: Iterable[K]) -> None:
        """Remove documents; unknown keys are ignored."""
        with self._lock:
            self._remove(keys)

    def _remove(self, keys: Iterable[K]) -> None:
        for key in keys:
            if (slot := self._slot_of.pop(key, None)) is not None:
                self._removed(slot)
        if len(self._keys) - len(self._slot_of) > PACK_AT * len(self._keys):
            self._pack()

    @abstractmethod
    def _removed(self, slot: int) -> None:
        """Take a removed document out of the totals."""

    @abstractmethod
    def _pack(self) -> None:
        """Build everything without the empty slots."""

    def _renumber(self) -> tuple[Bools, Int32s]:
        """Close the gaps; returns which old slots are still in use, and the new slot of each."""
        alive = np.zeros(len(self._keys), dtype=np.bool_)
        alive[list(self._slot_of.values())] = True
        self._keys = [key for key, lives in zip(self._keys, alive, strict=True) if lives]
        self._slot_of = {key: slot for slot, key in enumerate(self._keys)}
        return alive, np.cumsum(alive, dtype=np.int32) - np.int32(1)


class WordIndex(SlotIndex[K]):
    """BM25 over documents that are added and removed. Thread-safe.

    Equal scores: newest first (by insertion), since of two turns that say the same the later is likelier to hold.
    """

    def __init__(self) -> None:
        super().__init__()
        self._postings = Postings()
        self._lengths = np.zeros(16, dtype=np.float32)
        self._alive = np.zeros(16, dtype=np.bool_)
        self._total = 0.0

    @property
    def postings(self) -> int:
        """The number of (term, document) pairs held; most take three or four bytes."""
        return self._postings.entries

    def add(self, key: K, words: Sequence[str], aside: Sequence[str] = ()) -> None:
        """Add a document, in which words in `aside` count less; an existing key is left as it is."""
        self.extend([(key, Document(" ".join(words), " ".join(aside)))])

    def extend(self, documents: Iterable[tuple[K, Document]]) -> None:
        """Add documents; many at once take a tenth of the time."""
        with self._lock:
            fresh = {key: document for key, document in documents if key not in self._slot_of}
            start, end = len(self._keys), len(self._keys) + len(fresh)
            self._grow_to(end)
            self._slot_of.update(zip(fresh, range(start, end), strict=True))
            self._keys += fresh
            lengths = [document.length for document in fresh.values()]
            self._lengths[start:end] = lengths
            self._alive[start:end] = True
            self._total += sum(lengths)
            self._postings.extend([*fresh.values()])

    def _removed(self, slot: int) -> None:
        self._alive[slot] = False
        self._total -= float(self._lengths[slot])

    def search(self, words: Sequence[str] | Mapping[str, float], limit: int) -> list[Ranked[K]]:
        """The best documents that share a term with the query, best first; terms may have weights."""
        with self._lock:
            if not self._slot_of or limit <= 0:
                return []
            found = self._matches(words if isinstance(words, Mapping) else Counter(words))
            keys = self._keys  # only ever appended to; packing makes a new list
        scores = np.zeros(len(found.lengths), dtype=np.float32)
        norms = K1 * (1 - B + B / found.average * found.lengths)
        for match in found.terms:
            scores[match.slots] += (
                match.weight * (K1 + 1) * match.counts / (match.counts + norms[match.slots])
            )
        return [Ranked(keys[slot], float(scores[slot])) for slot in best_first(scores, limit)[:limit]]

    def _matches(self, asked: Mapping[str, float]) -> Matches:
        number, lengths = len(self._slot_of), self._lengths[: len(self._keys)].copy()
        return matched(asked, self._living([*asked]), number, lengths, self._total)

    def knows(self, term: str) -> bool:
        """Whether any document ever contained a term."""
        return self._postings.numbers([term])[0] > 0

    def _holders(self, words: Sequence[str]) -> list[int]:
        if len(self._slot_of) == len(self._keys):
            return self._postings.numbers(words)
        return [len(slots) for slots, _ in self._living(words)]

    def share(
        self,
        key: K,
        asked: Mapping[str, float],
        *others: K,
        instead: Mapping[str, Collection[str]] | None = None,
    ) -> float:
        """The share (0 to 1) of the terms' weight, by query weight and rarity, that a document contains, or others with it.

        A term is contained as well if one of those is that may be there `instead` of it.
        """
        ways = [(word, way) for word in asked for way in (word, *(instead or {}).get(word, ()))]
        often, there = Counter[str](), set[str]()
        with self._lock:
            slots = [slot for one in (key, *others) if (slot := self._slot_of.get(one)) is not None]
            number, has = len(self._slot_of), self._postings.has
            for (word, way), holders in zip(ways, self._holders([way for _, way in ways]), strict=True):
                often[word] = max(often[word], holders)
                if word not in there and any(has(way, slot) for slot in slots):
                    there.add(word)
        weights = {word: much * rarity(number, often[word]) for word, much in asked.items()}
        held = sum(weight for word, weight in weights.items() if word in there)
        return held / (sum(weights.values()) or 1.0)

    def _living(self, words: Sequence[str]) -> list[Holders]:
        """The holders of each word, without removed documents."""
        found = self._postings.find(words)
        if len(self._slot_of) == len(self._keys):
            return found
        living = [self._alive[slots] for slots, _ in found]
        return [(slots[keep], counts[keep]) for keep, (slots, counts) in zip(living, found, strict=True)]

    def _grow_to(self, size: int) -> None:
        if size > len(self._lengths):
            self._lengths = np.resize(self._lengths, 2 * size)
            self._alive = np.resize(self._alive, 2 * size)

    def _pack(self) -> None:
        alive, renumbered = self._renumber()
        self._postings = self._postings.packed(alive, renumbered)
        self._lengths[: len(self._keys)] = self._lengths[: len(alive)][alive]
        self._alive[:] = False
        self._alive[: len(self._keys)] = True


def matched(
    asked: Mapping[str, float], holders: Sequence[Holders], number: int, lengths: Float32s, total: float
) -> Matches:
    """What a query matches among a number of documents of these lengths, by the holders of each of its terms."""
    found = [
        Match(word, much, much * rarity(number, len(slots)), slots, counts)
        for (word, much), (slots, counts) in zip(asked.items(), holders, strict=True)
        if len(slots)
    ]
    return Matches(found, lengths, total / number if total > 0 else 1.0)


def rarity(number: int, holders: int) -> float:
    """Okapi's inverse document frequency over the current documents, plus the 1 that keeps it positive."""
    return math.log(1 + (number - holders + 0.5) / (holders + 0.5))


def best_first(scores: Numbers, limit: int, *then: Float64s) -> list[int]:
    """Slots with a score, best first, at least the first `limit`; equals by what is higher `then`, last the newest."""
    found = np.flatnonzero(scores > 0)
    if limit < len(found):
        bar = np.partition(scores[found], -limit)[-limit]
        found = found[scores[found] >= bar]
    return found[np.lexsort((-found, *(-key[found] for key in then), -scores[found]))].tolist()


class Scored(NamedTuple):
    """The scores of documents for a query, and the share of its terms (by rarity) in the best one."""

    scores: list[float]
    best_share: float


def bm25(
    asked: Mapping[str, float],
    documents: Sequence[Sequence[str]],
    aside: Sequence[Mapping[str, int]] = (),
) -> Scored:
    """BM25 over documents that are asked once: nothing is kept of them, and only the terms of the query are counted."""
    counts = [Counter[str](word for word in words if word in asked) for words in documents]
    nothing: Mapping[str, int] = {}
    beside = aside or [nothing] * len(documents)
    held = [{*own, *(asked.keys() & near)} for own, near in zip(counts, beside, strict=True)]
    holders = Counter(word for words in held for word in words)
    weights = {word: much * rarity(len(documents), holders[word]) for word, much in asked.items()}
    average = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    scores: list[float] = []
    for words, own, near, document in zip(held, counts, beside, documents, strict=True):
        norm = K1 * (1 - B + B * len(document) / average)
        much = ((weights[word], own[word] + ASIDE * near.get(word, 0)) for word in words)
        scores.append(sum(weight * (K1 + 1) * count / (count + norm) for weight, count in much))
    best = max(range(len(scores)), key=scores.__getitem__, default=None)
    found = 0.0 if best is None else sum(weights[word] for word in held[best])
    return Scored(scores, found / (sum(weights.values()) or 1.0))
