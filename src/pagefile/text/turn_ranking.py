"""Which turns answer a question: by their words, their meaning, their neighbours, their session, and the time it names.

Everything is stored per turn, so that the index grows with the conversation; the influence of neighbours is
computed at query time. The weights were chosen on LoCoMo, LongMemEval and LifeBench (`pagefile bench
recall`), few and round on purpose: what was tried is in `docs/decisions/0012-recall-fusion.md`.
"""

import threading
from array import array
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Generic, NamedTuple, TypeVar

from pagefile.arrays import Bools, Float64s, Numbers, np
from pagefile.text.bm25 import K1, Matches, WordIndex, best_first, rarity
from pagefile.text.recall_gate import names_only_a_time
from pagefile.text.sentences import is_cjk, language
from pagefile.text.speech import named, speech
from pagefile.text.times import Period, periods
from pagefile.text.words import ASKING_TERMS, terms

K = TypeVar("K", bound=Hashable)
_Floats = Float64s
_DAY_S = 86_400

#: How much a long turn is discounted. Chinese life records differ more in length than turns of a
#: conversation.
LENGTH_DISCOUNT = {"en": 0.5, "zh": 0.75}
#: The weight of a word one turn away, and two turns away.
NEIGHBOURS = (0.6, 0.36)
#: The weight of the best session, relative to the best turn.
SESSION = 0.3
#: The weight of a turn, and of a session, that means the same as the question, relative to the turn with the
#: best words.
MEANING = 1.0
SESSION_MEANING = 2.0
#: How many of its turns determine the meaning of a session: one alone may be chance.
SESSION_TURNS = 3
#: The assumed similarity of a turn that was not among the nearest, relative to the lowest among those.
NOT_NEAR = 0.5
#: The weight of a word that only makes the question one ("how many different …").
ASKING_WORD = 0.5
#: The bonus for words of a speaker the question names, and the penalty for a turn that only asks.
SPEAKER = 0.2
ASKING_TURN = 0.15
#: A name before a turn counts as a speaker's if it occurs this often, and before this share of the turns.
SPEAKER_TURNS = 5
SPEAKER_SHARE = 0.05
#: The bonus for a turn within the time the question names.
TIME = 1.5
#: The share of that bonus for a time that was counted back ("last Saturday") instead of named.
ROUGH_TIME = 2 / 3
#: This many days after that time a turn has lost two thirds of the bonus; before it, twice as fast: people
#: report things afterwards.
TIME_DAYS = 7.0
#: The score of a turn that matches only the time: less than any word.
TIME_ALONE = 1e-3
#: The language of a turn is judged by this many of its words.
_LANGUAGE_WORDS = 8
#: A later turn that has this share of a turn's words, by their rarity, is about the same.
SAME_SUBJECT = 0.12
#: What a turn is about is judged by this many of its first words, and by those that no more turns than this have.
_SUBJECT_WORDS, _SUBJECT_HOLDERS = 48, 40
#: A longer silence ends a session.
SILENCE_S = 6 * 3600


@dataclass(frozen=True, slots=True)
class Found(Generic[K]):
    """A turn and why it was found: the score is the sum of the parts, apart from three that tell how well it answers.

    `coverage` is the share of the question's weight whose words it has, `similarity` its similarity in meaning,
    `inside` is 1 if it was said in a time that the question names.
    """

    key: K
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Placed(Generic[K]):
    key: K
    conversation: str
    at: datetime
    #: With the marks of `said_terms`, which are not words.
    words: Sequence[str]
    #: Words that count less: an answer is longer than its question and says less about the person.
    aside: Sequence[str] = ()


class Familiarity(NamedTuple):
    """What the words of a question say about whether it concerns a user's past."""

    #: The share of their weight whose words some turn has.
    known: float
    #: How many of them there are, stop words aside.
    terms: int
    #: Whether it is in another language than most turns.
    foreign: bool
    #: Whether it names somebody who speaks in them.
    names_speaker: bool
    #: How many turns there are.
    turns: int


