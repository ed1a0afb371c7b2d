"""Summaries without a model: the most important sentences, in their original order.

Used offline and if a model fails. It invents nothing: every sentence is from the conversation.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pagefile.text.sentences import Language, cut, is_cjk, sentences
from pagefile.text.tables import filled, table
from pagefile.text.words import terms

_TABLE = table("pagefile.text", "anchors")
_ANCHOR = re.compile("|".join(f"(?:{filled(kind, _TABLE['parts'])})" for kind in _TABLE["kinds"]))


def anchors(text: str) -> list[str]:
    """Numbers with units, dates, times, money, names, ids, paths, addresses and titles, in order, once each."""
    found = (match.group().rstrip(" .,") for match in _ANCHOR.finditer(text))
    return [anchor for anchor in dict.fromkeys(found) if anchor not in _TABLE["no_names"]]


#: Speakers whose statements take precedence: what users said about themselves must not be lost.
_USERS = frozenset({"user", "human", "用户"})
_SPEAKERS = _USERS | frozenset({"assistant", "ai", "助手", "system", "系统", "tool", "工具"})
_NAMES = {"zh": {"user": "用户", "assistant": "助手", "system": "系统", "tool": "工具"}}

#: Weights of the parts of a sentence's score, relative to its centrality, which is 0 to 1.
_FROM_USER = 0.5
_PER_ANCHOR = 0.2
_MOST_ANCHORS = 4
_OPENS_TEXT = 0.15
_IS_QUESTION = -0.2
_IS_WEIGHTY = 0.8
#: How much of its score a sentence loses if everything in it was already said.
_REPEATS = 0.9
#: What a user would not want to be forgotten: allergies, wishes, decisions, corrections.
_WEIGHTY = re.compile(
    r"过敏|禁忌|不能|不要|必须|一定要|记住|务必|喜欢|讨厌|决定|改成|其实|allerg|must|never|always|remember|prefer|decid|instead|actually",
    re.IGNORECASE,
)
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


def summarize(
    texts: Sequence[tuple[str, str]],
    *,
    max_chars: int,
    previous: str | None = None,
    language: Language | None = None,
) -> str:
    """A deterministic summary of `(speaker, text)` pairs with at most `max_chars` characters.

    One line per text that is still represented, `speaker: sentences`, in the order of the conversation,
    starting with what is kept of the `previous` summary. No sentence is cut, unless not a single one fits.
    The speakers are named in the `language`, if one is given.
    """
    lines = _lines_of(previous or "", {speaker for speaker, _ in texts})
    names = _NAMES.get(language or "", {})
    pool = _distinct(_read([(names.get(speaker, speaker), text) for speaker, text in (*lines, *texts)]))
    if not pool:
        return ""
    scores = _score(pool)
    chosen = _choose(pool, scores, max_chars, old_below=len(lines))
    if not chosen:
        best = max(range(len(pool)), key=lambda at: (scores[at], -at))
        return cut(_render([pool[best]]), max_chars)
    return _render([pool[at] for at in sorted(chosen)])


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
        opens = True
        for piece in sentences(text):
            sentence = re.sub(r"\s+", " ", piece).strip()
            words = frozenset(terms(sentence, keep_stop_words_if_empty=False))
            if words:
                read.append(_Sentence(sentence, speaker, source, opens, words, len(anchors(sentence))))
                opens = False
    return read


def _distinct(pool: Sequence[_Sentence]) -> list[_Sentence]:
    """Without sentences that repeat another (the first stays), and without "thanks!" if there is more."""
    seen: dict[frozenset[str], _Sentence] = {}
    for sentence in pool:
        seen.setdefault(sentence.words, sentence)
    telling = [sentence for sentence in seen.values() if len(sentence.words) > 1 or sentence.anchors]
    return telling or list(seen.values())


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
    bonus += _OPENS_TEXT if sentence.opens else 0.0
    return bonus + (_IS_QUESTION if sentence.text.endswith(("?", "？")) else 0.0)


def _choose(
    pool: Sequence[_Sentence], scores: Sequence[float], max_chars: int, *, old_below: int
) -> set[int]:
    """The best that fit: old ones within their share, then new ones, then whatever else fits.

    The best is taken repeatedly; one that repeats what is already said counts for little.
    """
    olds = [at for at, sentence in enumerate(pool) if sentence.source < old_below]
    news = [at for at, sentence in enumerate(pool) if sentence.source >= old_below]
    keep_free = max_chars - int(max_chars * _PREVIOUS_SHARE) if news else 0
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(pool):
        for word in sentence.words:
            holders[word].append(at)
    said = [0.0] * len(pool)
    chosen: set[int] = set()
    lines: set[int] = set()
    left = max_chars + 1  # the first line has no line break before it
    for group, reserve in ((olds, keep_free), (news, 0), (olds, 0)):
        open_still = set(group) - chosen
        shortest = min((len(pool[at].text) for at in open_still), default=0)
        while open_still and shortest < left - reserve:
            best = max(open_still, key=lambda at: (scores[at] * (1 - _REPEATS * said[at]), -at))
            open_still.remove(best)
            sentence = pool[best]
            # The most it can add: itself and a space, or a new line with its speaker.
            cost = len(sentence.text if sentence.source in lines else _labelled(sentence)) + 1
            if cost > left - reserve:
                continue
            left -= cost
            chosen.add(best)
            lines.add(sentence.source)
            for other in {other for word in sentence.words for other in holders[word]}:
                words = pool[other].words
                said[other] = max(said[other], len(words & sentence.words) / len(words))
    return chosen


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
            out += ("" if ends_in_chinese else " ") + sentence.text
        source = sentence.source
    return out
