"""What is known of each turn besides its words, one number per turn and kind: neighbours, session, time, speaker."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pagefile.arrays import Bools, Column, Float64s, Int32s, Int64s, Numbers, np
from pagefile.text.sentences import is_cjk
from pagefile.text.speech import Speech, named

#: A longer silence ends a session.
SILENCE_S = 6 * 3600
#: A name before a turn counts as a speaker's if it occurs this often, and before this share of the turns.
SPEAKER_TURNS = 5
SPEAKER_SHARE = 0.05
#: The language of a turn is judged by this many of its words.
_LANGUAGE_WORDS = 8
#: How far apart turns can be and still count as neighbours.
REACH = 2


@dataclass(slots=True)
class _End:
    """The number of a conversation, when its last turn was said, and in which session."""

    number: int
    at: float
    session: int


class TurnColumns:
    """Turns by slot, in the order in which they are added."""

    def __init__(self) -> None:
        self._session = Column(np.int32)
        self._conversation = Column(np.int32)
        self._at = Column(np.float64)
        #: -1 if unknown.
        self._speaker = Column(np.int32)
        self._asks = Column(np.int8)
        self._lasts = Column(np.int8)
        self._answered = Column(np.int8)
        self._session_lengths = Column(np.float64)
        self._sessions = 0
        self._ends: dict[str, _End] = {}
        self._speakers: dict[str, int] = {}
        self._spoken: Counter[str] = Counter()
        self._chinese = 0
        self._places = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._at)

    def extend(
        self,
        conversations: Sequence[str],
        times: Sequence[datetime],
        said: Sequence[Speech],
        lengths: Sequence[float],
        answered: Sequence[bool],
    ) -> None:
        """Turns by what is known of them; `lengths` are their numbers of words."""
        at = [time.timestamp() for time in times]
        numbers, sessions = self._ended(conversations, at)
        self._session.extend(sessions)
        self._session_lengths.extend([0.0] * (self._sessions - len(self._session_lengths)))
        np.add.at(self._session_lengths.view, sessions, lengths)
        self._conversation.extend(numbers)
        self._at.extend(at)
        self._asks.extend([one.asks for one in said])
        self._lasts.extend([one.lasts for one in said])
        self._answered.extend(answered)
        self._speaker.extend([self._speaker_number(one.speaker) for one in said])
        self._chinese += sum(_is_chinese(one.words) for one in said)

    def _ended(self, conversations: Sequence[str], times: Sequence[float]) -> tuple[list[int], list[int]]:
        """The conversation and the session of each turn, by their numbers."""
        numbers: list[int] = []
        sessions: list[int] = []
        for conversation, at in zip(conversations, times, strict=True):
            end = self._ends.get(conversation)
            if end is None:
                end = self._ends[conversation] = _End(len(self._ends), -math.inf, 0)
            if abs(at - end.at) > SILENCE_S:
                end.session = self._sessions
                self._sessions += 1
            end.at = at
            numbers.append(end.number)
            sessions.append(end.session)
        return numbers, sessions

    def _speaker_number(self, speaker: str | None) -> int:
        if speaker is None:
            return -1
        self._spoken[speaker] += 1
        return self._speakers.setdefault(speaker, len(self._speakers))

    @property
    def places(self) -> Int64s:
        """A place for each turn, next to its neighbours in its conversation, with room for `REACH` more at either end of one.

        So neighbours are found by counting, and many at once by shifting an array.
        """
        if len(self._places) < len(self):
            conversation = self._conversation.view
            order = np.argsort(conversation, kind="stable")
            places = np.empty(len(self), np.int64)
            places[order] = np.arange(len(self)) + REACH * (1 + conversation[order])
            self._places = places
        return self._places

    @property
    def room(self) -> int:
        """How many places there are."""
        return len(self) + REACH * (1 + len(self._ends))

    @property
    def session(self) -> Int32s:
        return self._session.view

    @property
    def session_lengths(self) -> Float64s:
        return self._session_lengths.view

    @property
    def at(self) -> Float64s:
        """Seconds since 1970."""
        return self._at.view

    @property
    def answered(self) -> Numbers:
        """1 for turns that have both sides: what is asked there is answered there."""
        return self._answered.view

    @property
    def asks(self) -> Numbers:
        """1 for turns that only ask."""
        return self._asks.view

    @property
    def lasts(self) -> Numbers:
        """1 for turns that say what is wanted from now on."""
        return self._lasts.view

    @property
    def mostly_chinese(self) -> bool:
        return 2 * self._chinese > len(self)

    @property
    def speakers(self) -> frozenset[str]:
        """The frequent ones, in lower case."""
        least = max(SPEAKER_TURNS, SPEAKER_SHARE * len(self))
        return frozenset(name for name, turns in self._spoken.items() if turns >= least)

    def of(self, conversation: str) -> Bools:
        """Which turns are of a conversation."""
        end = self._ends.get(conversation)
        return self._conversation.view == (-1 if end is None else end.number)

    def by_named(self, question: str) -> Bools | None:
        """Which turns are by a speaker the question names; None if those are none or all of them."""
        names: Sequence[str] = sorted(named(question, self.speakers))
        if not names:
            return None
        numbers = np.array([self._speakers[name] for name in names], dtype=np.int32)
        by_named = np.isin(self._speaker.view, numbers)
        return None if by_named.all() else by_named


def _is_chinese(words: str) -> bool:
    if words.isascii():
        return False
    first = words.split(" ", _LANGUAGE_WORDS)[:_LANGUAGE_WORDS]
    return any(not word.isascii() and is_cjk(word[0]) for word in first)