class TurnIndex(Generic[K]):
    """Turns of one user, searched by questions. Thread-safe; turns of a conversation are added in order."""

    def __init__(self) -> None:
        self._words: WordIndex[K] = WordIndex()
        self._keys: list[K] = []
        # One number per turn: its neighbours (-1 for none), its session, its conversation, its time, its
        # speaker (-1 if unknown), whether it only asks.
        self._before = array("i")
        self._after = array("i")
        self._session = array("i")
        self._conversation = array("i")
        self._at = array("d")
        self._speaker = array("i")
        self._asks = array("b")
        self._session_lengths = array("d")
        #: The number and the last turn of each conversation.
        self._ends: dict[str, tuple[int, int]] = {}
        self._speakers: dict[str, int] = {}
        self._spoken: Counter[str] = Counter()
        self._chinese = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def postings(self) -> int:
        return self._words.postings

    @property
    def speakers(self) -> frozenset[str]:
        """The frequent speakers, by the names before their turns, in lower case."""
        with self._lock:
            return self._who_speaks()

    def add(self, turn: Placed[K]) -> None:
        """Add the next turn of a conversation; an existing one is left as it is."""
        said = speech(turn.words)
        with self._lock:
            if turn.key in self._words:
                return
            length = self._words.add(turn.key, said.words, turn.aside)
            number, before = self._ends.get(turn.conversation, (len(self._ends), -1))
            at = turn.at.timestamp()
            slot = len(self._keys)
            if before >= 0:
                self._after[before] = slot
            if before < 0 or abs(at - self._at[before]) > SILENCE_S:
                self._session.append(len(self._session_lengths))
                self._session_lengths.append(0.0)
            else:
                self._session.append(self._session[before])
            self._session_lengths[self._session[slot]] += length
            self._ends[turn.conversation] = number, slot
            self._keys.append(turn.key)
            self._before.append(before)
            self._after.append(-1)
            self._conversation.append(number)
            self._at.append(at)
            self._asks.append(said.asks)
            self._chinese += any(is_cjk(word[0]) for word in said.words[:_LANGUAGE_WORDS])
            if said.speaker is None:
                self._speaker.append(-1)
            else:
                self._spoken[said.speaker] += 1
                self._speaker.append(self._speakers.setdefault(said.speaker, len(self._speakers)))

    def search(
        self,
        question: str,
        limit: int,
        conversation: str | None = None,
        *,
        meaning: Mapping[K, float] | None = None,
        today: date | None = None,
        zone: tzinfo = UTC,
    ) -> list[Found[K]]:
        """The turns that answer best, best first, the latest first among equals; of one conversation if it is named.

        `meaning` is the similarity of the nearest turns to the question, 1 at best; turns that are not in it
        are not near, and unknown ones are ignored. Times such as "last week" are relative to `today`; without
        it, or if nothing was said in the time they name, to the day of the newest turn. Days begin and end as
        in the `zone`. A question for nothing but a time finds the turns of that time, and no others if there
        are any.
        """
        with self._lock:
            if not self._keys or limit < 1:
                return []
            eligible = self._of(conversation)
            timely, inside, rest = self._timely(question, today, zone, eligible)
            about = _asked(terms(rest) or terms(question))
            similarity = np.zeros(len(self._keys))
            if meaning:
                slots = [self._words.slot(key) for key in meaning]
                known = [
                    (slot, near)
                    for slot, near in zip(slots, meaning.values(), strict=True)
                    if slot is not None
                ]
                at, near = zip(*known, strict=True) if known else ((), ())
                similarity[list(at)] = np.maximum(0.0, near)
            parts = self._parts(question, about, similarity, timely, inside)
            score = sum(parts.values(), np.zeros(len(self._keys)))
            if inside.any() and names_only_a_time(question):
                eligible = inside
            score[~eligible] = 0
            best = best_first(score, limit, _copied(self._at, np.float64))[:limit]
            keys = [self._keys[slot] for slot in best]
            coverage, _ = self._words.shares(_asked(list(about)))
            parts |= {"coverage": coverage, "similarity": similarity, "inside": inside.astype(np.float64)}
        columns = [column[best].tolist() for column in parts.values()]
        return [
            Found(key, value, dict(zip(parts, row, strict=True)))
            for key, value, row in zip(keys, score[best].tolist(), zip(*columns, strict=True), strict=True)
        ]

    def familiarity(self, question: str) -> "Familiarity":
        """How much of a question's words this user's turns know, and whether it is in their language."""
        asked = _asked(list(dict.fromkeys(terms(question, keep_stop_words_if_empty=False))))
        with self._lock:
            _, known = self._words.shares(asked)
            own = "zh" if 2 * self._chinese > len(self._keys) else "en"
            speakers = named(question, self._who_speaks())
            turns = len(self._keys)
        return Familiarity(known, len(asked), language(question) != own, bool(speakers), turns)

    def newer(self, key: K, said: Sequence[str]) -> K | None:
        """The later turn that has most of a turn's words, by their rarity, if it has enough to be about the same; no question."""
        words = list(dict.fromkeys(said))[:_SUBJECT_WORDS]
        with self._lock:
            slot = self._words.slot(key)
            if slot is None:
                return None
            at = self._at[slot]
            # One word alone may be in both by chance.
            later = [
                (share, one)
                for one, (share, many) in self._words.sharing(key, words, _SUBJECT_HOLDERS).items()
                if many > 1 and share >= SAME_SUBJECT and self._at[one] > at and not self._asks[one]
            ]
            return self._keys[max(later)[1]] if later else None

    def _of(self, conversation: str | None) -> Bools:
        """Which turns are of a conversation; all if none is named."""
        if conversation is None:
            return np.ones(len(self._keys), dtype=np.bool_)
        number, _ = self._ends.get(conversation, (-1, -1))
        return _copied(self._conversation, np.int32) == number

    def _timely(
        self, question: str, today: date | None, zone: tzinfo, eligible: Bools
    ) -> tuple[_Floats, Bools, str]:
        """How well each turn matches the times the question names, which are inside, and the question without them."""
        at = _copied(self._at, np.float64)
        last_day = datetime.fromtimestamp(at.max(where=eligible, initial=0.0), zone).date()
        spans, rest = periods(question, today or last_day)
        timely, inside = _timely(at, spans, zone)
        if spans and today is not None and not (inside & eligible).any():
            # An old conversation is resumed: "last week" is then relative to when it stopped.
            timely, inside = _timely(at, periods(question, last_day)[0], zone)
        return timely, inside & eligible, rest

    def _parts(
        self,
        question: str,
        about: Mapping[str, float],
        similarity: _Floats,
        timely: _Floats,
        inside: Bools,
    ) -> dict[str, _Floats]:
        spoken = language(question)
        # A Chinese date consists of common characters; an English one may appear in a turn as it was asked.
        matches = self._words.matches(about if spoken == "zh" else _asked(terms(question)))
        discount = LENGTH_DISCOUNT[spoken]
        own, near = self._near(matches, discount)
        worth = 1 + SPEAKER * self._by_named(question)
        own, near = own * worth, near * worth
        session = self._sessions(matches, discount, near)
        scale = near.max() or 1.0
        meaning = scale * MEANING * _filled(similarity, near > 0) * (1 + TIME * timely)
        sessions_alike = self._session_similarity(similarity)
        surroundings = scale * SESSION_MEANING * sessions_alike * (near + similarity > 0)
        # The bonus of the time for the meaning counts as meaning: a turn with neither words nor the time gets
        # none.
        time = TIME * timely * (near + session) + TIME_ALONE * inside
        weight = 1 - ASKING_TURN * _copied(self._asks, np.int8)
        return {
            "words": weight * own,
            "neighbours": weight * (near - own),
            "session": weight * session,
            "meaning": weight * (meaning + surroundings),
            "time": weight * time,
        }

    def _session_similarity(self, similarity: _Floats) -> _Floats:
        """The similarity in meaning of each turn's session: the mean of its nearest few."""
        best = np.zeros(len(self._session_lengths))
        session = _copied(self._session, np.int32)
        left = similarity.copy()
        for _ in range(SESSION_TURNS):
            nearest = np.zeros(len(best))
            np.maximum.at(nearest, session, left)
            best += nearest
            # Turns with equal similarity are removed together: they are the same text, repeated.
            left[left == nearest[session]] = 0
        return (best / SESSION_TURNS)[session]

    def _who_speaks(self) -> frozenset[str]:
        least = max(SPEAKER_TURNS, SPEAKER_SHARE * len(self._keys))
        return frozenset(name for name, turns in self._spoken.items() if turns >= least)

    def _by_named(self, question: str) -> Bools:
        """Which turns are by a speaker the question names; none if that would be all of them."""
        numbers = [self._speakers[name] for name in sorted(named(question, self._who_speaks()))]
        by_named = np.isin(_copied(self._speaker, np.int32), np.array(numbers, dtype=np.int32))
        return by_named & ~by_named.all()

    def _near(self, matches: Matches, discount: float) -> tuple[_Floats, _Floats]:
        """The score of each turn for the question's words, on its own and with its neighbours.

        Each word counts only at its best place, in the turn or, discounted, in a neighbour, however often it occurs.
        """
        size = len(self._keys)
        norms = K1 * (1 - discount + discount / matches.average * matches.lengths)
        # The extra slot at the end represents "no neighbour": -1 points to it.
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

    def _sessions(self, matches: Matches, discount: float, near: _Floats) -> _Floats:
        """The contribution of a matching turn's whole session: BM25 again, with sessions as the documents."""
        number = len(self._session_lengths)
        if number == 1:
            return np.zeros(len(near))
        session = _copied(self._session, np.int32)
        lengths = _copied(self._session_lengths, np.float64)
        norms = K1 * (1 - discount + discount / (lengths.mean() or 1.0) * lengths)
        scores = np.zeros(number)
        for match in matches.terms:
            counts = np.bincount(session[match.slots], weights=match.counts, minlength=number)
            weight = match.asked * rarity(number, int(np.count_nonzero(counts)))
            scores += weight * (K1 + 1) * counts / (counts + norms)
        return SESSION * near.max() / (scores.max() or 1.0) * scores[session] * (near > 0)


