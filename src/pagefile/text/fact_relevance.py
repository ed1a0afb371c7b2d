"""How much each fact has to do with a message, and the probability that it helps.

Similarity alone does not tell: a long message is a little similar to everything, and a short request ("a gift for my nephew?") is answered by facts
that share few of its words. So what is required of the best fact, and of each, depends on the message: more the longer
it is and if it is about others, less if it asks for something to be planned for whoever asks. The numbers were searched with those of
`pagefile bench window --sets facts`, PrecisionMemBench and PersistBench as the measure; decision 65 has what they bring.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pagefile.arrays import Float64s, np
from pagefile.text.relevance import is_exercise, is_general, is_of_world, names_things
from pagefile.text.sentences import HAN
from pagefile.text.tables import table
from pagefile.text.words import terms

Floats = Float64s

_TABLE = table("pagefile.text", "fact_relevance")
_TASK, _ALLOWED, _OWN, _FIRST, _OTHERS, _DEMANDS, _QUESTION = (
    re.compile(_TABLE[name], re.IGNORECASE)
    for name in ("task", "allowed", "own", "first_person", "others", "demands", "question")
)
_KIN = {word: kin for kin, words in _TABLE["kin"].items() for word in words.split()}
_HAN_KIN = {word: kin for word, kin in _KIN.items() if not word.isascii() and re.match(f"[{HAN}]", word)}
_NO_NAMES = frozenset(_TABLE["no_names"].split())
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][^\W\d_A-Z]{2,}\b")
_WORD = re.compile(r"[^\W\d_]+")
#: A relative with a name: "her husband Cathal", "a son, Tomáš", 妻子叫Mei Lin.
_NAMED_KIN = re.compile(
    rf"(?i:\b({'|'.join(word for word in _KIN if word.isascii())})|({'|'.join(_HAN_KIN)}))(?:,? (?:is )?(?:called |named )?|叫|是)?([A-Z][^\W\d_A-Z]{{2,}})\b"
)
_CHINESE = re.compile(f"[{HAN}]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；\n])")

#: What the similarity of meanings counts for.
_MEANING_WEIGHT = 0.85
#: What the words in common add to the similarity of meanings.
_WORDS_WEIGHT = 0.34
#: The similarity of a question and its fact is lower by this if they are in different languages, and what is below the second
#: number has nothing in common in any.
_ACROSS_LANGUAGES, _NOT_APART = 0.042, 0.05
#: What the most similar sentence of a message counts for, beside the whole of it, and how many are compared.
_SENTENCE_WEIGHT, _SENTENCES = 0.81, 6
#: What is added for the same relative, the same name, and a demand where something is planned or asks whether it is allowed.
_SAME_KIN, _SAME_NAME, _SHAPES = 0.08, 0.07, 0.1
#: A fact is as relevant as another one that it resembles, times this; and the facts that are looked at for it.
_RESEMBLES, _RESEMBLED = 0.87, 10
#: The context counts less than the question, so that long answers about something else do not outvote it.
CONTEXT_WEIGHT = 0.6
#: A fact must be at least this relevant, and at least this share of the most relevant one, and that one at least the third.
_LEAST, _LEAST_SHARE, _OPENING = 0.1, 0.47, 0.17
#: The share if the most relevant fact has fewer words than this in common with the message: then meaning alone decides, which is less sure.
_FEW_WORDS, _LEAST_SHARE_BY_MEANING = 0.1, 0.29
_LEAST_BY_WORDS, _LEAST_SHARE_BY_WORDS = 0.04, 0.3
#: Adjustments: per e-fold of the message's terms above this many; other people as the topic; an impersonal message (the least, the
#: opening); each mention of the user's own things (two at most); and a request to plan something (the share, the opening).
_SHORT_TERMS, _LONGER, _LONGER_OPENING = 10, 0.18, 0.43
_OF_OTHERS, _OWN_THINGS, _IMPERSONAL, _IMPERSONAL_OPENING = 0.1, 0.08, 0.05, 0.023
_PLANNED_SHARE, _PLANNED_OPENING = 0.37, 0.025
#: What opens facts to a message that seldom needs any, unless it shares this much of its words with the most relevant one: questions of
#: general knowledge and exercises; how something is done, and other questions about the world; small talk about oneself, other small talk; and a question without a word about who asks.
_SHARED_WORDS = 0.029
_SELF_CONTAINED, _OF_WORLD, _SAID_OF_SELF, _SAID, _ASKED = 0.49, 0.4, 0.32, 0.36, 0.25
#: The relevance at which every second fact helps, and how fast the odds change around it.
_EVEN, _SLOPE = 0.3, 0.06


class Message(NamedTuple):
    """What a message tells about the facts it needs."""

    terms: int = 0
    plans: bool = False
    own: int = 1
    personal: bool = True
    of_others: bool = False
    asks: bool = True
    #: Whether it asks for general knowledge, or brings all it needs.
    self_contained: bool = False
    #: Whether it asks how something is done, or about the world.
    of_world: bool = False
    #: Whether it names something of the user's.
    owns: bool = True
    #: Whether it has a word at all: a bare question mark is about no fact.
    has_words: bool = True
    #: Whether it asks if something is allowed, or good for somebody.
    asks_leave: bool = False

    @classmethod
    def of(cls, text: str) -> "Message":
        return cls(
            len(set(terms(text))),
            _TASK.search(text) is not None,
            min(3, len(_OWN.findall(text))),
            _FIRST.search(text) is not None,
            _OTHERS.search(text) is not None,
            _QUESTION.search(text) is not None,
            is_general(text) or is_exercise(text),
            is_of_world(text),
            names_things(text),
            _WORD.search(text) is not None,
            _ALLOWED.search(text) is not None,
        )

    @property
    def length(self) -> float:
        """How much longer it is than a short one, on a logarithmic scale."""
        return max(0.0, math.log((1 + self.terms) / (1 + _SHORT_TERMS)))

    def opening(self, words: float) -> float:
        """What the most relevant fact must reach if messages of this kind seldom need any; `words` is what they share."""
        if not self.has_words:
            return math.inf
        if self.self_contained:
            return _SELF_CONTAINED
        # "How do I write tests?" is about whoever prefers pytest for testing.
        shares = words > _SHARED_WORDS and self.terms > 1
        if self.of_world and not (shares and self.personal):
            return _OF_WORLD
        if self.plans or self.asks_leave or shares:
            return 0.0
        if not self.personal:
            return _ASKED if self.asks else _SAID
        return 0.0 if self.asks or self.owns else _SAID_OF_SELF


class _Read(NamedTuple):
    chinese: bool
    kin: frozenset[str]
    names: frozenset[str]
    demands: bool
    #: The names that it gives to relatives, and which those are.
    called: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=4096)  # the same facts are read before every model call
def _read(text: str) -> _Read:
    words = _WORD.findall(text.casefold())
    kin = {_KIN[word] for word in words if word in _KIN}
    kin |= {group for word, group in _HAN_KIN.items() if word in text}
    names = frozenset(_NAME.findall(f" {text}")) - _NO_NAMES
    chinese, demands = _CHINESE.search(text) is not None, _DEMANDS.search(text) is not None
    called = [(name, _KIN[(word or han).casefold()]) for word, han, name in _NAMED_KIN.findall(text)]
    return _Read(chinese, frozenset(kin), names, demands, tuple(called))


def forget_read_facts() -> None:
    _read.cache_clear()


def sentences_of(message: str) -> list[str]:
    """The sentences to compare beside the whole message; none if it is one."""
    found = [part.strip() for part in _SENTENCE.split(message) if len(part.strip()) > 3]
    return found[:_SENTENCES] if len(found) > 1 else []


class Similarities(NamedTuple):
    """The facts' similarity to a message: by words, by meaning, to its most similar sentence, and to one another."""

    words: Floats
    meaning: Floats
    sentence: Floats
    vectors: Floats


