"""Which of a user's facts matter now: TF-IDF cosine similarity to the conversation, and the confidence of each fact.

`FactIndex` gives the same result as refitting a vectorizer over all facts and the question, without
refitting. The weight of a feature is `L + 1 - ln(1 + df)`, where `L` depends only on the number of facts; so
the square of a fact's length is `(L + 1)² A - 2 (L + 1) B + C` with three sums over its own features, and a
new fact affects only the sums of those that share a feature with it.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeVar

from pagefile.arrays import Float64s, Int32s, np
from pagefile.lru import Lru
from pagefile.text.bm25 import SlotIndex
from pagefile.text.glossary import counterparts
from pagefile.text.postings import Posting
from pagefile.text.scores import number
from pagefile.text.sentences import HAN
from pagefile.text.words import is_trivial, terms

K = TypeVar("K", bound=Hashable)
Floats = Float64s

SIMILARITY_WEIGHT = 0.6
CONFIDENCE_WEIGHT = 0.4
#: Facts that share this much of their features are near-duplicates.
NEAR_DUPLICATE = 0.8
#: Near-duplicates are searched among this many: a budget of 2000 tokens holds no more.
_DIVERSE_AMONG = 40
#: Lengths of Latin n-grams, which let `pytest` match `python` and `test`, unlike whole words.
_RUNS = (2, 3, 4)
#: Texts whose similarities are remembered until a fact changes.
_COMPARED = 16
#: Beyond this share of new facts, all sums are recomputed at once.
_BULK_SHARE = 0.1


def features(text: str) -> Counter[str]:
    """Words, pairs of Chinese characters, and Latin n-grams, which a leading space sets apart from words."""
    return Counter(chain.from_iterable(map(_features_of, terms(text))))


@lru_cache(maxsize=1 << 14)  # people use few words, many times
def _features_of(word: str) -> tuple[str, ...]:
    if not word.isascii():
        return (word,)
    runs = (f" {word[at : at + size]}" for size in _RUNS for at in range(len(word) - size + 1))
    return word, *runs


class _Posting(Posting):
    """The facts that contain a feature, how often, and how many of them still exist."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        super().__init__()
        self.held = 0

    def squares(self) -> tuple[Int32s, Floats]:
        slots, counts = self.arrays()
        return slots, counts.astype(np.float64) ** 2


