"""Which texts answer a query, by their words alone.

`WordIndex` is BM25 that grows one document at a time: a conversation gains a turn every few seconds, and
refitting ten thousand for each is what makes lexical search seem slow.
"""

import math
import threading
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Self, TypeVar

from pagefile.arrays import Bools, Float32s, Float64s, Int32s, Numbers, np

K = TypeVar("K", bound=Hashable)

#: How fast repetition saturates. Turns are short and repeat a word for emphasis at most, so below the usual
#: 1.5.
K1 = 1.2
#: How much a long document is discounted: the usual value; turns with their neighbours differ little in
#: length.
B = 0.75
#: The weight of secondary (`aside`) words, relative to others.
ASIDE = 0.3
#: Removed documents stay in the postings until they are this share of all: then the index is packed.
PACK_AT = 0.25


@dataclass(frozen=True, slots=True)
class Ranked(Generic[K]):
    """A document that shares words with the query."""

    key: K
    score: float


class Match(NamedTuple):
    """The documents that contain one term of a query, by their slot in the index, and how often."""

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


class Posting:
    """The documents that contain one term, ascending, and how often."""

    __slots__ = ("counts", "slots")

    def __init__(self) -> None:
        self.slots = array("i")
        self.counts = array("f")

    def arrays(self) -> tuple[Int32s, Float32s]:
        """Slots and counts as views, which pin the buffers: valid only until something is added."""
        return np.frombuffer(self.slots, dtype=np.int32), np.frombuffer(self.counts, dtype=np.float32)

    def packed(self, alive: Bools, renumbered: Int32s) -> Self:
        """The same without removed documents, in the new slots of the others."""
        slots, counts = self.arrays()
        living = alive[slots]
        fresh = type(self)()
        fresh.slots.frombytes(renumbered[slots[living]].tobytes())
        fresh.counts.frombytes(counts[living].tobytes())
        return fresh


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
        self._postings: defaultdict[str, Posting] = defaultdict(Posting)
        self._lengths = np.zeros(16, dtype=np.float32)
        self._alive = np.zeros(16, dtype=np.bool_)
        self._total = 0.0
        self._entries = 0

    @property
    def postings(self) -> int:
        """The number of (term, document) pairs held; each takes 8 bytes, and each term some 300 more."""
        return self._entries

    def add(self, key: K, words: Sequence[str], aside: Sequence[str] = ()) -> float:
        """Add a document and return its length, to which words in `aside` add less; an existing key is left as it is."""
        length = len(words) + ASIDE * len(aside)
        with self._lock:
            if key in self._slot_of:
                return float(self._lengths[self._slot_of[key]])
            slot = len(self._keys)
            self._grow_to(slot + 1)
            self._slot_of[key] = slot
            self._keys.append(key)
            self._lengths[slot] = length
            self._alive[slot] = True
            self._total += length
            counts: dict[str, float] = dict(Counter(words))
            for word, count in Counter(aside).items():
                counts[word] = counts.get(word, 0) + ASIDE * count
            self._entries += len(counts)
            for word, count in counts.items():
                posting = self._postings[word]
                posting.slots.append(slot)
                posting.counts.append(count)
        return length

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

    def slot(self, key: K) -> int | None:
        """The slot of a document, as used by `matches`; None if it is unknown."""
        return self._slot_of.get(key)

    def matches(self, asked: Mapping[str, float]) -> Matches:
        """The current documents that contain each term, with the term's query weight; the arrays are copies."""
        with self._lock:
            return self._matches(asked)

    def _matches(self, asked: Mapping[str, float]) -> Matches:
        number = len(self._slot_of)
        found: list[Match] = []
        for word, much in asked.items():
            if (posting := self._postings.get(word)) is not None:
                slots, counts = self._living(posting)
                weight = much * rarity(number, len(slots))
                found.append(Match(much, weight, np.array(slots), np.array(counts)))
        lengths = np.array(self._lengths[: len(self._keys)])
        return Matches(found, lengths, self._total / number if self._total > 0 else 1.0)

    def knows(self, term: str) -> bool:
        """Whether any document ever contained a term."""
        return term in self._postings

    def share(self, key: K, asked: Mapping[str, float], *others: K) -> float:
        """The share (0 to 1) of the terms' weight, by query weight and rarity, that a document contains, or others with it."""
        with self._lock:
            slots = [slot for one in (key, *others) if (slot := self._slot_of.get(one)) is not None]
            number = len(self._slot_of)
            held = total = 0.0
            for word, much in asked.items():
                posting = self._postings.get(word)
                weight = much * rarity(number, 0 if posting is None else len(self._living(posting)[0]))
                total += weight
                if posting is not None and any(_has(posting.slots, slot) for slot in slots):
                    held += weight
            return held / total if total else 0.0

    def shares(self, asked: Mapping[str, float]) -> tuple[Float64s, float]:
        """`share` of every slot, and the share of the terms' weight that any document contains."""
        with self._lock:
            found = self._matches(asked)
            number, size = len(self._slot_of), len(self._keys)
            unknown = sum(much for word, much in asked.items() if word not in self._postings)
        held = np.zeros(size)
        for match in found.terms:
            held[match.slots] += match.weight
        known = sum(match.weight for match in found.terms)
        total = known + unknown * rarity(number, 0)
        return (held / total, known / total) if total else (held, 0.0)

    def sharing(self, key: K, words: Iterable[str], holders: int) -> dict[int, tuple[float, int]]:
        """The slots that have words in common with a document's: the share of the words' weight, and how many.

        Words that more than `holders` documents have say little, and are left out of what is shared.
        """
        with self._lock:
            number, own, total = len(self._slot_of), self._slot_of.get(key), 0.0
            found: dict[int, tuple[float, int]] = {}
            for word in words:
                slots = self._postings[word].slots if word in self._postings else ()
                weight = rarity(number, len(slots))
                total += weight
                if len(slots) <= holders:
                    for slot in slots:
                        held, many = found.get(slot, (0.0, 0))
                        found[slot] = held + weight, many + 1
            return {
                slot: (held / total, many)
                for slot, (held, many) in found.items()
                if slot != own and self._alive[slot]
            }

    def _living(self, posting: Posting) -> tuple[Int32s, Float32s]:
        """A posting without removed documents, valid only during this search."""
        slots, counts = posting.arrays()
        if len(self._slot_of) == len(self._keys):
            return slots, counts
        living = self._alive[slots]
        return slots[living], counts[living]

    def _grow_to(self, size: int) -> None:
        if size > len(self._lengths):
            self._lengths = np.resize(self._lengths, 2 * size)
            self._alive = np.resize(self._alive, 2 * size)

    def _pack(self) -> None:
        alive, renumbered = self._renumber()
        packed = {word: posting.packed(alive, renumbered) for word, posting in self._postings.items()}
        held = {word: posting for word, posting in packed.items() if posting.slots}
        self._postings = defaultdict(Posting, held)
        self._entries = sum(len(posting.slots) for posting in held.values())
        self._lengths[: len(self._keys)] = self._lengths[: len(alive)][alive]
        self._alive[:] = False
        self._alive[: len(self._keys)] = True


def _has(slots: Sequence[int], slot: int) -> bool:
    at = bisect_left(slots, slot)
    return at < len(slots) and slots[at] == slot


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
