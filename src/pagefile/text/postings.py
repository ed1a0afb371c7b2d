"""Which documents contain a term, and how often, in a few bytes per pair.

A user of a hundred thousand turns has ten million such pairs: objects would take ten times the memory of arrays, and a
process that starts would spend seconds on making them. So most documents are in segments, which are sorted arrays that
never change, and only the newest in a dict; segments are merged as they grow in number.

A term is known by 48 bits of its hash alone: that two of a hundred thousand terms share theirs happens to one user in
fifty thousand, who then finds the turns of both. Hashes are made of the bytes of many texts at once, never of words as
objects: a user of ten thousand turns has a million of them.
"""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple, Self, TypeAlias

from pagefile.arrays import Bools, Float32s, Int32s, Int64s, Numbers, np

#: Documents in ascending order, and how often each has the term.
Holders: TypeAlias = "tuple[Int32s, Float32s]"

#: The weight of secondary (`aside`) words, relative to others: three tenths, in which counts are kept.
ASIDE = 0.3
#: The newest documents become a segment when there are this many.
_RECENT = 1024
#: Segments are merged up to this many documents, whose numbers then take two bytes.
_SLOT_BITS = 15
_MOST = 1 << _SLOT_BITS
#: Pairs that are merged at once.
_PAIRS_AT_ONCE = 1 << 17
#: The bits of a hash that are a term. Below them is room for the number of a document and for how a word is said in it, so
#: that sorting numbers is all it takes to count words.
_TERM = -1 << _SLOT_BITS + 1
#: Texts that are hashed in one go, to stay in the processor's cache.
_AT_ONCE = 64
#: What the bytes of a word are weighted with, as digits are with ten, and what numbers are scattered with; both are odd.
_BASE, _SCATTER = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_ALL = 1 << 64
#: More are made for texts that are longer.
_KEPT_POWERS = 1 << 16


class Document(NamedTuple):
    """Its words, separated by spaces."""

    words: str
    #: Words that count less.
    aside: str = ""

    @property
    def length(self) -> float:
        return _number(self.words) + ASIDE * _number(self.aside)

    def counts(self) -> dict[str, float]:
        counts: dict[str, float] = dict(Counter(self.words.split()))
        for word, count in Counter(self.aside.split()).items():
            counts[word] = counts.get(word, 0) + ASIDE * count
        return counts


class Posting:
    """The documents that contain one term, ascending, and how often; grows by one at a time."""

    __slots__ = ("counts", "slots")

    def __init__(self) -> None:
        self.slots = array("i")
        self.counts = array("f")

    def arrays(self) -> Holders:
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


class _Segment(NamedTuple):
    """The pairs of some consecutive documents, sorted by term, then by document."""

    first: int
    documents: int
    terms: Int64s
    #: Where the pairs of each term begin, and where the last ones end.
    starts: Int64s
    #: The documents, counted from the first one.
    slots: Numbers
    #: How often, in tenths.
    tenths: Numbers

    def holders(self, at: int) -> Holders:
        part = slice(self.starts[at], self.starts[at + 1])
        slots = self.slots[part].astype(np.int32)
        slots += self.first
        return slots, self.tenths[part].astype(np.float32) / np.float32(10)


