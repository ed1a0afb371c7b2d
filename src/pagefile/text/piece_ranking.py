"""What the pieces of a page are worth to a reader: how well each answers a question, and how much it stands out."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from pagefile.text.bm25 import bm25
from pagefile.text.glossary import counterparts
from pagefile.text.reading import Frame, Piece, pieces
from pagefile.text.splitting import Passage, split
from pagefile.text.words import ASKING_TERMS, terms

#: Of a longer text only the passages that likely answer are read piece by piece, a quarter of this many characters.
_READ_CHARS = 1_500_000
#: Each stem is looked for in the whole text: of a longer question only the longest.
_MOST_STEMS = 64
#: How much the paragraph, record or definition around a piece says about it.
_AROUND = 0.5
#: How much a piece counts beside another that holds the same words of the question.
_AGAIN = 0.7
#: Minimum length of an informative opening of a page, in characters, and of a distinctive piece, in words.
_TELLS, _FEW_WORDS = 30, 3
#: A longer run of letters is no word.
_LONGEST_WORD = 24

#: An identifier written of several words, or of words and numbers, and where these meet.
_IDENTIFIER = re.compile(r"\b[A-Za-z]++(?:\d[A-Za-z0-9]*+)?+")
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z\d])|(?<=[A-Z])(?=\d)|(?<=\d)(?=[A-Z])")
_INDEX = re.compile(r"\[\d+\]")
_DIGITS = re.compile(r"\d+")
#: How something ended, which a reader of the output of a program looks for first.
_TELLING = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure|ures)?|fatal|panic|traceback|caused by|denied|refused|critical|total|summary|passed)\b"
    r"|错误|失败|异常|告警|合计|总计|共计|结论|决定|总结|拒绝",
    re.IGNORECASE,
)


class RankedPage:
    """The pieces of a page, ranked for a question."""

    def __init__(self, text: str, query: str) -> None:
        asked = _words(query)
        wanted = Counter(term for term in asked if term not in ASKING_TERMS) or Counter(asked)
        called = counterparts(wanted)
        self.pieces = list(_pieces(text, [*wanted, *chain.from_iterable(called.values())]))
        self._words = [_words(piece.text) for piece in self.pieces]
        self._asked = _as_written(wanted, called, set(chain.from_iterable(self._words)))
        self._found = 0.0
        self._scores = self._scored()

    @property
    def answers(self) -> bool:
        """Whether any piece shares a word with the question."""
        return any(self._scores)

    def asked_at(self, text: str) -> int:
        """Where in a text the first word of the question is; 0 if none is."""
        folded = text.casefold()
        found = (folded.find(stem) for term in self._asked for stem in _stems(term) if len(stem) > 1)
        return min((at for at in found if at >= 0), default=0)

    def places(self, most: int) -> list[int]:
        """Where to read, best first: what answers, and the more doubtful that is, what stands out.

        If nothing answers: the beginning, what stands out, and the end.
        """
        ranked = self._diverse(self._rated())[:most]
        if self.answers:
            return ranked
        last = len(self.pieces) - 1
        return list(dict.fromkeys([self._head(), *ranked[:1], last, *ranked[1 : most - 2]]))

    def _head(self) -> int:
        """Where the text begins, behind a title: the lines of a table are short, the table is not."""
        chars = Counter[int]()
        for piece in self.pieces:
            chars[piece.group] += piece.end - piece.start
        return next((at for at, piece in enumerate(self.pieces) if chars[piece.group] >= _TELLS), 0)

    def _scored(self) -> list[float]:
        """How well each piece answers, for itself and by the paragraph, record or definition that it is part of."""
        groups: dict[int, list[str]] = {}
        for piece, words in zip(self.pieces, self._words, strict=True):
            groups.setdefault(piece.group, []).extend(words)
        # The number of a record is nothing that is asked for.
        named = [_INDEX.sub("", piece.where) for piece in self.pieces]
        enclosing = {where: Counter(terms(where)) for where in set(named)}
        beside = [enclosing[where] for where in named]
        own = bm25(self._asked, self._words, beside)
        wide = bm25(self._asked, list(groups.values()))
        self._found = wide.best_share
        around = dict(zip(groups, wide.scores, strict=True))
        return [
            score + _AROUND * around[piece.group] if score else 0.0
            for piece, score in zip(self.pieces, own.scores, strict=True)
        ]

    def _rated(self) -> list[float]:
        worth = self._worth()
        best, highest = max(self._scores, default=0.0) or 1.0, max(worth, default=0.0) or 1.0
        # The more of the question was found, the less it counts that a piece stands out.
        weight = 1 - self._found
        return [
            score / best + weight * much / highest for score, much in zip(self._scores, worth, strict=True)
        ]

    def _diverse(self, rated: list[float]) -> list[int]:
        """Pieces by their rate, best first; of those that hold the same words of the question, each next one counts less."""
        seen = Counter[frozenset[str]]()
        lessened: dict[int, float] = {}
        for at in sorted((at for at, much in enumerate(rated) if much), key=lambda at: (-rated[at], at)):
            held = frozenset(self._asked.keys() & self._words[at])
            lessened[at] = rated[at] * (_AGAIN ** seen[held] if held else 1.0)
            seen[held] += 1
        return sorted(lessened, key=lambda at: (-lessened[at], at))

    def _worth(self) -> list[float]:
        """How much each piece stands out: by words that no other has, and by telling how something ended."""
        held = [{word for word in words if _is_word(word)} for words in self._words]
        often = Counter(chain.from_iterable(held))
        worth = [
            sum(1 / often[word] for word in words if often[word] <= 2) / (4 + len(words)) ** 0.5
            if len(words) >= _FEW_WORDS
            else 0.0
            for words in held
        ]
        telling = [at for at, piece in enumerate(self.pieces) if _TELLING.search(piece.text)]
        if len(telling) <= max(3, len(held) // 8):
            for at in telling:
                worth[at] += 1.0
        return worth


def _as_written(
    wanted: Mapping[str, int], called: Mapping[str, frozenset[str]], held: AbstractSet[str]
) -> dict[str, float]:
    """The terms of a question with their weights; what a page has only in the other language, as the page says it."""
    asked: defaultdict[str, float] = defaultdict(float)
    for term, times in wanted.items():
        others = [] if term in held else sorted(held & called.get(term, frozenset()))
        for one in others or [term]:
            asked[one] = max(asked[one], times / max(1, len(others)) ** 0.5)
    return asked


def standing_out(text: str, most: int) -> list[str]:
    """The most informative pieces of a page: its beginning, the most distinctive ones, its end."""
    page = RankedPage(text, "")
    return [page.pieces[at].text.strip() for at in page.places(most)[:most]] if page.pieces else []


def _is_word(term: str) -> bool:
    """Whether a term is a word, rather than a number, a name with digits in it, or a part of base64."""
    return term.isalpha() and len(term) <= _LONGEST_WORD


def _words(text: str) -> list[str]:
    """The terms of a text, and those of the words that an identifier is written of."""
    found = terms(text)
    joined = [name for name in _IDENTIFIER.findall(text) if _JOINT.search(name)]
    return found + terms(" ".join(_JOINT.sub(" ", name) for name in joined)) if joined else found


def _pieces(text: str, asked: Sequence[str]) -> Iterable[Piece]:
    page = Frame(text)
    if len(text) <= _READ_CHARS:
        return pieces(page)
    parts = (Frame(part.text, page, [0], [part.start]) for part in _likely(split(text), asked))
    return chain.from_iterable(map(pieces, parts))


def _likely(passages: Sequence[Passage], asked: Sequence[str]) -> Iterator[Passage]:
    """The passages that best match the stems of the query, with the first and the last, in order."""
    stems = sorted({stem for term in asked for stem in _stems(term)}, key=lambda stem: (-len(stem), stem))[
        :_MOST_STEMS
    ]
    folded = [unicodedata.normalize("NFKC", passage.text).casefold() for passage in passages]
    rare = {stem: 1 / (1 + sum(stem in text for text in folded)) for stem in sorted(stems)}
    held = [sum(rare[stem] * min(3, text.count(stem)) for stem in rare) for text in folded]
    room, chosen = _READ_CHARS // 4, {0, len(passages) - 1}
    for at in sorted(range(len(passages)), key=lambda at: (-held[at], at)):
        # One that is too long by itself leaves room for the others.
        if len(passages[at].text) <= room:
            room -= len(passages[at].text)
            chosen.add(at)
    return (passages[at] for at in sorted(chosen))


def _stems(term: str) -> tuple[str, ...]:
    """What a text with this term likely contains: for a number its digits, or its first one in other notations."""
    if (digits := _DIGITS.match(term)) is not None:
        return (digits.group(), term[0])
    return (term[: max(2, len(term) - 1)] if term.isascii() and len(term) > 2 else term,)