def relevance(asked: str, facts: Sequence[str], found: Similarities) -> Floats:
    """How much each fact has to do with a message, by meaning."""
    message, read = _read(asked), [_read(fact) for fact in facts]
    called = {name: kin for one in read for name, kin in one.called}
    across = np.asarray([one.chinese != message.chinese for one in read])
    dense = _MEANING_WEIGHT * np.maximum(found.meaning, _SENTENCE_WEIGHT * found.sentence)
    base = dense + _WORDS_WEIGHT * found.words + _ACROSS_LANGUAGES * (across & (dense > _NOT_APART))
    shaped = _TASK.search(asked) is not None or _ALLOWED.search(asked) is not None
    folded = asked.casefold()
    bonus = [
        _SAME_KIN
        * bool(
            message.kin and message.kin & one.kin.union(called[name] for name in one.names if name in called)
        )
        + _SAME_NAME * any(name.casefold() in folded for name in one.names)
        + _SHAPES * (shaped and one.demands)
        for one in read
    ]
    return np.maximum(base + np.asarray(bonus), _RESEMBLES * _resembling(base, found.vectors))


def _resembling(base: Floats, vectors: Floats) -> Floats:
    """The relevance of the best facts as far as another fact resembles them."""
    best = np.argsort(-base)[:_RESEMBLED]
    alike = vectors @ vectors[best].T
    alike[best, np.arange(len(best))] = 0.0
    return (alike * base[best]).max(axis=1, initial=0.0)


