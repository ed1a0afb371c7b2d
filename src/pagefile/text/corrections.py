"""Which statements of a conversation were overruled by later ones: people move, dates change, medicines are replaced.

Without a model that can only be guessed. How likely a later statement overrules an earlier one is a weighted sum of what the two
have in common (words, values of the same kind, words of correction and of change); the weights are fitted to judged
conversations by `benchmarks.dialogues.fitting`.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from typing import NamedTuple

from pagefile.text.tables import filled, table
from pagefile.text.words import ASKING_TERMS, GENERAL_WORDS, STOP_WORDS, terms

_TABLE = table("pagefile.text", "corrections")
_MEASURES = frozenset(_TABLE["measures"].split())
_NO_UNITS = STOP_WORDS | {"now"}
#: Chinese terms with one of these are no names of things.
_NO_SUBJECT = frozenset("是在了的到改换为有我你他她它们不也就把被这那什么吗呢吧和跟还没")
#: How many statements with the same word or kind of value are looked at, the newest first.
_LOOK_BACK = 30
#: From this probability on a correction itself is left out.
SURE = 0.75
#: From this one on an earlier statement that says one thing is left out.
CERTAIN = 0.5
#: From this one on it is left out if the later one is overruled too.
LIKELY = 0.2
#: From this one on it is shown together with the likeliest of the later ones.
POSSIBLE = 0.02
#: From this probability on a statement is shown together with each of the later ones, not only with the likeliest.
ALSO = 0.1
_HALF = 0.5
#: Factor for the probability of a statement that competes with a likelier one.
_RIVAL = 0.5
#: Words that begin with the same letters are the same word (PostgreSQL, Postgres).
_STEM = 6
_UNITS = {unit: name for name, units in _TABLE["units"].items() for unit in units}
_KINDS = frozenset({"date", "weekday", "time", "frequency", "count", "measure", "number", "other"})
_DIGITS = str.maketrans("一二三四五六七八九两", "1234567892")
#: Ones, teens and tens, in the order of the table.
_NUMBER_WORDS = {
    word: step * (first + at)
    for name, first, step in (("ones", 2, 1), ("teens", 10, 1), ("tens", 2, 10))
    for at, word in enumerate(_TABLE["parts"][name].split("|"))
}
_CLAUSE = re.compile(
    r"[，;；]|,(?!\d)|\b(?:and|but) (?=(?:I|we|you|he|she|they|it|my|our|your|his|her|their|the)\b)"
)
_NONE: Mapping[int, int] = {}
_ALIKE = str.maketrans({"c": "k", "q": "k", "z": "s", "w": "v", "j": "g"})
#: Sounds that a name needs to be told from others.
_SOUNDS = 3


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, the number of its turn, and what was answered: an answer often repeats what was understood."""

    text: str
    turn: int
    answer: str = ""


class Succession(NamedTuple):
    """A statement and the sentence that probably overrules it, by position."""

    old: int
    new: int
    probability: float
    #: Whether both may hold, since they say the like of different things: Anna's dose and Ben's.
    alike: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    turn: int
    text: str
    subject: frozenset[str]
    #: Words of the answer.
    answer: frozenset[str]
    #: Pairs of Chinese characters, whatever they mean.
    pairs: frozenset[str]
    values: Mapping[str, frozenset[str]]
    #: Values of kinds that only the answer has, as it often works out what was meant: "a week later", "August 23, then".
    worked_out: Mapping[str, frozenset[str]]
    cues: Mapping[str, bool]
    #: Whether the answer says that something is different now.
    confirmed: bool
    #: Names of people, places and things.
    names: frozenset[str]
    #: How they sound, about: whoever spells a name again means the same one.
    sounds: Mapping[str, str]
    #: What tells one of several like things from another: who, which one, when in the day.
    marks: frozenset[str]

    @classmethod
    def of(cls, text: str, turn: int, answer: str) -> "_Read":
        values: defaultdict[str, set[str]] = defaultdict(set)
        told = list(_values(answer))
        # An answer often names the unit that was left out.
        answered = {value: kind for kind, value in told if kind.startswith("number")}
        for kind, value in _values(text):
            values[answered.get(value, kind) if kind.startswith("number") else kind].add(value)
        worked_out: defaultdict[str, set[str]] = defaultdict(set)
        for kind, value in told:
            if kind not in values:
                worked_out[kind].add(value)
        return cls(
            turn,
            text,
            _subject(text),
            _subject(answer),
            frozenset(re.findall(r"(?=([\u4e00-\u9fff]{2}))", text)),
            {kind: frozenset(some) for kind, some in values.items()},
            {kind: frozenset(some) for kind, some in worked_out.items()},
            {name: cue_pattern(name).search(text) is not None for name in _TABLE["cues"]},
            cue_pattern("confirmed").search(answer) is not None,
            names := frozenset(match.group() for match in cue_pattern("names").finditer(text)),
            {sound: name for name in sorted(names) if len(sound := _sound(name)) >= _SOUNDS},
            frozenset(_marks(text)),
        )


