"""Which turns answer a question: by their words, their meaning, their neighbours, their session, and the time it names.

Everything is stored per turn, so that the index grows with the conversation; the influence of neighbours is
computed at query time.
"""

import re
import threading
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Generic, NamedTuple, Protocol, TypeVar

from pagefile.arrays import Bools, Column, Float64s, Int32s, Int64s, Keyed, Places, np
from pagefile.records import LATEST
from pagefile.text.bm25 import Matches, best_first, matched, rarity
from pagefile.text.glossary import counterparts
from pagefile.text.postings import Document, Holders, Postings
from pagefile.text.recall_gate import names_only_a_time
from pagefile.text.sentences import language
from pagefile.text.speech import named, speech
from pagefile.text.standing import is_task
from pagefile.text.times import periods
from pagefile.text.turn_columns import TurnColumns
from pagefile.text.turn_scores import Similarity, Timely, scores, timely
from pagefile.text.words import ASKING_TERMS, GENERAL_WORDS, terms

K = TypeVar("K", bound=Hashable)

#: The weight of a word that only makes the question one ("how many different …").
ASKING_WORD = 0.5
#: A later turn that has this share of a turn's words, by their rarity, is about the same.
SAME_SUBJECT = 0.12
#: What a turn is about is judged by this many of its first words, and by those that no more turns than this have.
_SUBJECT_WORDS, _SUBJECT_HOLDERS = 48, 40
#: The name of one thing among its like: a ticket, an order, an error code, a version.
_NUMBERED = re.compile(r"[a-z]+[-_.]?\d[\w.-]*")
#: A capital letter within a sentence.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+")


class Found(NamedTuple, Generic[K]):
    """A turn and why it was found: the score is the sum of the parts, apart from three that tell how well it answers.

    `coverage` is the share of the question's weight whose words it has, `similarity` its similarity in meaning,
    `inside` is 1 if it was said in a time that the question names.
    """

    key: K
    score: float
    parts: Mapping[str, float]


class Placed(NamedTuple, Generic[K]):
    """A turn to add; a plain tuple, because a process begins with many."""

    key: K
    conversation: str
    at: datetime
    #: Terms, separated by spaces, with the marks of `said_terms`, which are no words.
    words: str
    #: Words that count less: an answer is longer than its question and says less about the person.
    aside: str = ""


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
    #: Whether it names something by a number that no turn has: what resembles it is about something else.
    names_unknown: bool = False
    #: Whether it has a name, as English writes it, that some turn has.
    names_known: bool = False


class Keys(Protocol[K]):
    """Keys by slot: a list, or something smaller."""

    def __len__(self) -> int: ...
    def __getitem__(self, slot: int, /) -> K: ...
    def __iter__(self) -> Iterator[K]: ...
    def extend(self, keys: list[K], /) -> None: ...