class FactIndex(SlotIndex[K]):
    """The facts of one user, which are added and removed one at a time. Thread-safe.

    It `translates` a query's words that no fact has, if it is to.
    """

    def __init__(self, *, translates: bool = False) -> None:
        super().__init__()
        self._translates = translates
        self._postings: dict[str, _Posting] = {}
        self._texts: list[str] = []
        #: A, B and C of the formula above, one row each.
        self._sums = np.zeros((3, 16))
        #: The similarities to texts compared last: the turns before a message are compared again with the next ones.
        self._compared: Lru[str, tuple[list[int], list[float]]] = Lru(_COMPARED)

    def add(self, items: Iterable[tuple[K, str]]) -> None:
        """Add facts; an existing key gets the new text."""
        with self._lock:
            fresh = dict(items)
            self._compared.clear()
            self._remove([key for key in fresh if key in self._slot_of])
            bulk = len(fresh) > 1 and len(fresh) > _BULK_SHARE * len(self._slot_of)
            for key, text in fresh.items():
                self._append(key, text, bulk=bulk)
            if bulk:
                self._sum_up()

    def similarities(self, query: str) -> dict[K, float]:
        """The cosine similarity (0 to 1) of each fact that shares a feature with the query; others are omitted."""
        with self._lock:
            slots, values = self._similar(query)
            keys = self._keys
        return {keys[slot]: value for slot, value in zip(slots, values, strict=True)}

    def similarity_array(self, query: str, keys: Sequence[K]) -> Floats:
        """The cosine similarity of each of these facts to the query, in the same order; 0 for those removed meanwhile."""
        with self._lock:
            slots, values = self._similar(query)
            # The last one is that of facts which are no longer here.
            every = np.zeros(len(self._keys) + 1)
            every[slots] = values
            return every[[self._slot_of.get(key, -1) for key in keys]] if keys else np.zeros(0)

    def _similar(self, query: str) -> tuple[list[int], list[float]]:
        if query not in self._compared:
            self._compared[query] = self._compare(query)
        return self._compared[query]

    def _compare(self, query: str) -> tuple[list[int], list[float]]:
        asked = self._asked(query)
        most = math.log(2 + len(self._slot_of)) + 1  # the query counts as one of the texts
        shared = [
            (times, posting)
            for feature, times in asked.items()
            if (posting := self._postings.get(feature)) is not None and posting.held
        ]
        if not shared:
            return [], []
        times = np.array([times for times, _ in shared], np.float64)
        held = np.array([posting.held for _, posting in shared])
        squares = (most - np.log(2 + held)) ** 2
        shifts = squares - (most - np.log(1 + held)) ** 2
        # Features that no fact has count for the length of the query only.
        others = sum(number * number for number in asked.values()) - float(times @ times)
        asked_square = float(times * times @ squares) + others * (most - math.log(2)) ** 2
        holders = [posting.arrays() for _, posting in shared]
        where = np.concatenate([slots for slots, _ in holders])
        counts = np.concatenate([counts for _, counts in holders]).astype(np.float64)
        feature = np.repeat(np.arange(len(shared)), [len(slots) for slots, _ in holders])
        size = len(self._keys)
        dot = np.bincount(where, (times * squares)[feature] * counts, minlength=size)
        norms = most * most * self._sums[0, :size] - 2 * most * self._sums[1, :size] + self._sums[2, :size]
        norms += np.bincount(where, shifts[feature] * counts * counts, minlength=size)
        found = np.flatnonzero((dot > 0) & (self._sums[0, :size] > 0))
        values = np.minimum(1.0, dot[found] / np.sqrt(norms[found] * asked_square))
        return found.tolist(), values.tolist()

    def _asked(self, query: str) -> Counter[str]:
        """The features of a query; those of a word that no fact has are what it is called in the other language, if a fact has that."""
        asked = features(query)
        if not self._translates:
            return asked
        for word, others in counterparts(word for word in terms(query) if not self._holds(word)).items():
            if there := [other for other in others if self._holds(other)]:
                asked -= Counter(dict.fromkeys(_features_of(word), asked[word]))
                asked.update({feature: 1 for other in there for feature in _features_of(other)})
        return asked

    def _holds(self, feature: str) -> bool:
        return (posting := self._postings.get(feature)) is not None and posting.held > 0

    def _append(self, key: K, text: str, *, bulk: bool) -> None:
        slot = len(self._keys)
        if slot >= self._sums.shape[1]:
            self._sums = np.pad(self._sums, ((0, 0), (0, slot + 1)))
        self._slot_of[key] = slot
        self._keys.append(key)
        self._texts.append(text)
        counts = features(text)
        for feature in counts:
            posting = self._postings.setdefault(feature, _Posting())
            if bulk:
                posting.held += 1
            else:
                self._held(posting, posting.held + 1)
            posting.slots.append(slot)
            posting.counts.append(counts[feature])
        if not bulk:
            self._sums[:, slot] = self._sums_of(counts)

    def _removed(self, slot: int) -> None:
        self._compared.clear()
        for feature in features(self._texts[slot]):
            posting = self._postings[feature]
            self._held(posting, posting.held - 1)
        self._texts[slot] = ""
        self._sums[:, slot] = 0

    def _held(self, posting: _Posting, now: int) -> None:
        """One fact more or fewer contains a feature: its weight changes for all that contain it."""
        before, after = math.log(1 + posting.held), math.log(1 + now)
        posting.held = now
        slots, squares = posting.squares()
        self._sums[1, slots] += (after - before) * squares
        self._sums[2, slots] += (after * after - before * before) * squares

    def _sums_of(self, counts: Mapping[str, int]) -> tuple[float, float, float]:
        a = b = c = 0.0
        for feature, count in counts.items():
            rarity = math.log(1 + self._postings[feature].held)
            a += count * count
            b += count * count * rarity
            c += count * count * rarity * rarity
        return a, b, c

    def _sum_up(self) -> None:
        self._sums[:] = 0
        for posting in self._postings.values():
            slots, squares = posting.squares()
            rarity = math.log(1 + posting.held)
            for row, factor in enumerate((1.0, rarity, rarity * rarity)):
                self._sums[row, slots] += factor * squares
        gone = np.ones(len(self._keys), dtype=np.bool_)
        gone[list(self._slot_of.values())] = False
        self._sums[:, : len(gone)][:, gone] = 0

    def _pack(self) -> None:
        """Rewrite everything without what was removed, in order of insertion; this also resets rounding errors."""
        alive, renumbered = self._renumber()
        held = {feature: posting for feature, posting in self._postings.items() if posting.held}
        self._postings = {feature: posting.packed(alive, renumbered) for feature, posting in held.items()}
        for posting in self._postings.values():
            posting.held = len(posting.slots)
        self._texts = [text for text, lives in zip(self._texts, alive, strict=True) if lives]
        self._sums = np.zeros((3, max(16, 2 * len(self._keys))))
        self._sum_up()


# -- from similarity to rank
# ----------------------------------------------------------------------------------------


