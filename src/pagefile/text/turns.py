"""Which turns answer a question: their words, those of the turns beside them, of their sitting, and the time it names.

Everything is kept turn by turn, so that the index grows with the conversation; what a turn owes to its neighbours is worked
out when somebody asks. The weights were chosen on LoCoMo, LongMemEval and LifeBench (`pagefile bench recall`).
"""

import threading
from array import array
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pagefile.text.ranking import K1, Matches, WordIndex, rarity
from pagefile.text.times import Period, periods
from pagefile.text.words import language, terms

K = TypeVar("K", bound=Hashable)
_Floats = npt.NDArray[np.float64]
_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: How much a long turn is discounted. Chinese records of a life differ more in length than turns of a conversation do.
LENGTH_DISCOUNT = {"en": 0.5, "zh": 0.75}
#: What a word is worth that stands one turn away, two turns away.
NEIGHBOURS = (0.6, 0.36)
#: What the best sitting adds, measured by the best turn.
SITTING = 0.3
#: What a turn adds that means the same as the question, measured by the best turn.
MEANING = 0.5
#: How much more a turn counts that stands in the time the question names.
TIME = 2.0
#: So many days after that time a turn has lost two thirds of it; before it, twice as fast: things are told afterwards.
TIME_DAYS = 7.0
#: What a turn is worth that only has the time: less than any word.
TIME_ALONE = 1e-3
#: A longer silence ends a sitting.
SILENCE_S = 6 * 3600


@dataclass(frozen=True, slots=True)
class Found(Generic[K]):
    """A turn and why: the score is the sum of the parts, except two that say how well the turn answers by itself.

    `coverage` is the share of the question's weight whose words it holds, `likeness` how near it is in meaning.
    """

    key: K
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Placed(Generic[K]):
    """A turn and where it stands."""

    key: K
    conversation: str
    at: datetime
    words: Sequence[str]
    #: Words that count less: an answer is longer than its question and says less about the person.
    aside: Sequence[str] = ()