def successions(
    said: Sequence[Statement], known: int = 0, paired: Mapping[int, int] = _NONE
) -> list[Succession]:
    """Of each turn the earlier statements that it probably overrules.

    The first `known` statements were compared with each other before; of them only those that were `paired` then are compared.
    """
    compared: defaultdict[int, list[tuple[float, int, int, frozenset[str]]]] = defaultdict(list)
    alike: set[tuple[int, int]] = set()
    for old, new, found in comparisons(said, known, paired):
        compared[said[new].turn].append((_probability(found), old, new, _KINDS & found.keys()))
        if found["another"] or found["like"]:
            alike.add((old, new))
    return [
        Succession(old, new, chance, (old, new) in alike)
        for olds in compared.values()
        for old, new, chance in sorted(_without_rivals(olds))
        # Who somebody is and what they must not be given seldom changes.
        if chance >= (LIKELY if cue_pattern("lasting").search(said[old].text) else POSSIBLE)
    ]


def _without_rivals(
    olds: Sequence[tuple[float, int, int, frozenset[str]]],
) -> Iterator[tuple[int, int, float]]:
    """A turn usually corrects one thing: statements less likely than the best one are discounted unless their values are of the same kind."""
    best, _, _, kinds = max(olds)
    for chance, old, new, conflicts in olds:
        rival = chance < best and not (kinds & conflicts)
        yield old, new, chance * (_RIVAL if rival else 1.0)