def scores(
    similarities: Sequence[float] | Floats | None,
    confidences: Sequence[float],
    *,
    similarity_weight: float = SIMILARITY_WEIGHT,
    confidence_weight: float = CONFIDENCE_WEIGHT,
) -> Floats:
    """The score of each fact: similarity, relative to the highest, and confidence.

    Relative, or the two weights would apply to different ranges. If nothing is similar, only confidence counts.
    """
    sure = confidence_weight * np.asarray(confidences, dtype=np.float64)
    if similarities is None or not len(similarities):
        return sure
    alike = np.maximum(0.0, np.asarray(similarities, dtype=np.float64))
    best = float(alike.max())
    return similarity_weight * alike / best + sure if best > 0 else sure


def blended(similarities: Floats, dense: Floats | None) -> Floats:
    """Similarity by words or by meaning, whichever is stronger, each relative to its maximum.

    Cosines of embeddings are never near zero: what counts is how far a fact is above the median.
    """
    words = _relative(np.maximum(0.0, similarities))
    if dense is None or not len(dense):
        return words
    usual = float(np.median(dense)) if len(dense) > 1 else 0.0
    return np.maximum(words, _relative(np.maximum(0.0, dense - usual)))


_SUBJECT = re.compile(r"^\s*(?:(?:the )?user\b(?:['’]s\b)?|用户的?)\s*", re.IGNORECASE)


def statement(text: str) -> str:
    """A fact without the words that most facts begin with: "The user", 用户."""
    return _SUBJECT.sub("", text) or text


def says_nothing(question: str | None) -> bool:
    """Whether a message has no topic of its own: a greeting, a thank you, a "go on"."""
    return not question or is_trivial(question)


def weighed(confidences: Sequence[float], *, similarity_weight: float, confidence_weight: float) -> Floats:
    """What doubt leaves of each fact's value."""
    both = similarity_weight + confidence_weight
    sure = np.asarray(confidences, dtype=np.float64)
    return (similarity_weight + confidence_weight * sure) / both if both else np.ones(len(sure))


def overlap(text: str, other: str) -> float:
    """The share of features that two texts have in common."""
    own, theirs = _said(text), _said(other)
    return len(own & theirs) / max(1, len(own | theirs))


def _relative(values: Floats) -> Floats:
    best = float(values.max()) if len(values) else 0.0
    return values / best if best > 0 else values


def diverse(texts: Sequence[str]) -> list[int]:
    """The order in which to show ranked texts: near-duplicates of better ones come last."""
    kept: dict[int, frozenset[str]] = {}
    repeated: list[int] = []
    for place, text in enumerate(texts[:_DIVERSE_AMONG]):
        if _repeats(_said(text), kept.values()):
            repeated.append(place)
        else:
            kept[place] = _said(text)
    return [*kept, *range(_DIVERSE_AMONG, len(texts)), *repeated]


def _repeats(own: frozenset[str], seen: Iterable[frozenset[str]]) -> bool:
    """Whether a text shares nearly all features with an earlier one; sets of very different size are skipped."""
    size = len(own)
    least, most = NEAR_DUPLICATE * size, size / NEAR_DUPLICATE
    for other in seen:
        if size and least <= len(other) <= most:
            shared = len(own & other)
            if shared >= NEAR_DUPLICATE * (size + len(other) - shared):
                return True
    return False


@lru_cache(maxsize=4096)  # the same facts are ranked before every model call
def _said(text: str) -> frozenset[str]:
    return frozenset(features(text))


def forget_facts() -> None:
    _said.cache_clear()
    _features_of.cache_clear()


# -- what a fact is -----------------------------------------------------------------------------------------------------


#: One space: runs are collapsed first, where looking for the end of each would take quadratic time.
_SPACE_BESIDE_HAN = re.compile(rf"(?<=[{HAN}]) | (?=[{HAN}])")


def fact_key(text: str) -> str:
    """The same for texts that differ only in spaces, case and width: the same fact."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _SPACE_BESIDE_HAN.sub("", plain)


#: An article before a word; a capital A within a statement is a name ("plan A", "blood type A positive").
_ARTICLES = re.compile(r"(?:^A|(?<!\S)(?:a|[Aa]n|[Tt]he))\s+(?=\w)")
#: Only what never tells two statements apart: ".5 mg" is not "5 mg", nor "< 7" "> 7".
_PUNCTUATION = re.compile(r"[,;:!?\"()，；：！？（）。]")


def statement_key(text: str) -> str:
    """The same for statements that differ only in their subject ("The user", 用户), articles and punctuation."""
    plain = _PUNCTUATION.sub(" ", _ARTICLES.sub("", statement(text)))
    return fact_key(plain).rstrip(" .") or fact_key(text)


def coerced_confidence(value: object, default: float = 1.0) -> float:
    """A confidence in [0, 1]; anything that is not a number gets the default."""
    found = number(value)
    return default if found is None else min(1.0, max(0.0, found))


def confirmed_confidence(held: float, again: float) -> float:
    """The confidence of a fact that was stated again: half of the doubt goes, less if the repetition is doubtful."""
    return min(1.0, 1 - (1 - held) * (1 - again / 2))
