"""Which statements of a conversation were overruled by later ones: people move, dates change, medicines are replaced.

Without a model that can only be guessed. A later statement overrules an earlier one if both give a value of the same kind (a date, an amount,
a count of the same thing) for something they both name, or if it has a word of correction ("instead", 改) and names what the earlier one
is about. What is in doubt stands.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from pagefile.text.sentences import is_cjk
from pagefile.text.tables import filled, table
from pagefile.text.words import ASKING_TERMS, GENERAL_WORDS, STOP_WORDS, terms

_TABLE = table("pagefile.text", "corrections")
_MEASURES = frozenset(_TABLE["measures"].split())
_NO_UNITS = STOP_WORDS | {"now"}
#: Chinese terms with one of these are no names of things.
_NO_SUBJECT = frozenset("是在了的到改换成为有我你他她它们不也就把被这那什么吗呢吧和跟还没")
#: How many turns later a statement may leave out what it is about.
_NEAR = 2
#: How many statements with the same word or kind of value are looked at, the newest first.
_LOOK_BACK = 30
#: How rare the words must be that a correction has in common with what it corrects.
_ENOUGH = 0.3
_QUESTION = ("?", "？")
_MARK = "\0"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, the number of its turn, and what was answered: an answer often repeats what was understood."""

    text: str
    turn: int
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    turn: int
    subject: frozenset[str]
    #: Words of the answer too.
    around: frozenset[str]
    #: Pairs of Chinese characters, whatever they mean.
    loose: frozenset[str]
    values: dict[str, frozenset[str]]
    cue: bool
    means_previous: bool
    asks: bool


def overruled(said: Sequence[Statement], known: int = 0) -> dict[int, int]:
    """The statements that no longer hold, each with the one that overrules it, by position.

    The first `known` were compared with each other before.
    """
    read = [_read(one) for one in said]
    spread = Counter(word for one in read for word in one.subject)
    before: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_LOOK_BACK))
    gone: dict[int, int] = {}
    for new, one in enumerate(read):
        if one.asks:
            continue
        if new >= known:
            olds = sorted({old for key in _keys(one) for old in before[key]} - gone.keys())
            found = [old for old in olds if _same_value(read[old], one)]
            if one.cue and not found:
                found = _meant(read, new, olds, spread)
            gone.update(dict.fromkeys(found, new))
        for key in _keys(one):
            before[key].append(new)
    return gone


def _keys(one: _Read) -> Iterator[str]:
    """What two statements must share to be compared: a word, a kind of value, or their place."""
    yield from one.around
    yield from one.values
    yield f"turn {one.turn}"
    yield f"turn {one.turn - 1}"


def remaining(old: str, new: str) -> str:
    """What of an overruled sentence still holds: clauses without a value or about something else, or what names a place or a person."""
    about = _subject(new)
    clauses = [clause.strip() for clause in re.split(r"[,，;；]", old.rstrip("。.!！"))]
    valued = [any(True for _ in _values(clause)) for clause in clauses]
    kept = [
        clause
        for clause, value in zip(clauses, valued, strict=True)
        if len(_subject(clause)) > 1 and not value and (any(valued) or not _subject(clause) & about)
    ]
    if kept:
        comma = "，" if is_cjk(kept[0][-1]) else ", "
        return comma.join(kept) if len(kept) < len(clauses) else ""
    rest = _without_values(old) if any(valued) else ""
    names = _subject(" ".join(re.findall(r"(?<=[a-z] )[A-Z][^\W\d_]+", rest)))
    return rest if names - about else ""


def _without_values(text: str) -> str:
    """A text without its values and the words that lead to them."""
    for _, pattern in _kinds():
        text = pattern.sub(_MARK, text)
    text = re.sub(rf"(?:\b(?:on|at|by|for|until|from|since)(?: the)? )?{_MARK}", "", text)
    return re.sub(r"\s+([.!?])|\s+", lambda gap: gap[1] or " ", text).strip()


def _same_value(old: _Read, new: _Read) -> bool:
    """Whether both give values of a kind, other ones, for something that both are about."""
    if old.turn == new.turn:
        return False
    return any(
        not values & before and _about_one_thing(old, new, kind, other)
        for kind, values in new.values.items()
        for other, before in old.values.items()
    )


def _about_one_thing(old: _Read, new: _Read, kind: str, other: str) -> bool:
    if kind != other:
        # A number whose unit is left out: only with the thing itself.
        bare = "number:" in (kind, other) and kind.startswith("number") and other.startswith("number")
        return bare and "number:%" not in (kind, other) and bool(old.subject & new.subject)
    unit = kind.partition(":")[2]
    if unit and (unit not in _MEASURES or new.turn - old.turn <= _NEAR):
        return True
    return bool(old.subject & new.around or old.around & new.subject)


def _meant(read: Sequence[_Read], new: int, olds: Sequence[int], spread: Counter[str]) -> list[int]:
    """The earlier statement that a correction is about: the one with the rarest words in common, else the one just before."""
    one = read[new]
    others = [old for old in olds if read[old].turn != one.turn]
    shared = {old: sum(1 / spread[word] for word in read[old].subject & one.subject) for old in others}
    best = max(others, key=lambda old: (shared[old], old), default=None)
    if best is not None and shared[best] >= _ENOUGH:
        return [best]
    near = [old for old in others if one.turn - read[old].turn == 1][-1:]
    return [old for old in near if one.means_previous or _touches(read[old], one)]


def _touches(old: _Read, new: _Read) -> bool:
    return bool(old.around & new.subject or old.loose & new.loose)


def _read(one: Statement) -> _Read:
    values: dict[str, set[str]] = {}
    for kind, value in (*_values(one.text), *_values(one.answer)):
        values.setdefault(kind, set()).add(value)
    subject = _subject(one.text)
    return _Read(
        one.turn,
        subject,
        subject | _subject(one.answer),
        frozenset(re.findall(r"(?=([\u4e00-\u9fff]{2}))", one.text)),
        {kind: frozenset(some) for kind, some in values.items()},
        _pattern("cues").search(one.text) is not None,
        _pattern("previous").search(one.text) is not None,
        one.text.rstrip().endswith(_QUESTION),
    )


def _subject(text: str) -> frozenset[str]:
    """What a text is about: its words without values and without those that say nothing of it."""
    for _, pattern in _kinds():
        text = pattern.sub(" ", text)
    text = _pattern("empty").sub(" ", text)
    words = terms(text, keep_stop_words_if_empty=False)
    return frozenset(
        word
        for word in words
        if word not in GENERAL_WORDS | ASKING_TERMS | _MEASURES
        and not _NO_SUBJECT.intersection(word)
        and not word.isdecimal()
    )


def _values(text: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _kinds():
        rest = ""
        end = 0
        for match in pattern.finditer(text):
            unit = (match.groupdict().get("unit") or "").lower()
            value = match.group().removesuffix(match.groupdict().get("unit") or "").strip().lower()
            name = f"code:{re.match('[A-Z]+', match.group())}" if kind == "code" else kind
            yield (f"{kind}:{'' if unit in _NO_UNITS else unit}" if kind == "number" else name), value
            rest += text[end : match.start()] + " "
            end = match.end()
        text = rest + text[end:]


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    parts = _TABLE["parts"]
    return tuple((kind, re.compile(filled(form, parts))) for kind, form in _TABLE["values"])


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_TABLE[name])
