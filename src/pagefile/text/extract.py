"""Summaries without a model: the most important sentences, in their original order.

Used offline and if a model fails. It invents nothing: every sentence is from the conversation.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pagefile.text.corrections import ALSO, CERTAIN, LIKELY, Statement, may_go, successions
from pagefile.text.sentences import Language, cut_to, is_cjk, sentences
from pagefile.text.sentences import language as language_of
from pagefile.text.speakers import UNANSWERED
from pagefile.text.tables import filled, table
from pagefile.text.words import TRIVIAL, terms

_TABLE = table("pagefile.text", "anchors")
_ANCHOR = re.compile("|".join(f"(?:{filled(kind, _TABLE['parts'])})" for kind in _TABLE["kinds"]))


def anchors(text: str) -> list[str]:
    """Numbers with units, dates, times, money, names, ids, paths, addresses and titles, in order, once each."""
    found = (match.group().rstrip(" .,") for match in _ANCHOR.finditer(text))
    return [anchor for anchor in dict.fromkeys(found) if anchor not in _TABLE["no_names"]]


_CLAUSE = re.compile(r"(?:[^。！？；!?;\n，,]|,(?=\S))+")
#: How many characters before and after an anchor are kept of a long clause.
_BESIDE = 24


def anchor_phrases(text: str) -> list[str]:
    """The anchors of a text, each once, with the words around them: a bare number does not say what it counts."""
    found: dict[str, None] = {}
    for clause in (match[0].rstrip(". ") for piece in sentences(text) for match in _CLAUSE.finditer(piece)):
        matches = _ANCHOR.finditer(clause)
        spans = [match.span() for match in matches if match.group().rstrip(" .,") not in _TABLE["no_names"]]
        if spans:
            start, end = max(0, spans[0][0] - _BESIDE), min(len(clause), spans[-1][1] + _BESIDE)
            # A list of many has no words of its own.
            phrases = anchors(clause) if end - start > 4 * _BESIDE else [_whole_words(clause, start, end)]
            found.update(dict.fromkeys(phrases))
    return list(found)


def _whole_words(text: str, start: int, end: int) -> str:
    """A part of a text without the halves of words at its ends."""
    if start and not is_cjk(text[start]):
        start = min(end, text.find(" ", start) + 1 or start)
    if end < len(text) and not is_cjk(text[end]):
        end = max(start, text.rfind(" ", start, end) if " " in text[start:end] else end)
    return text[start:end].strip()


def says_anchors(summary: str, phrase: str) -> bool:
    """Whether a summary has everything exact that a phrase has."""
    return phrase in summary or all(anchor in summary for anchor in anchors(phrase) or [phrase])


#: Speakers whose statements take precedence: what users said about themselves must not be lost.
_USERS = frozenset({"user", "human", "用户", *UNANSWERED.values()})
_ASSISTANTS = frozenset({"assistant", "ai", "助手"})
_SPEAKERS = _USERS | _ASSISTANTS | frozenset({"system", "系统", "tool", "工具"})
_NAMES = {
    "zh": {
        "user": "用户",
        "assistant": "助手",
        "system": "系统",
        "tool": "工具",
        UNANSWERED["en"]: UNANSWERED["zh"],
    }
}
#: Prefix of a statement that updates the one before it.
_LATER = {"en": "Later: ", "zh": "后来："}
#: Between statements that the same one may update.
_JOINED = " / "
_ENDS = "。.!！"
#: Before one of several such statements that itself updates another.
_THEN = {"en": "later: ", "zh": "后来："}
#: The share of a summary that statements that are shown together take at most.
_TOGETHER = 0.35
_PAIR = 2
#: Turns between a statement and one that is shown with it, as far as that is known afterwards.
_APART = 4

#: Weights of the parts of a sentence's score, relative to its centrality, which is 0 to 1.
_FROM_USER = 0.5
_FROM_ASSISTANT = -0.4
_PER_ANCHOR = 0.2
_MOST_ANCHORS = 4
_OPENS_TEXT = 0.15
_IS_QUESTION = -0.6
#: Open issues, as opposed to questions put to the assistant.
_IS_OPEN = 0.8
_OPEN = re.compile(
    r"\b(?:open|undecided|decide|wonder\w*|haven't|not sure|remind)\b|没想好|还没|未定|犹豫|没定|下次要问|再考虑",
    re.IGNORECASE,
)
_IS_WEIGHTY = 0.8
#: How much of its score a sentence loses if everything in it was already said.
_REPEATS = 0.9
#: What a user would not want to be forgotten: allergies, wishes, decisions, corrections.
_WEIGHTY = re.compile(
    r"过敏|禁忌|不能|不要|必须|一定要|记住|务必|喜欢|讨厌|决定|改成|其实|allerg|must|never|always|remember|prefer|decid|instead|actually",
    re.IGNORECASE,
)
#: What harms a user if it is forgotten comes before everything else.
_IS_VITAL = 3.0
_VITAL = re.compile(r"过敏|禁忌|不耐受|allerg|intoleran", re.IGNORECASE)
#: An answer with at most this share of new words repeats what it answers.
_ECHO = 0.67
#: The share of the previous summary if there is something new: its sentences were already chosen once.
_PREVIOUS_SHARE = 0.6


class _Sentence(NamedTuple):
    """A sentence, the text it comes from, and what it is about."""

    text: str
    speaker: str
    source: int
    opens: bool
    words: frozenset[str]
    anchors: int
    #: Whether it may supersede the sentence before it in its line.
    later: bool = False
    #: How many sentences further in its line is the one that may supersede it; 0 if there is none.
    until: int = 0
    #: Whether it may supersede one of those that it is shown together with.
    updates: bool = False


def summarize(
    texts: Sequence[tuple[str, str]],
    *,
    limit: int,
    measure: Callable[[str], int] = len,
    previous: str | None = None,
    language: Language | None = None,
) -> str:
    """A deterministic summary of `(speaker, text)` pairs that is no longer than the limit, in characters unless a `measure` is given.

    One line per text that is still represented, `speaker: sentences`, in the order of the conversation,
    starting with what is kept of the `previous` summary. No sentence is cut, unless not a single one fits.
    The speakers are named in the `language`, if one is given.
    """
    lines = _lines_of(previous or "", {speaker for speaker, _ in texts})
    names = _NAMES.get(language or "", {})
    said = [(names.get(speaker, speaker), text) for speaker, text in (*lines, *texts)]
    read = _read(said)
    groups = _Groups([measure(one.text) for one in read], int(limit * _TOGETHER))
    pool = _distinct(_current(read, groups, known_below=len(lines)))
    if not pool:
        return ""
    scores = _score(pool)
    chosen = _choose(pool, scores, limit, measure, old_below=len(lines))
    if not chosen:
        best = max(range(len(pool)), key=lambda at: (scores[at], -at))
        return cut_to(_render([pool[best]]), limit, measure)
    kept = set(chosen)
    # Joined, sentences may have a few tokens more than apart.
    while measure(said := _render([pool[at] for at in sorted(kept)])) > limit and len(kept) > 1:
        least = min(kept, key=lambda at: (scores[at], -at))
        # What was possibly superseded is never shown without what came later.
        kept -= {least, least - 1} if pool[least].later else {least}
    return cut_to(said, limit, measure)


def _lines_of(summary: str, speakers: Iterable[str]) -> list[tuple[str, str]]:
    """The lines of an earlier summary as speaker and text; a line without a known speaker has none."""
    known = {speaker.casefold() for speaker in speakers} | _SPEAKERS
    lines: list[tuple[str, str]] = []
    for line in summary.splitlines():
        speaker, colon, text = line.partition(": ")
        spoken = bool(colon) and speaker.casefold() in known
        lines.append((speaker, text) if spoken else ("", line))
    return lines


def _read(texts: Sequence[tuple[str, str]]) -> list[_Sentence]:
    read: list[_Sentence] = []
    for source, (speaker, text) in enumerate(texts):
        whole = _Sentence("", speaker, source, opens=True, words=frozenset(), anchors=0)
        before = 0
        for piece in sentences(text):
            spaced = re.sub(r"\s+", " ", piece).strip()
            bare = spaced.removeprefix(_LATER["en"]).removeprefix(_LATER["zh"])
            later = bare != spaced and not whole.opens
            if later:
                read[-before:] = _apart(read[-before:])
            some = _read_one(whole._replace(later=later), bare)
            read += some
            before = len(some)
            whole = whole._replace(opens=whole.opens and not some)
    return read


def _ended(text: str) -> str:
    """A part of a sentence as a sentence of its own: without an end it would be read together with the next one."""
    return text if not text or text[-1] in f"{_ENDS}?？" else text + ("。" if is_cjk(text[-1]) else ".")


def _apart(before: Sequence[_Sentence]) -> list[_Sentence]:
    """The statements that a correction follows, one by one, as they were before they were joined."""
    some: list[_Sentence] = []
    for text in (text for one in before for text in one.text.split(_JOINED)):
        bare = text.removeprefix(_THEN["en"]).removeprefix(_THEN["zh"])
        some += _read_one(before[0]._replace(updates=bare != text), _ended(bare))
    return [one._replace(until=len(some) - at) for at, one in enumerate(some)]


def _read_one(whole: _Sentence, text: str) -> list[_Sentence]:
    """A sentence at the place of another; none if it says nothing."""
    words = frozenset(terms(text, keep_stop_words_if_empty=False))
    return [whole._replace(text=text, words=words, anchors=len(anchors(text)))] if words else []


class _Links(NamedTuple):
    """Which sentences may supersede which, by position in the pool."""

    pool: Sequence[_Sentence]
    #: Of each that may be superseded by what, and how likely; first the one it is left out for or shown with.
    found: Mapping[int, Sequence[tuple[int, float]]]
    #: Pairs that may both hold.
    alike: AbstractSet[tuple[int, int]]

    def leaves(self, at: int) -> bool:
        if at not in self.found:
            return False
        new, chance = self.found[at][0]
        return (at, new) not in self.alike and may_go(self.pool[at].text, chance)

    def gone(self, at: int) -> bool:
        """Whether nothing of a sentence is shown: what probably superseded it was superseded too."""
        if at not in self.found or self.leaves(at):
            return False
        new, chance = self.found[at][0]
        sure = chance >= LIKELY and (at, new) not in self.alike
        return sure and new in self.found and may_go(self.pool[at].text, 1.0)

    def successor(self, at: int) -> int:
        """A sentence, or what it was left out for."""
        while self.leaves(at) or self.gone(at):
            at = self.found[at][0][0]
        return at

    def beside(self, at: int) -> Iterator[tuple[float, int, int]]:
        """What a sentence is shown with, and how likely: everything that may well have superseded it, and what it was shown with before."""
        if until := self.pool[at].until:
            yield LIKELY, at, self.successor(at + until)
        for place, (new, chance) in enumerate(self.found.get(at, ())):
            if place == 0 or chance >= ALSO:
                yield chance, at, self.successor(new)


def _current(pool: Sequence[_Sentence], groups: "_Groups", *, known_below: int) -> list[_Sentence]:
    """Drops corrected statements and the replies to them; possibly corrected ones are followed by what came later."""
    links = _links(pool, known_below)
    answers = {pool[at].source + 1 for at in links.found}
    spoken = _spoken(pool)
    kept: dict[int, _Sentence] = {}
    for at, sentence in enumerate(pool):
        if links.leaves(at) or links.gone(at):
            continue
        if sentence.speaker.casefold() not in _USERS and sentence.source in answers:
            continue
        if not _echoes(sentence, spoken[sentence.source - 1]):
            kept[at] = sentence._replace(later=False)
    pairs = (pair for at in kept for pair in links.beside(at))
    for _, at, other in sorted(pairs, key=lambda pair: -pair[0]):
        # A line has one speaker, and says of what it has whether it was answered.
        if pool[at].speaker == pool[other].speaker and groups.join(at, other):
            kept[max(at, other)] = kept[max(at, other)]._replace(updates=True)
            for more in _rest(pool, other):
                groups.join(other, more)
    shown: list[_Sentence] = []
    earlier: defaultdict[int, list[_Sentence]] = defaultdict(list)
    for at, sentence in kept.items():
        if groups.last(at) == at:
            shown += _with_earlier(sentence._replace(updates=False), earlier[at])
        else:
            earlier[groups.last(at)].append(sentence)
    return shown


def _rest(pool: Sequence[_Sentence], at: int) -> Iterator[int]:
    """What was said behind a correction in the same go: "She fell ill. Ask Ben." """
    for more in range(at + 1, len(pool)):
        if pool[more].source != pool[at].source or pool[more].until or pool[more].later:
            return
        yield more


class _Groups:
    """Sentences that are shown together, each group with its last one."""

    def __init__(self, sizes: Sequence[int], most: int) -> None:
        self._later = list(range(len(sizes)))
        self._counts = [1] * len(sizes)
        self._sizes = list(sizes)
        self._most = most

    def last(self, at: int) -> int:
        """The last sentence of a group."""
        while self._later[at] != at:
            at = self._later[at]
        return at

    def join(self, one: int, other: int) -> bool:
        """Make two groups one, unless they would be too much of a summary; whether they are one. Two sentences always may."""
        first, second = sorted((self.last(one), self.last(other)))
        if first == second:
            return True
        count, size = (some[first] + some[second] for some in (self._counts, self._sizes))
        if count > _PAIR and size > self._most:
            return False
        self._later[first] = second
        self._counts[second], self._sizes[second] = count, size
        return True


def _links(pool: Sequence[_Sentence], known_below: int) -> _Links:
    places = [at for at, sentence in enumerate(pool) if sentence.speaker.casefold() in _USERS]
    known = sum(pool[at].source < known_below for at in places)
    # What a user said in one go is one turn, whether or not an answer is left of it.
    goes = [(pool[at].source, pool[at].until) for at in places]
    # Those that were paired are in one line now, and were apart.
    turns = {one: turn + (_APART if one[1] == 0 else 0) for turn, one in enumerate(dict.fromkeys(goes))}
    said = [_statement(pool, at, turns[one]) for at, one in zip(places, goes, strict=True)]
    paired = {at: at + pool[place].until for at, place in enumerate(places) if pool[place].until}
    found: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    alike: set[tuple[int, int]] = set()
    for one in successions(said, known, paired):
        old, new = places[one.old], places[one.new]
        found[old].append((new, one.probability))
        if one.alike:
            alike.add((old, new))
    for at, some in found.items():
        was = at + pool[at].until
        certain = next((new for new, chance in some if chance >= CERTAIN and new != was), None)
        # The first that certainly supersedes it, then the likeliest.
        some.sort(key=lambda one: (one[0] != certain, -one[1]))
        # What was not left out when more was known about it is not left out now.
        some[:] = [(new, 0.0 if new == was else chance) for new, chance in some]
    return _Links(pool, found, alike)


def _with_earlier(one: _Sentence, earlier: Sequence[_Sentence]) -> list[_Sentence]:
    """Puts the statements that a sentence may supersede before it, joined into one."""
    # What was said in one go stays together.
    before, last = list[_Sentence](), list[_Sentence]()
    for said in earlier:
        (before if said.source != one.source or said.until else last).append(said)
    if not before:
        return [*last, one]
    (later,) = _read_one(one, _in_one([said._replace(updates=False) for said in (*last, one)]))
    return [*_read_one(one, _in_one(before)), later._replace(later=True, opens=False)]


def _in_one(some: Sequence[_Sentence]) -> str:
    """Several sentences as one."""
    if len(some) == 1:
        return some[0].text
    texts = [f"{_THEN[language_of(one.text)] if one.updates else ''}{one.text.rstrip(_ENDS)}" for one in some]
    return _ended(_JOINED.join(texts))


def _statement(pool: Sequence[_Sentence], at: int, turn: int) -> Statement:
    """A user's sentence; the last of a message carries the reply."""
    one, answer = pool[at], list[str]()
    if at + 1 < len(pool) and pool[at + 1].source == one.source + 1:
        said = (other for other in pool[at + 1 :] if other.source == one.source + 1)
        answer = [other.text for other in said if other.speaker.casefold() not in _USERS]
    return Statement(one.text, turn, " ".join(answer))