def _asked(words: Sequence[str]) -> dict[str, float]:
    """The query weight of each word: how often it occurs, reduced if it only makes the question one."""
    return {
        word: count * (ASKING_WORD if word in ASKING_TERMS else 1.0) for word, count in Counter(words).items()
    }


def _filled(similarity: _Floats, shares_words: Bools) -> _Floats:
    """The similarity, with a guess for turns that share words with the question but are not among the nearest."""
    some = similarity[similarity > 0]
    if not len(some) or len(some) == len(similarity):
        return similarity
    return np.where((similarity == 0) & shares_words, NOT_NEAR * some.min(), similarity)


def _copied(column: "array[int] | array[float]", kind: "type[np.generic]") -> Numbers:
    """A column as a separate array: a view would prevent the column from growing."""
    return np.array(np.frombuffer(column, dtype=kind))


def _timely(at: _Floats, spans: Sequence[Period], zone: tzinfo) -> tuple[_Floats, Bools]:
    """How well each turn matches the named times, decreasing with distance (less for a rough time); and which are inside."""
    best = np.zeros(len(at))
    inside = np.zeros(len(at), dtype=np.bool_)
    for period in spans:
        first, after = _midnight(period.first, zone), _midnight(period.last + timedelta(days=1), zone)
        gap = np.maximum(0, np.maximum(2 * (first - at), at - after)) / _DAY_S
        best = np.maximum(best, (ROUGH_TIME if period.rough else 1) * np.exp(-gap / TIME_DAYS))
        inside |= (first <= at) & (at < after)
    return best, inside


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), zone).timestamp()