class Relevance(NamedTuple):
    """How relevant each fact is now, and the probability that it helps; 0 if it is not relevant enough to be shown."""

    relevance: Floats
    values: Floats
    by_words: bool
    #: Whether the message may be shown facts at all.
    is_open: bool = True

    @classmethod
    def of(
        cls, question: Floats, context: Sequence[Floats], message: Message, words: Floats, *, by_words: bool
    ) -> "Relevance":
        """The question's relevance, or that of a part of the context, which weighs less; `words` are its similarities by words."""
        found = np.maximum(0.0, question)
        for part in context:
            found = np.maximum(found, CONTEXT_WEIGHT * part)
        top = float(found.max(initial=0.0))
        shared = float(words[found.argmax()])
        if by_words:
            # Words tell less, and in other numbers: what seldom needs a fact gets none. How something is done may be what the conversation is about.
            least = message.opening(shared)
            opening = math.inf if least > _ASKED and least != _OF_WORLD else 0.0
            cut = max(_LEAST_BY_WORDS, _LEAST_SHARE_BY_WORDS * top)
        else:
            opening, cut = _required(message, top, named=shared > _FEW_WORDS)
            opening = max(opening, message.opening(shared))
        odds = 1 / (1 + np.exp((_EVEN - found) / _SLOPE))
        return cls(found, np.where((found >= cut) & (top >= opening), odds, 0.0), by_words, top >= opening)


def _required(message: Message, top: float, *, named: bool) -> tuple[float, float]:
    """What the most relevant fact must reach for any to be shown, and what each must reach."""
    others = _OF_OTHERS * message.of_others
    opening = _OPENING + _LONGER_OPENING * message.length + others
    opening += _IMPERSONAL_OPENING * (not message.personal)
    opening -= _PLANNED_OPENING * (message.plans and message.own > 0)
    least = _LEAST + _LONGER * message.length + others
    least += _IMPERSONAL * (not message.personal) - _OWN_THINGS * min(2, message.own)
    share = (_LEAST_SHARE if named else _LEAST_SHARE_BY_MEANING) - _PLANNED_SHARE * message.plans
    return opening, max(least, share * top)