class TurnIndex(Generic[K]):
    """Turns of one user, searched by questions. Thread-safe; turns of a conversation are added in order."""

    def __init__(self, keys: Keys[K] | None = None) -> None:
        self._keys: Keys[K] = list[K]() if keys is None else keys
        self._slots = Places()
        self._postings = Postings()
        #: How many words each turn has, and all of them.
        self._lengths = Column(np.float32)
        self._words = 0.0
        self._turns = TurnColumns()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def postings(self) -> int:
        """The number of (term, turn) pairs."""
        return self._postings.entries

    def without(self, hashes: Int64s) -> list[K]:
        """The turns whose keys have none of these hashes."""
        known = frozenset(hashes.tolist())
        with self._lock:
            return [key for key in self._keys if hash(key) not in known]

    @property
    def speakers(self) -> frozenset[str]:
        """The frequent speakers, by the names before their turns, in lower case."""
        with self._lock:
            return self._turns.speakers

    def add(self, *turns: Placed[K]) -> None:
        """Add the next turns of conversations; existing ones are left as they are. Many at once take less time."""
        with self._lock:
            first: dict[K, Placed[K]] = {}
            for turn in turns:
                first.setdefault(turn.key, turn)
            known = self._slots.of(first).tolist()
            fresh = {key: turn for (key, turn), slot in zip(first.items(), known, strict=True) if slot < 0}
            self._extend([*fresh.values()])
            self._keys.extend([*fresh])
            self._slots.extend(fresh)

    def _extend(self, turns: Sequence[Placed[K]]) -> None:
        said = [speech(turn.words) for turn in turns]
        documents = [Document(one.words, turn.aside) for one, turn in zip(said, turns, strict=True)]
        lengths = [document.length for document in documents]
        self._postings.extend(documents)
        self._lengths.extend(lengths)
        self._words += sum(lengths)
        self._turns.extend(
            [turn.conversation for turn in turns],
            [turn.at for turn in turns],
            said,
            lengths,
            [bool(turn.aside) for turn in turns],
        )

    def search(
        self,
        question: str,
        limit: int,
        conversation: str | None = None,
        *,
        meaning: Mapping[K, float] | Keyed | None = None,
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
            eligible = None if conversation is None else self._turns.of(conversation)
            when, rest = self._when(question, today, zone, eligible)
            about = _asked(terms(rest) or terms(question))
            spoken = language(question)
            # A Chinese date consists of common characters; an English one may appear in a turn as it was asked.
            asked = about if spoken == "zh" else _asked(terms(question))
            matches = self._matches(asked)
            by_named = self._turns.by_named(question)
            similarity = self._similarity(meaning if isinstance(meaning, Keyed) else Keyed.of(meaning or {}))
            task, most = is_task(question), limit if eligible is None else None
            found = scores(self._turns, matches, spoken, similarity, when, by_named, most, is_task=task)
            score = sum(found.parts.values(), np.zeros(len(found.slots)))
            if when is not None and when.inside.any() and names_only_a_time(question):
                eligible = when.inside
            if eligible is not None:
                score[~eligible[found.slots]] = 0
            best = best_first(score, limit, self._turns.at[found.slots])[:limit]
            slots = found.slots[best]
            keys: list[K] = [self._keys[int(slot)] for slot in slots]
            parts = {name: part[best] for name, part in found.parts.items()}
            judged = _asked([*about])
            if self._is_foreign(question):
                known = {match.word for match in matches.terms} | _whole_words(terms(question))
                judged = {word: much for word, much in judged.items() if word in known} or judged
            parts["coverage"] = self._coverage(slots, judged, matches, asked)
            parts["similarity"] = found.similarity[best]
            parts["inside"] = np.zeros(len(best)) if when is None else when.inside[slots].astype(np.float64)
        columns = [column.tolist() for column in parts.values()]
        return [
            Found(key, value, dict(zip(parts, row, strict=True)))
            for key, value, row in zip(keys, score[best].tolist(), zip(*columns, strict=True), strict=True)
        ]

    def familiarity(self, question: str) -> "Familiarity":
        """How much of a question's words this user's turns know, and whether it is in their language."""
        words = terms(question, keep_stop_words_if_empty=False)
        asked, telling = _asked(list(dict.fromkeys(words))), _whole_words(words)
        with self._lock:
            holders = [len(slots) for slots, _ in self._holders([*asked])]
            foreign = self._is_foreign(question)
            weights = [
                much * rarity(len(self._keys), held) if held or not foreign or word in telling else 0.0
                for (word, much), held in zip(asked.items(), holders, strict=True)
            ]
            known = sum(weight for weight, held in zip(weights, holders, strict=True) if held)
            speakers = named(question, self._turns.speakers)
            turns = len(self._keys)
            names = terms(" ".join(_NAME.findall(question)), keep_stop_words_if_empty=False)
            named_before = any(self._postings.numbers(names))
        share = known / (sum(weights) or 1.0)
        unknown = any(
            not held and _NUMBERED.fullmatch(word) is not None
            for word, held in zip(asked, holders, strict=True)
        )
        return Familiarity(share, len(asked), foreign, bool(speakers), turns, unknown, named_before)

    def newer(self, key: K, said: Sequence[str]) -> K | None:
        """The later turn that has most of a turn's words, by their rarity, if it has enough to be about the same; no question."""
        words = list(dict.fromkeys(said))[:_SUBJECT_WORDS]
        with self._lock:
            slot = int(self._slots.of([key])[0])
            if slot < 0:
                return None
            sharing, shares = self._sharing(words)
            at, asks = self._turns.at, self._turns.asks
            later = (shares >= SAME_SUBJECT) & (at[sharing] > at[slot]) & (asks[sharing] == 0)
            if not later.any():
                return None
            best = np.flatnonzero(later & (shares == shares[later].max()))[-1]
            return self._keys[int(sharing[best])]

    def later(self, key: K, words: Sequence[str], limit: int) -> list[K]:
        """The newest turns after this one that have any of these words; no questions."""
        with self._lock:
            slot = int(self._slots.of([key])[0])
            if slot < 0:
                return []
            slots = np.unique(self._postings.pairs(words)[1])
            at, asks = self._turns.at, self._turns.asks
            after = slots[(at[slots] > at[slot]) & (asks[slots] == 0)]
            newest = after[np.argsort(at[after], kind="stable")[::-1][:limit]]
            return [self._keys[int(one)] for one in newest]

    def _is_foreign(self, question: str) -> bool:
        return language(question) != ("zh" if self._turns.mostly_chinese else "en")

    def _holders(self, words: Sequence[str]) -> list[Holders]:
        """The turns that have each word, or what it is called in the other language if none has the word itself."""
        found = self._postings.find(words)
        missing = [word for word, (slots, _) in zip(words, found, strict=True) if not len(slots)]
        called = counterparts(word for word in missing if word not in GENERAL_WORDS)
        others = [*{other for some in called.values() for other in some}]
        there = dict(zip(others, self._postings.find(others), strict=True)) if others else {}
        return [
            _any_of([there[other] for other in called.get(word, ())]) if word in called else own
            for word, own in zip(words, found, strict=True)
        ]

    def _matches(self, asked: Mapping[str, float]) -> Matches:
        holders = self._holders([*asked])
        return matched(asked, holders, len(self._keys), self._lengths.view, self._words)

    def _sharing(self, words: Sequence[str]) -> tuple[Int64s, Float64s]:
        """The turns that have several of these words, ascending, and the share of the words' weight that each has.

        One word alone may be in both by chance. Words that many turns have say little, and are left out of what is shared.
        """
        many = self._postings.numbers(words)
        weights = [rarity(len(self._keys), held) for held in many]
        telling = [number for number, held in enumerate(many) if 0 < held <= _SUBJECT_HOLDERS]
        which, slots = self._postings.pairs([words[number] for number in telling])
        worth = np.array([weights[number] for number in telling])[which]
        sharing, turn, times = np.unique(slots, return_inverse=True, return_counts=True)
        shares = np.bincount(turn, worth, len(sharing)) / (sum(weights) or 1.0)
        return sharing[times > 1], shares[times > 1]

    def _similarity(self, meaning: Keyed) -> Similarity:
        slots = self._slots.of_hashes(meaning.hashes)
        there = (slots >= 0) & (meaning.numbers > 0)
        return Similarity(slots[there], meaning.numbers[there])

    def _when(
        self, question: str, today: date | None, zone: tzinfo, eligible: Bools | None
    ) -> tuple[Timely | None, str]:
        """How well turns match the times the question names, None if it names none; and the question without them."""
        at = self._turns.at
        last = at.max(initial=0.0) if eligible is None else at.max(where=eligible, initial=0.0)
        last_day = datetime.fromtimestamp(min(last, LATEST.timestamp()), zone).date()
        spans, rest = periods(question, today or last_day)
        if not spans:
            return None, rest
        found = _of(timely(at, spans, zone), eligible)
        if today is not None and not found.inside.any():
            # An old conversation is resumed: "last week" is then relative to when it stopped.
            found = _of(timely(at, periods(question, last_day)[0], zone), eligible)
        return found, rest

    def _coverage(
        self, slots: Int64s, asked: Mapping[str, float], matches: Matches, looked_up: Container[str]
    ) -> Float64s:
        """The share of the terms' weight that each of these turns contains; who has those that were `looked_up` is known."""
        known: dict[str, Int32s] = {match.word: match.slots for match in matches.terms}
        others = self._matches({word: 1.0 for word in asked if word not in looked_up})
        known |= {match.word: match.slots for match in others.terms}
        held, total = np.zeros(len(slots)), 0.0
        # Of the same kind as the holders, which would be copied otherwise, for every word.
        places = slots.astype(np.int32)
        for word, much in asked.items():
            holders = known.get(word)
            weight = much * rarity(len(self._keys), 0 if holders is None else len(holders))
            total += weight
            if holders is not None:
                at = np.searchsorted(holders, places)
                held += weight * (holders.take(at, mode="clip") == places)
        return held / (total or 1.0)


def _of(found: Timely, eligible: Bools | None) -> Timely:
    return found if eligible is None else found._replace(inside=found.inside & eligible)


def _any_of(holders: Sequence[Holders]) -> Holders:
    """The turns that have one of several words, and how often the one that they have most."""
    slots, place = np.unique(np.concatenate([slots for slots, _ in holders]), return_inverse=True)
    most = np.zeros(len(slots), np.float32)
    np.maximum.at(most, place, np.concatenate([counts for _, counts in holders]))
    return slots, most


def _whole_words(words: Sequence[str]) -> set[str]:
    """Those that are words: Chinese ones come whole and in pairs of characters, so that a pair that is a word comes twice."""
    return {word for word, times in Counter(words).items() if word.isascii() or times > 1}


def _asked(words: Sequence[str]) -> dict[str, float]:
    """The query weight of each word: how often it occurs, reduced if it only makes the question one."""
    return {
        word: count * (ASKING_WORD if word in ASKING_TERMS else 1.0) for word, count in Counter(words).items()
    }