def _distinct(pool: Sequence[_Sentence]) -> list[_Sentence]:
    """Without sentences that repeat another (the first stays), and without "thanks!" if there is more."""
    seen: dict[frozenset[str], _Sentence] = {}
    for sentence in pool:
        seen.setdefault(sentence.words, sentence)
    return [sentence for sentence in seen.values() if _tells(sentence)] or list(seen.values())


def _spoken(pool: Iterable[_Sentence]) -> Mapping[int, AbstractSet[str]]:
    """The words of each text."""
    spoken: defaultdict[int, set[str]] = defaultdict(set)
    for sentence in pool:
        spoken[sentence.source].update(sentence.words)
    return spoken


def _echoes(sentence: _Sentence, before: AbstractSet[str]) -> bool:
    """Whether an assistant only repeats what was said just before."""
    if sentence.speaker.casefold() not in _ASSISTANTS:
        return False
    return len(sentence.words - before) <= _ECHO * len(sentence.words)


def _tells(sentence: _Sentence) -> bool:
    said = sentence.text.casefold().strip(" .,!?。，！？~～…")
    return said not in TRIVIAL and (len(sentence.words) > 1 or sentence.anchors > 0)


def _score(pool: Sequence[_Sentence]) -> list[float]:
    """The weight of each sentence: how central its words are, its anchors, its speaker, its position."""
    spread = Counter(word for sentence in pool for word in sentence.words)
    central = [
        sum(spread[word] - 1 for word in sentence.words) / len(sentence.words) ** 0.5 for sentence in pool
    ]
    most = max(central) or 1.0
    return [share / most + _bonus(sentence) for share, sentence in zip(central, pool, strict=True)]