def comparisons(
    said: Sequence[Statement], known: int = 0, paired: Mapping[int, int] = _NONE
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Each statement with the sentence of each later turn that may overrule it, and what speaks for it."""
    read = [_Read.of(one.text, one.turn, one.answer) for one in said]
    turns: dict[int, list[int]] = {}
    for at, one in enumerate(said):
        if not cue_pattern("question").search(one.text) or _is_granted(one):
            turns.setdefault(one.turn, []).append(at)
    wanted = frozenset(paired.values())
    words = [frozenset[str]().union(*(read[at].subject for at in ats)) for ats in turns.values()]
    spread = Counter(word for some in words for word in some)
    before: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_LOOK_BACK))
    for turn, ats in turns.items():
        fresh = ats[-1] >= known
        if fresh or wanted.intersection(ats):
            new = _Read.of(" ".join(said[at].text for at in ats), turn, said[ats[-1]].answer)
            # Those that were paired are older than their place says.
            placed = {kind: [at for at in before[_key(kind)] if at not in paired] for kind in new.values}
            newest = {kind: read[some[-1]].turn for kind, some in placed.items() if some}
            for kind, some in placed.items():
                like = (read[at].turn for at in some if _are_close(read[at].values[kind], new.values[kind]))
                newest[f"close {kind}"] = max(like, default=newest.get(kind, 0))
            found = {
                old: _features(read[old], new, spread, newest)
                for old in sorted(
                    {old for key in (*_keys(new), *map(_key, new.worked_out)) for old in before[key]}
                )
            }
            _compete(found.values())
            for old, features in found.items():
                if fresh or paired.get(old) in ats:
                    yield old, _speaks(read[old], [(at, read[at]) for at in ats]), features
        for at in ats:
            for key in _keys(read[at]):
                before[key].append(at)


def _speaks(old: _Read, turn: Sequence[tuple[int, _Read]]) -> int:
    """Which sentence of a turn says what holds instead: the first with another value of the same kind, else the first."""
    for at, one in turn:
        for kind in one.values.keys() & old.values.keys():
            # "Sundays" is no other day than "Sunday".
            if not {value.rstrip("s") for value in one.values[kind]} <= {
                value.rstrip("s") for value in old.values[kind]
            }:
                return at
    return turn[0][0]


def _compete(found: Iterable[dict[str, float]]) -> None:
    """A turn that corrects something corrects what it has most in common with."""
    common = [(sum(one[name] for name in ("shared", "share", "answered", "pairs")), one) for one in found]
    most = max((much for much, _ in common), default=0.0)
    for much, one in common:
        one["behind"] = most - much
        one["cue first"] = one["cue"] if much == most else 0.0


def overruled(said: Sequence[Statement], known: int = 0) -> dict[int, int]:
    """The statements that no longer hold, each with the first that overrules it, by position."""
    gone: dict[int, int] = {}
    for one in successions(said, known):
        if one.probability >= CERTAIN and not one.alike:
            gone.setdefault(one.old, one.new)
    return gone


def _key(kind: str) -> str:
    """A kind of value, which no word is: "date" is one."""
    return f"#{kind}"


def _keys(one: _Read) -> Iterator[str]:
    """What two statements must share to be compared: a word, a kind of value, or their place."""
    yield from one.subject | one.answer
    yield from map(_key, one.values)
    if any(kind.startswith("number") for kind in one.values):
        yield _key("number")
    yield from one.sounds
    yield f"turn {one.turn}"
    yield f"turn {one.turn - 1}"


def _features(
    old: _Read, new: _Read, spread: Mapping[str, int], newest: Mapping[str, int]
) -> dict[str, float]:
    """What speaks for or against the new statement overruling the old one.

    `spread` counts in how many turns a word occurs; `newest` is the last turn with a value of a kind.
    """

    def weights(words: frozenset[str]) -> list[float]:
        return [1 / max(1, spread.get(word, 1) - 1) for word in words]

    common = weights(old.subject & new.subject)
    shared = min(2.0, max(common) + sum(common) / 4) if common else 0.0
    answered = ((old.answer & new.subject) | (old.subject & new.answer)) - (old.subject & new.subject)
    values = set(_conflicts(old, new, newest))
    cue = float(any(new.cues[name] for name in ("change", "end", "value")))
    value = float(bool(values - {"equal", "newest"}))
    apart = new.turn - old.turn
    pairs = min(1.0, len(old.pairs & new.pairs) / 2)
    return {
        "bias": 1.0,
        "shared": shared,
        "share": len(common) / max(1, len(old.subject)),
        "answered": min(1.5, sum(weights(answered))),
        **{name: float(new.cues[name]) for name in ("change", "end", "value")},
        **dict.fromkeys(values, 1.0),
        "next": float(apart == 1),
        "near": float(apart in (2, 3)),
        "cue shared": cue * shared,
        "value shared": value * shared,
        "cue value": cue * value,
        "end shared": float(new.cues["end"]) * shared,
        "previous": float(new.cues["previous"] and apart == 1),
        "end next": float(new.cues["end"] and apart == 1),
        "cue next": cue * float(apart == 1),
        "short": float(len(old.subject) <= 1),
        "pairs": pairs,
        "another": float(bool(old.marks - new.marks) and bool(new.marks - old.marks)),
        "like": float(not cue and not new.confirmed and len(common) < _HALF * len(old.subject)),
        "negated": float(new.cues["negation"]) * (shared + pairs),
        "cue": cue,
        "confirmed": float(new.confirmed),
        "confirmed shared": float(new.confirmed) * shared,
        "confirmed value": float(new.confirmed) * value,
        "name": float(bool(new.names - old.names) and bool(old.names)),
        "other name": float(bool(new.names & old.names) and bool(new.names - old.names)),
        "spelt again": float(
            any(new.sounds[one] != old.sounds[one] for one in new.sounds.keys() & old.sounds)
        ),
        **{f"{name} worked out": 1.0 for name in _worked_out(old, new)},
    }


def _worked_out(old: _Read, new: _Read) -> Iterator[str]:
    """Whether an answer gives a value of a kind that an earlier statement has, and how the two compare."""
    for kind, values in new.worked_out.items():
        if before := old.values.get(kind):
            yield "equal" if values & before else "other"
            if not values & before and _are_close(values, before):
                yield "close"


def _conflicts(old: _Read, new: _Read, newest: Mapping[str, int]) -> Iterator[str]:
    """In which kinds of values the two differ, whether nothing was said of that kind in between, and whether some are equal."""
    for kind, values in new.values.items():
        for other, before in old.values.items():
            numbers = kind.startswith("number") and other.startswith("number")
            if kind != other and not (numbers and "number:" in (kind, other)):
                continue
            if values & before:
                yield "equal"
                if values - before:
                    yield "replaced"
                continue
            yield _kind_of(kind) if kind == other else "number"
            close = numbers and _are_close(values, before)
            if newest.get(f"close {other}" if close else other, old.turn) <= old.turn:
                yield "newest"
            if close:
                yield "close"


def _kind_of(kind: str) -> str:
    name, _, unit = kind.partition(":")
    if name != "number":
        return name if name in ("date", "weekday", "time", "frequency") else "other"
    return "number" if not unit else "measure" if unit in _MEASURES else "count"


def _are_close(some: Iterable[str], others: Collection[str]) -> bool:
    return any(_close(one, two) for one in some for two in others)


def _close(one: str, two: str) -> bool:
    """Whether two numbers have about the same size."""
    first, second = _size(one), _size(two)
    return first != second and 0 < max(first, second) <= 2 * min(first, second)


def _sound(name: str) -> str:
    """A name without what is written in several ways: Katherine and Catherine, Stefan and Stephan."""
    bare = name.casefold().replace("ph", "f").replace("ck", "k").translate(_ALIKE)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[aeiouyh]", "", bare))


def _is_granted(one: Statement) -> bool:
    """Whether a question is a wish that is not refused: "Could I have black ones?" "Black, no extra cost." """
    return cue_pattern("request").search(one.text) is not None and not cue_pattern("refused").search(
        one.answer
    )


def _size(number: str) -> float:
    """A number as it is written, in words too (8万8 is 88,000, twenty-four 24); 0 if it is none."""
    parts = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?)([万千]?)(\d?)", number.translate(_DIGITS))
    if parts is None:
        return float(sum(_NUMBER_WORDS.get(word, 0) for word in re.split("[- ]", number)))
    unit = {"万": 10_000, "千": 1000}.get(parts[2], 1)
    return float(parts[1].replace(",", "")) * unit + int(parts[3] or 0) * unit / 10


def _probability(found: Mapping[str, float]) -> float:
    weights = _TABLE["weights"]
    return 1 / (1 + exp(-sum(weights.get(name, 0.0) * value for name, value in found.items())))


def may_go(text: str, chance: float) -> bool:
    """Whether a sentence may be left out at this probability that it no longer holds.

    Never if it says who somebody is or what they must not be given, or says two things of which one may still hold;
    and a correction itself only if that is almost sure.
    """
    if chance < CERTAIN or cue_pattern("lasting").search(text):
        return False
    if sum(bool(_subject(clause)) for clause in _CLAUSE.split(text)) > 1:
        return False
    return chance >= SURE or not cue_pattern("change").search(text)


def _subject(text: str) -> frozenset[str]:
    """What a text is about: its topics, and its words without values and without those that say nothing of it."""
    topics = [f"@{name}" for name in _TABLE["topics"] if topic_pattern(name).search(text)]
    kin = [f"@{one}" for one in cue_pattern("kin").findall(text)]
    for _, pattern in _kinds():
        text = pattern.sub(_named, text)
    text = cue_pattern("empty").sub(" ", text)
    words = (
        word[:_STEM]
        for word in terms(text, keep_stop_words_if_empty=False)
        if word not in GENERAL_WORDS | ASKING_TERMS | _MEASURES
        and not _NO_SUBJECT.intersection(word)
        and not word.isdecimal()
    )
    return frozenset((*words, *topics, *kin))


def _marks(text: str) -> Iterator[str]:
    for match in cue_pattern("which").finditer(text):
        word = match.group()
        # A name, or the beginning of a sentence.
        if not word[0].isupper() or word.lower() not in STOP_WORDS | GENERAL_WORDS | ASKING_TERMS:
            yield word.lower()
    yield from cue_pattern("kin").findall(text)


def _named(value: re.Match[str]) -> str:
    """What a value is of: things that are counted, and the name before a version."""
    groups = value.groupdict()
    return f" {groups.get('name') or groups.get('unit') or ''} "


def _values(text: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _kinds():
        rest = ""
        end = 0
        for match in pattern.finditer(text):
            unit = (match.groupdict().get("unit") or "").lower()
            value = match.group().removesuffix(match.groupdict().get("unit") or "").strip().lower()
            name = f"code:{re.match('[A-Z]+', match.group())}" if kind == "code" else kind
            if kind == "version":
                name = f"version:{match['name'].lower()[:6]}"
            unit = "" if unit in _NO_UNITS or cue_pattern("empty").fullmatch(unit) else _UNITS.get(unit, unit)
            yield (f"{kind}:{unit}" if kind == "number" else name), value
            rest += text[end : match.start()] + " "
            end = match.end()
        text = rest + text[end:]


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    parts = _TABLE["parts"]
    return tuple((kind, re.compile(filled(form, parts))) for kind, form in _TABLE["values"])


@cache
def topic_pattern(name: str) -> re.Pattern[str]:
    """What a statement is about."""
    return re.compile(_TABLE["topics"][name])


@cache
def cue_pattern(name: str) -> re.Pattern[str]:
    """A cue of the table."""
    return re.compile(filled(_TABLE["cues"].get(name) or _TABLE[name], _TABLE["parts"]))
