"""What is known of each turn besides its words, one number per turn and kind: neighbours, session, time, speaker."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pagefile.arrays import Bools, Column, Float64s, Int32s, Numbers, np
from pagefile.text.sentences import is_cjk
from pagefile.text.speech import Speech, named

#: A longer silence ends a session.
SILENCE_S = 6 * 3600
#: A name before a turn counts as a speaker's if it occurs this often, and before this share of the turns.
SPEAKER_TURNS = 5
SPEAKER_SHARE = 0.05
#: The language of a turn is judged by this many of its words.
_LANGUAGE_WORDS = 8


class NewTurn(NamedTuple):
    conversation: str
    at: datetime
    said: Speech
    #: How many words it has.
    length: float
    answered: bool


class _End(NamedTuple):
    """The number of a conversation, its last turn, the one before, when the last was said, and its session."""

    number: int
    slot: int
    before: int
    at: float
    session: int


class TurnColumns:
    """Turns by slot, in the order in which they are added."""

    def __init__(self) -> None:
        #: The turns next to each in its conversation; -1 for none.
        self._before = Column(np.int32)
        self._after = Column(np.int32)
        self._session = Column(np.int32)
        self._conversation = Column(np.int32)
        self._at = Column(np.float64)
        #: -1 if unknown.
        self._speaker = Column(np.int32)
        self._asks = Column(np.int8)
        self._answered = Column(np.int8)
        self._session_lengths = Column(np.float64)
        self._sessions = 0
        self._ends: dict[str, _End] = {}
        self._speakers: dict[str, int] = {}
        self._spoken: Counter[str] = Counter()
        self._chinese = 0

    def __len__(self) -> int:
        return len(self._at)

    def extend(self, turns: Sequence[NewTurn]) -> None:
        first = len(self)
        ends = [self._end(slot, turn) for slot, turn in enumerate(turns, first)]
        before = np.array([end.before for end in ends], np.int32)
        self._before.extend(before)
        self._after.extend([-1] * len(turns))
        self._after.view[before[before >= 0]] = first + np.flatnonzero(before >= 0)
        sessions = [end.session for end in ends]
        self._session.extend(sessions)
        self._session_lengths.extend([0.0] * (self._sessions - len(self._session_lengths)))
        np.add.at(self._session_lengths.view, sessions, [turn.length for turn in turns])
        self._conversation.extend([end.number for end in ends])
        self._at.extend([end.at for end in ends])
        self._asks.extend([turn.said.asks for turn in turns])
        self._answered.extend([turn.answered for turn in turns])
        self._speaker.extend([self._speaker_number(turn.said.speaker) for turn in turns])
        self._chinese += sum(_is_chinese(turn.said.words[:_LANGUAGE_WORDS]) for turn in turns)

    def _end(self, slot: int, turn: NewTurn) -> _End:
        """Where the conversation of the next turn ends now."""
        at, last = turn.at.timestamp(), self._ends.get(turn.conversation)
        number, before = (len(self._ends), -1) if last is None else (last.number, last.slot)
        if last is not None and abs(at - last.at) <= SILENCE_S:
            session = last.session
        else:
            session = self._sessions
            self._sessions += 1
        end = self._ends[turn.conversation] = _End(number, slot, before, at, session)
        return end

    def _speaker_number(self, speaker: str | None) -> int:
        if speaker is None:
            return -1
        self._spoken[speaker] += 1
        return self._speakers.setdefault(speaker, len(self._speakers))

    @property
    def before(self) -> Int32s:
        return self._before.view

    @property
    def after(self) -> Int32s:
        return self._after.view

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


def _is_chinese(words: Sequence[str]) -> bool:
    return any(not word.isascii() and is_cjk(word[0]) for word in words)