def _bonus(sentence: _Sentence) -> float:
    bonus = _PER_ANCHOR * min(sentence.anchors, _MOST_ANCHORS)
    if sentence.speaker.casefold() in _USERS:
        bonus += _FROM_USER + (_IS_WEIGHTY if _WEIGHTY.search(sentence.text) else 0.0)
        bonus += _IS_OPEN if _OPEN.search(sentence.text) else 0.0
        bonus += _IS_VITAL if _VITAL.search(sentence.text) else 0.0
    elif sentence.speaker.casefold() in _ASSISTANTS:
        bonus += _FROM_ASSISTANT
    bonus += _OPENS_TEXT if sentence.opens else 0.0
    return bonus + (_IS_QUESTION if sentence.text.endswith(("?", "？")) else 0.0)


def _choose(
    pool: Sequence[_Sentence],
    scores: Sequence[float],
    limit: int,
    measure: Callable[[str], int],
    *,
    old_below: int,
) -> set[int]:
    """The best that fit: old ones within their share, then new ones, then whatever else fits.

    The best is taken repeatedly; one that repeats what is already said counts for little.
    """
    olds = [at for at, sentence in enumerate(pool) if sentence.source < old_below]
    news = [at for at, sentence in enumerate(pool) if sentence.source >= old_below]
    keep_free = limit - int(limit * _PREVIOUS_SHARE) if news else 0
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(pool):
        for word in sentence.words:
            holders[word].append(at)
    said = [0.0] * len(pool)
    chosen: set[int] = set()
    lines: set[int] = set()
    left = limit + 1  # the first line has no line break before it
    sizes = [measure(sentence.text) for sentence in pool]
    for group, reserve in ((olds, keep_free), (news, 0), (olds, 0)):
        # Never show a possibly superseded sentence without its successor.
        open_still = {at for at in group if not _waits(pool, at, chosen)} - chosen
        shortest = min((sizes[at] for at in open_still), default=0)
        while open_still and shortest < left - reserve:
            best = max(open_still, key=lambda at: (scores[at] * (1 - _REPEATS * said[at]), -at))
            open_still.remove(best)
            sentence = pool[best]
            # The most it can add: itself and a space, or a new line with its speaker.
            label = 0 if sentence.source in lines else measure(_labelled(sentence._replace(text="")))
            mark = measure(_LATER[language_of(sentence.text)]) if sentence.later else 0
            cost = sizes[best] + label + mark + 1
            if cost > left - reserve:
                continue
            left -= cost
            chosen.add(best)
            if sentence.later:
                open_still.add(best - 1)
            lines.add(sentence.source)
            for other in {other for word in sentence.words for other in holders[word]}:
                words = pool[other].words
                said[other] = max(said[other], len(words & sentence.words) / len(words))
    return chosen


def _waits(pool: Sequence[_Sentence], at: int, chosen: Container[int]) -> bool:
    return at + 1 < len(pool) and pool[at + 1].later and at + 1 not in chosen


def _labelled(sentence: _Sentence) -> str:
    return f"{sentence.speaker}: {sentence.text}" if sentence.speaker else sentence.text


def _render(chosen: Sequence[_Sentence]) -> str:
    out = ""
    source = None
    for sentence in chosen:
        if sentence.source != source:
            out += ("\n" if out else "") + _labelled(sentence)
        else:
            ends_in_chinese = is_cjk(out[-1]) or out[-1] in "。！？…”」』）》"
            later = _LATER[language_of(sentence.text)] if sentence.later else ""
            out += ("" if ends_in_chinese else " ") + later + sentence.text
        source = sentence.source
    return out