class Postings:
    """The documents are numbered in the order in which they are added. Not thread-safe."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._recent: defaultdict[int, Posting] = defaultdict(Posting)
        #: How many documents there are, how many of them in segments, and how many pairs.
        self._size: int = 0
        self._sealed: int = 0
        self._entries: int = 0

    @property
    def entries(self) -> int:
        """The number of (term, document) pairs."""
        return self._entries

    def add(self, document: Document) -> None:
        counts = document.counts()
        for term, count in zip(_hashes([*counts]).tolist(), counts.values(), strict=True):
            posting = self._recent[term]
            posting.slots.append(self._size)
            posting.counts.append(count)
        self._entries += len(counts)
        self._size += 1
        if self._size - self._sealed >= _RECENT:
            self._seal()

    def extend(self, documents: Sequence[Document]) -> None:
        """Add many at once, which takes a tenth of the time."""
        if len(documents) < _RECENT // 4:
            for document in documents:
                self.add(document)
            return
        self._seal()
        for start in range(0, len(documents), _MOST):
            self._append(_counted(self._size, documents[start : start + _MOST]))

    def find(self, words: Sequence[str]) -> list[Holders]:
        """The holders of each word, as copies."""
        hashes = _hashes(words)
        parts: list[list[Holders]] = [[] for _ in words]
        for segment in self._segments:
            there, at = _found(segment, hashes)
            for number, place in zip(there, at, strict=True):
                parts[int(number)].append(segment.holders(int(place)))
        for number, term in enumerate(hashes.tolist()):
            if term in self._recent:
                slots, counts = self._recent[term].arrays()
                parts[number].append((slots.copy(), counts.copy()))
        return [_joined(some) for some in parts]

    def numbers(self, words: Sequence[str]) -> list[int]:
        """How many documents have each word, including removed ones."""
        hashes = _hashes(words)
        numbers = np.array(
            [len(self._recent[term].slots) if term in self._recent else 0 for term in hashes.tolist()]
        )
        for segment in self._segments:
            there, at = _found(segment, hashes)
            numbers[there] += segment.starts[at + 1] - segment.starts[at]
        return numbers.tolist()

    def pairs(self, words: Sequence[str]) -> tuple[Int64s, Int64s]:
        """The number of a word and of a document that has it, for all there are; for each document in the order of the words."""
        hashes = _hashes(words)
        parts = [
            (np.full(len(posting.slots), number), posting.arrays()[0].astype(np.int64))
            for number, term in enumerate(hashes.tolist())
            if (posting := self._recent.get(term)) is not None
        ]
        for segment in self._segments:
            there, at = _found(segment, hashes)
            begins = segment.starts[at]
            lengths = segment.starts[at + 1] - begins
            before = np.cumsum(lengths) - lengths
            places = np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths)
            parts.append((np.repeat(there, lengths), segment.first + segment.slots[places].astype(np.int64)))
        none = np.zeros(0, np.int64)
        return (
            np.concatenate([none, *(numbers for numbers, _ in parts)]),
            np.concatenate([none, *(slots for _, slots in parts)]),
        )

    def has(self, word: str, slot: int) -> bool:
        if slot >= self._sealed:
            term = int(_hashes([word])[0])
            return term in self._recent and _within(self._recent[term].slots, slot)
        segment = next(one for one in reversed(self._segments) if one.first <= slot)
        _, at = _found(segment, _hashes([word]))
        return len(at) > 0 and _within(segment.holders(int(at[0]))[0], slot)

    def packed(self, alive: Bools, renumbered: Int32s) -> "Postings":
        """The same without removed documents, in the new slots of the others."""
        self._seal()
        fresh = Postings()
        for segment in self._segments:
            if (living := _living(segment, alive, renumbered, fresh._size)).documents:
                fresh._append(living)
        return fresh

    def _seal(self) -> None:
        """Make a segment of the newest documents."""
        if self._size == self._sealed:
            return
        lengths = [len(posting.slots) for posting in self._recent.values()]
        hashes = np.repeat(np.fromiter(self._recent, np.int64, len(lengths)), lengths)
        # Each posting is sorted already, so a stable order by term is all that is needed.
        order = np.argsort(hashes, kind="stable")
        slots, counts = (column[order] for column in _joined([one.arrays() for one in self._recent.values()]))
        tenths = np.rint(counts * 10).astype(np.int64)
        terms, starts = _runs(hashes[order])
        documents = self._size - self._sealed
        self._recent.clear()
        self._entries -= len(slots)
        self._size = self._sealed
        self._append(_segment(self._sealed, documents, terms, starts, slots - self._sealed, tenths))

    def _append(self, segment: _Segment) -> None:
        self._entries += len(segment.slots)
        self._size += segment.documents
        self._sealed = self._size
        # As many on the way as there are powers of two: each document is merged that often.
        while self._segments and _belong_together(self._segments[-1], segment):
            segment = _merged(self._segments.pop(), segment)
        self._segments.append(segment)


def _belong_together(earlier: _Segment, later: _Segment) -> bool:
    return earlier.documents < 2 * later.documents and earlier.documents + later.documents <= _MOST


def _number(text: str) -> int:
    """How many words a text has."""
    return text.count(" ") + 1 if text else 0


def _hashes(words: Sequence[str]) -> Int64s:
    """The terms of words that have no spaces."""
    return _hashed(_Said.of([word.encode() for word in words])) if words else np.zeros(0, np.int64)


class _Said(NamedTuple):
    """The bytes of texts with a space after each, and where their words begin."""

    data: Numbers
    starts: Int64s

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        data = np.frombuffer(b" ".join([*texts, b""]), np.uint8)
        return cls(data, np.concatenate([np.zeros(1, np.int64), np.flatnonzero(data[:-1] == ord(" ")) + 1]))


def _hashed(said: _Said) -> Int64s:
    """The terms of all words."""
    data, starts = said
    powers, inverse = _powers(len(data))
    # A number with a digit for each byte, as if its word were the first.
    digits = np.cumsum(data * powers[: len(data)])[np.append(starts[1:], len(data)) - 1]
    digits = np.diff(digits, prepend=np.uint64(0)) * inverse[starts]
    digits ^= digits >> np.uint64(32)
    digits *= np.uint64(_SCATTER)
    digits ^= digits >> np.uint64(32)
    return digits.view(np.int64) & _TERM


def _powers(size: int) -> tuple[Numbers, Numbers]:
    """Those of the base and of its inverse, modulo 2^64."""
    return _kept_powers() if size <= _KEPT_POWERS else _made_powers(size)


@cache
def _kept_powers() -> tuple[Numbers, Numbers]:
    return _made_powers(_KEPT_POWERS)


def _made_powers(size: int) -> tuple[Numbers, Numbers]:
    factors = np.full((2, size), [[_BASE], [pow(_BASE, -1, _ALL)]], np.uint64)
    factors[:, 0] = 1
    powers, inverse = np.multiply.accumulate(factors, axis=1)
    return powers, inverse


def _found(segment: _Segment, hashes: Int64s) -> tuple[Int64s, Int64s]:
    """Which of the terms a segment has, by their numbers, and where."""
    at = np.searchsorted(segment.terms, hashes)
    there = np.flatnonzero(segment.terms.take(at, mode="clip") == hashes) if len(segment.terms) else at[:0]
    return there, at[there]


def _joined(parts: Sequence[Holders]) -> Holders:
    if len(parts) == 1:
        return parts[0]
    slots = [np.zeros(0, np.int32), *(slots for slots, _ in parts)]
    counts = [np.zeros(0, np.float32), *(counts for _, counts in parts)]
    return np.concatenate(slots), np.concatenate(counts)


def _within(slots: Sequence[int] | Int32s, slot: int) -> bool:
    at = bisect_left(slots, slot)
    return at < len(slots) and slots[at] == slot


# -- segments ----------------------------------------------------------------------------------------------------------


def _segment(
    first: int, documents: int, terms: Int64s, starts: Int64s, slots: Numbers, tenths: Numbers
) -> _Segment:
    """With numbers in as few bytes as they need."""
    ends = np.append(starts, len(slots))
    return _Segment(first, documents, terms, ends, _narrow(slots), _narrow(tenths))


def _narrow(numbers: Numbers) -> Numbers:
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _runs(ordered: Int64s) -> tuple[Int64s, Int64s]:
    """The numbers that occur in a sorted array, and where each begins."""
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return ordered[begins], begins


def _counted(first: int, documents: Sequence[Document]) -> _Segment:
    """What each document contains, counted by sorting the words of all of them."""
    sides = [one.words for one in documents], [one.aside for one in documents]
    # By term, then by document, with its own words before those aside.
    keys = np.concatenate([_keys(texts, aside) for aside, texts in enumerate(sides)])
    keys.sort()
    words, begins = _runs(keys)
    tenths = np.diff(begins, append=len(keys)) * np.where(words & 1, round(10 * ASIDE), 10)
    pairs, begins = _runs(words >> 1)
    tenths = np.add.reduceat(tenths, begins) if len(begins) else tenths
    terms, starts = _runs(pairs >> _SLOT_BITS)
    return _segment(first, len(documents), terms << _SLOT_BITS + 1, starts, pairs & _MOST - 1, tenths)


def _keys(texts: Sequence[str], aside: int) -> Int64s:
    """The term of every word of these texts, with the number of its text in the bits below."""
    parts = [np.zeros(0, np.int64)]
    for start in range(0, len(texts), _AT_ONCE):
        some = {
            number: text.encode()
            for number, text in enumerate(texts[start : start + _AT_ONCE], start)
            if text
        }
        if some:
            said = _Said.of([*some.values()])
            ends = np.searchsorted(said.starts, np.cumsum([len(text) + 1 for text in some.values()]))
            numbers = np.array([*some]) << 1 | aside
            parts.append(_hashed(said) | np.repeat(numbers, np.diff(ends, prepend=0)))
    return np.concatenate(parts)


def _merged(earlier: _Segment, later: _Segment) -> _Segment:
    """Two neighbouring segments as one: of each term, the pairs of the earlier come first.

    It is done in parts, since at once it would take ten times the memory of the segments.
    """
    documents = earlier.documents + later.documents
    size = len(earlier.slots) + len(later.slots)
    slots = np.empty(size, np.min_scalar_type(documents - 1))
    tenths = np.empty(size, np.result_type(earlier.tenths, later.tenths))
    terms, starts, end = [earlier.terms[:0]], [earlier.starts[:0]], 0
    for parts in _parts(earlier, later):
        first, second = (_pairs(one, *part) for one, part in zip((earlier, later), parts, strict=True))
        keys = np.concatenate([first[0], second[0] + earlier.documents])
        # Two sorted halves, which a stable sort merges.
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        part = slice(end, end + len(keys))
        slots[part] = keys & ~_TERM
        tenths[part] = np.concatenate([first[1], second[1]])[order]
        some, begins = _runs(keys & _TERM)
        terms.append(some)
        starts.append(begins + end)
        end += len(keys)
    ends = np.append(np.concatenate(starts), end)
    return _Segment(earlier.first, documents, np.concatenate(terms), ends, slots, tenths)


def _parts(earlier: _Segment, later: _Segment) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Which terms of both segments to take at once: as many of the earlier as have so many pairs."""
    cuts = np.unique(np.searchsorted(earlier.starts, np.arange(0, len(earlier.slots), _PAIRS_AT_ONCE)))
    cuts = cuts[(cuts > 0) & (cuts < len(earlier.terms))]
    places = np.searchsorted(later.terms, earlier.terms[cuts])
    ours = [0, *cuts.tolist(), len(earlier.terms)]
    theirs = [0, *places.tolist(), len(later.terms)]
    return zip(pairwise(ours), pairwise(theirs), strict=True)


def _pairs(segment: _Segment, begin: int, end: int) -> tuple[Int64s, Numbers]:
    """The pairs of some terms as numbers, in their order, and how often each is."""
    starts = segment.starts[begin : end + 1]
    part = slice(starts[0], starts[-1])
    return np.repeat(segment.terms[begin:end], np.diff(starts)) | segment.slots[part], segment.tenths[part]


def _living(segment: _Segment, alive: Bools, renumbered: Int32s, first: int) -> _Segment:
    """A segment without removed documents."""
    old = segment.first + segment.slots.astype(np.int64)
    kept = alive[old]
    there, starts = _runs(np.repeat(np.arange(len(segment.terms)), np.diff(segment.starts))[kept])
    documents = int(alive[segment.first : segment.first + segment.documents].sum())
    slots = renumbered[old[kept]] - first
    return _segment(first, documents, segment.terms[there], starts, slots, segment.tenths[kept])