class TurnIndex(Generic[K]):
    """Turns of one user, found by questions. Safe to use from several threads; turns of a conversation come in order."""

    def __init__(self) -> None:
        self._words: WordIndex[K] = WordIndex()
        self._keys: list[K] = []
        # One number for each turn: its neighbours (-1 for none), its sitting, its conversation, its time.
        self._before = array("i")
        self._after = array("i")
        self._sitting = array("i")
        self._conversation = array("i")
        self._at = array("d")
        self._sitting_lengths = array("d")
        #: The number and the last turn of each conversation.
        self._ends: dict[str, tuple[int, int]] = {}
        self._today = date.min
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def postings(self) -> int:
        """How many (term, turn) pairs are held."""
        return self._words.postings

    def add(self, turn: Placed[K]) -> None:
        """Add the next turn of a conversation; one that is already there is left as it is."""
        with self._lock:
            if turn.key in self._words:
                return
            length = self._words.add(turn.key, turn.words, turn.aside)
            number, before = self._ends.get(turn.conversation, (len(self._ends), -1))
            at = turn.at.timestamp()
            slot = len(self._keys)
            if before >= 0:
                self._after[before] = slot
            if before < 0 or abs(at - self._at[before]) > SILENCE_S:
                self._sitting.append(len(self._sitting_lengths))
                self._sitting_lengths.append(0.0)
            else:
                self._sitting.append(self._sitting[before])
            self._sitting_lengths[self._sitting[slot]] += length
            self._ends[turn.conversation] = number, slot
            self._keys.append(turn.key)
            self._before.append(before)
            self._after.append(-1)
            self._conversation.append(number)
            self._at.append(at)
            self._today = max(self._today, turn.at.date())

    def search(
        self,
        question: str,
        limit: int,
        conversation: str | None = None,
        *,
        meaning: Mapping[K, float] | None = None,
        today: date | None = None,
    ) -> list[Found[K]]:
        """The turns that answer best, best first, the latest first among equals; of one conversation if it is named.

        `meaning` is how near in meaning the nearest turns are to the question, 1 at best; a turn that is not named is not
        near, and one that is not known is passed over. Times such as "last week" are seen from `today`, or else from the
        day of the newest turn.
        """
        with self._lock:
            if not self._keys or limit < 1:
                return []
            named, rest = periods(question, today or self._today)
            about = terms(rest) or terms(question)
            spoken = language(question)
            # A Chinese date is made of common characters; an English one may stand in a turn as it was asked.
            matches = self._words.matches(about if spoken == "zh" else terms(question))
            discount = LENGTH_DISCOUNT[spoken]
            own, near = self._near(matches, discount)
            likeness = self._likeness(meaning or {})
            worded = near + self._sittings(matches, discount, near)
            base = worded + MEANING * (near.max() or 1.0) * likeness
            timely = _timely(_copied(self._at, np.float64), named)
            score = base * (1 + TIME * timely) + TIME_ALONE * (timely == 1)
            if conversation is not None:
                number, _ = self._ends.get(conversation, (-1, -1))
                score[_copied(self._conversation, np.int32) != number] = 0
            best = _best_first(score, _copied(self._at, np.float64), limit)
            keys = [self._keys[slot] for slot in best]
        parts = {
            "words": own,
            "neighbours": near - own,
            "sitting": worded - near,
            "meaning": base - worded,
            "time": score - base,
            "likeness": likeness,
        }
        return [
            Found(
                key,
                float(score[slot]),
                {name: float(part[slot]) for name, part in parts.items()}
                | {"coverage": self._words.share(key, about)},
            )
            for slot, key in zip(best, keys, strict=True)
        ]

    def _likeness(self, meaning: Mapping[K, float]) -> _Floats:
        """How near in meaning each turn is, nothing below nothing."""
        likeness = np.zeros(len(self._keys))
        for key, near in meaning.items():
            slot = self._words.slot(key)
            if slot is not None:
                likeness[slot] = max(0.0, near)
        return likeness

    def _near(self, matches: Matches, discount: float) -> tuple[_Floats, _Floats]:
        """What each turn has of the question itself, and together with the turns beside it.

        Of each word the best place counts, the turn itself or one beside it at its price: who repeats a word gains nothing.
        """
        size = len(self._keys)
        norms = K1 * (1 - discount + discount / matches.average * matches.lengths)
        # One more place at the end stands for "no neighbour": -1 points at it.
        before = np.append(_copied(self._before, np.int32), np.int32(-1))
        after = np.append(_copied(self._after, np.int32), np.int32(-1))
        own, near = np.zeros(size + 1), np.zeros(size + 1)
        for match in matches.terms:
            worth = match.weight * (K1 + 1) * match.counts / (match.counts + norms[match.slots])
            own[match.slots] += worth
            best = np.zeros(size + 1)
            best[match.slots] = worth
            earlier = later = match.slots
            for price in NEIGHBOURS:
                earlier, later = before[earlier], after[later]
                # No two turns have the same neighbour on one side, so nothing is written twice.
                best[earlier] = np.maximum(best[earlier], price * worth)
                best[later] = np.maximum(best[later], price * worth)
            near += best
        return own[:-1], near[:-1]

    def _sittings(self, matches: Matches, discount: float, near: _Floats) -> _Floats:
        """What each turn that was found owes to its sitting as a whole: BM25 again, with sittings as the documents."""
        number = len(self._sitting_lengths)
        if number == 1:
            return np.zeros(len(near))
        sitting = _copied(self._sitting, np.int32)
        lengths = _copied(self._sitting_lengths, np.float64)
        norms = K1 * (1 - discount + discount / (lengths.mean() or 1.0) * lengths)
        scores = np.zeros(number)
        for match in matches.terms:
            counts = np.bincount(sitting[match.slots], weights=match.counts, minlength=number)
            weight = match.asked * rarity(number, int(np.count_nonzero(counts)))
            scores += weight * (K1 + 1) * counts / (counts + norms)
        best = scores.max()
        if not best:
            return np.zeros(len(near))
        return SITTING * near.max() / best * scores[sitting] * (near > 0)


def _copied(column: "array[int] | array[float]", kind: type[np.generic]) -> npt.NDArray[Any]:
    """A column as an array of its own: a view would forbid the column to grow."""
    return np.array(np.frombuffer(column, dtype=kind))


def _timely(at: _Floats, named: Sequence[Period]) -> _Floats:
    """How well each turn stands in the times that are named: 1 inside, less the further away."""
    best = np.zeros(len(at))
    for period in named:
        first = _seconds(period.first)
        last = _seconds(period.last) + _DAY_S
        gap = np.maximum(0, np.maximum(2 * (first - at), at - last)) / _DAY_S
        best = np.maximum(best, np.exp(-gap / TIME_DAYS))
    return best


def _seconds(day: date) -> float:
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - _EPOCH).total_seconds()


def _best_first(scores: _Floats, at: _Floats, limit: int) -> list[int]:
    """Slots with a score, best first; among equals the latest, then the one that came last."""
    found = np.flatnonzero(scores > 0)
    if limit < len(found):
        bar = np.partition(scores[found], -limit)[-limit]
        found = found[scores[found] >= bar]
    return found[np.lexsort((-found, -at[found], -scores[found]))][:limit].tolist()
