"""The passages of a page that answer a question, or that matter most, within a budget that is used.

Whoever asks for passages (a load with a question, the window of the running turn, a hook, a search) need not know what kind of
result the page is: `reading` makes pieces of any, here the best are chosen and grown by their neighbours.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pagefile.text.bm25 import WordIndex
from pagefile.text.reading import Frame, Piece, pieces
from pagefile.text.sentences import cut, language
from pagefile.text.splitting import Passage, page_slice, split
from pagefile.text.words import ASKING_TERMS, terms

__all__ = ["Passage", "page_slice", "render_excerpt", "select", "selected", "split"]

Cost = Callable[[str], int]

#: Of a longer text only the passages that likely answer are read piece by piece, about this many characters.
_READ_CHARS = 1_500_000
#: How much it counts that a piece stands out, beside how well it answers.
_STANDS_OUT = 0.5
#: A piece with fewer characters tells nothing as the beginning of a page; a longer run of letters is no word.
_TELLS, _LONGEST_WORD = 30, 24
#: With fewer words a piece does not stand out, whatever they are.
_FEW_WORDS = 4
#: How much the paragraph, record or definition around a piece says about it.
_AROUND = 0.5
#: At how many places to read: so many, and one more for this many tokens.
_LEAST_PLACES, _PER_PLACE = 3, 150
#: Below this a marker before the text is not worth its cost.
_LEAST_MARKED = 40
_WHERE_CHARS = 200
#: Between two passages with fewer characters there is only what JSON needs.
_NO_GAP = 30

_CAMEL = re.compile(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DIGITS = re.compile(r"\d+")
#: What a reader looks for first in the output of a program.
_TELLING = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure|ures)?|fatal|panic|traceback|caused by|denied|refused|critical|total|summary|passed)\b"
    r"|错误|失败|异常|告警|合计|总计|共计|结论|决定|总结|拒绝",
    re.IGNORECASE,
)


class Selection(list[Passage]):
    """Passages in the order of the text; `answers` says whether any of them shares words with the question."""

    answers = False


def select(passages: Sequence[Passage], query: str, *, budget: int, cost: Cost) -> Selection:
    """What to show of a text that was split: see `selected`."""
    return selected("".join(passage.text for passage in passages), query, budget=budget, cost=cost)


def selected(text: str, query: str, *, budget: int, cost: Cost) -> Selection:
    """The parts of a text that answer a query, best first until the budget is used, returned in the order of the text.

    If none does: the beginning, what stands out, and the end. As `render_excerpt` writes them, they never cost more than the
    budget; nothing is too long, since the best piece is cut at a boundary if it alone exceeds the budget. The text of a passage
    is as it reads (a string of JSON without its escapes), its offsets are those of the page.
    """
    if not text.strip() or budget <= 0:
        return Selection()
    if len(text) <= 16 * budget and cost(text) <= budget:
        whole = Selection([Passage(0, len(text), text)])
        whole.answers = not set(terms(query)).isdisjoint(terms(text))
        return whole
    page = _Page(text, query)
    shown = _Shown(page, budget, cost)
    shown.fill(page.seeds(_LEAST_PLACES + budget // _PER_PLACE))
    made = Selection(shown.passages())
    made.answers = page.answers
    return made


def render_excerpt(passages: Sequence[Passage], total_chars: int) -> str:
    """Passages as a model reads them: each run of adjacent passages is preceded by a line with its character range.

    That line also says what encloses the passage, unless it is the same as for the passage before. A whole text has no such
    line.
    """
    zh = _in_chinese(passages)
    out: list[str] = []
    end, where = -1, ""
    for run in _runs(passages):
        body = "".join(passage.text for passage in run)
        told = "" if run[0].where == where else run[0].where
        if told and 0 <= run[0].start - end <= _NO_GAP:
            out.append(f"[… · {told}]\n")
        elif (run[0].start, run[-1].end) != (0, total_chars):
            out.append(_marker(run[0].start, run[-1].end, total_chars, told, zh=zh))
        out.append(body if body.endswith("\n") else f"{body}\n")
        end, where = run[-1].end, run[0].where
    return "".join(out).removesuffix("\n")


def _runs(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    run: list[Passage] = []
    for passage in passages:
        if run and (passage.start != run[-1].end or passage.where != run[-1].where):
            yield run
            run = []
        run.append(passage)
    if run:
        yield run


def _marker(start: int, end: int, total: int, where: str = "", *, zh: bool) -> str:
    told = f" · {where}" if where else ""
    return (
        f"[…字符 {start}–{end} / 共 {total}{told}]\n"
        if zh
        else f"[… characters {start}–{end} of {total}{told}]\n"
    )


def _in_chinese(passages: Sequence[Passage]) -> bool:
    return language("".join(passage.text[:2000] for passage in passages[:4])) == "zh"


# -- what matters ------------------------------------------------------------------------------------------------------


class _Page:
    """The pieces of a page, and what each is worth to a reader with this question."""

    def __init__(self, text: str, query: str) -> None:
        self.total = len(text)
        asked = _words(query)
        self.asked = [term for term in asked if term not in ASKING_TERMS] or asked
        self.pieces = list(_pieces(text, self.asked))
        self._words = [_words(piece.text) for piece in self.pieces]
        self._scores = self._scored()
        self.answers = bool(self._scores)

    def _scored(self) -> dict[int, float]:
        """How well each piece answers, for itself and by the paragraph, record or definition that it is part of."""
        groups: dict[int, list[int]] = {}
        for at, piece in enumerate(self.pieces):
            groups.setdefault(piece.group, []).append(at)
        # Of equals the index puts the latest first: they are added in reverse.
        index, around = WordIndex[int](), WordIndex[int]()
        enclosing: dict[str, list[str]] = {}
        for at in reversed(range(len(self.pieces))):
            where = self.pieces[at].where
            if where not in enclosing:
                enclosing[where] = terms(where)
            index.add(at, self._words[at], enclosing[where])
        for group in reversed(groups):
            around.add(group, [word for at in groups[group] for word in self._words[at]])
        wide = {hit.key: hit.score for hit in around.search(self.asked, len(groups))}
        best = next(iter(wide), None)
        self._confidence = 0.0 if best is None else around.share(best, Counter(self.asked))
        return {
            hit.key: hit.score + _AROUND * wide.get(self.pieces[hit.key].group, 0.0)
            for hit in index.search(self.asked, len(self.pieces))
        }

    def seeds(self, most: int) -> list[int]:
        """Where to read, best first: what answers, and the more doubtful that is, what stands out."""
        worth = self._worth()
        best, highest = max(self._scores.values(), default=1.0), max(worth, default=0.0) or 1.0
        weight = _STANDS_OUT * (1.5 - self._confidence)
        rated = [self._scores.get(at, 0.0) / best + weight * much / highest for at, much in enumerate(worth)]
        ranked = sorted((at for at, much in enumerate(rated) if much), key=lambda at: (-rated[at], at))
        if self._scores:
            return ranked[:most]
        head = next((at for at, piece in enumerate(self.pieces) if piece.end - piece.start >= _TELLS), 0)
        return list(dict.fromkeys([head, *ranked[: most - 2], len(self.pieces) - 1]))

    def _worth(self) -> list[float]:
        """How much each piece stands out: by words that no other has, and by telling how something ended."""
        held = [{word for word in words if _is_word(word)} for words in self._words]
        often = Counter(chain.from_iterable(held))
        telling = [bool(_TELLING.search(piece.text)) for piece in self.pieces]
        rare = 0 < sum(telling) <= max(3, len(telling) // 8)
        return [
            (sum(1 / often[word] for word in words if often[word] <= 2) / (4 + len(words)) ** 0.5)
            * (len(words) >= _FEW_WORDS)
            + (1.0 if rare and tells else 0.0)
            for words, tells in zip(held, telling, strict=True)
        ]


def _is_word(term: str) -> bool:
    """Whether a term is a word, rather than a number, a name with digits in it, or a part of base64."""
    return term.isalpha() and len(term) <= _LONGEST_WORD


def _words(text: str) -> list[str]:
    """The terms of a text, and those of the words that an identifier is written of."""
    found = terms(text)
    humps = [name for name in _CAMEL.findall(text) if _HUMPS.search(name)]
    return found + terms(" ".join(_HUMPS.sub(" ", name) for name in humps)) if humps else found


def _pieces(text: str, asked: Sequence[str]) -> Iterable[Piece]:
    page = Frame(text)
    if len(text) <= _READ_CHARS:
        return pieces(page)
    parts = (Frame(part.text, page, [0], [part.start]) for part in _likely(split(text), asked))
    return chain.from_iterable(pieces(part) for part in parts)


def _likely(passages: Sequence[Passage], asked: Sequence[str]) -> Iterator[Passage]:
    """The passages that best match the stems of the query, with the first and the last, in order."""
    stems = {stem for term in asked for stem in _stems(term)}
    folded = [unicodedata.normalize("NFKC", passage.text).casefold() for passage in passages]
    rare = {stem: 1 / (1 + sum(stem in text for text in folded)) for stem in sorted(stems)}
    held = [sum(rare[stem] * min(3, text.count(stem)) for stem in rare) for text in folded]
    room, chosen = _READ_CHARS // 4, {0, len(passages) - 1}
    for at in sorted(range(len(passages)), key=lambda at: (-held[at], at)):
        room -= len(passages[at].text)
        if room < 0:
            break
        chosen.add(at)
    return (passages[at] for at in sorted(chosen))


def _stems(term: str) -> tuple[str, ...]:
    """What a text with this term likely contains: for a number its digits, or its first one in other notations."""
    if (digits := _DIGITS.match(term)) is not None:
        return (digits.group(), term[0])
    return (term[: max(2, len(term) - 1)] if term.isascii() and len(term) > 2 else term,)


# -- what fits ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Side:
    """How far the text around a seed is shown, in one direction, and how much more it may take."""

    seed: int
    step: int
    reached: int
    room: float


@dataclass(eq=False)
class _Shown:
    """The pieces that are shown, within a budget."""

    page: _Page
    budget: int
    cost: Cost

    def __post_init__(self) -> None:
        self._taken: dict[int, Piece] = {}
        self._where_chars = min(_WHERE_CHARS, 40 + self.budget // 20)
        self._costs: dict[int, int] = {}
        self._left = float(self.budget)
        sample = "".join(piece.text for piece in self.page.pieces[:20])
        self._marker_cost = self.cost(
            _marker(self.page.total, self.page.total, self.page.total, zh=language(sample) == "zh")
        )

    def fill(self, seeds: Sequence[int]) -> None:
        """Take the seeds, then what is around them, until the budget is used."""
        for at in seeds:
            self._take(at)
        if not self._taken:
            self._clip(seeds[0])
        # What was taken costs less than its pieces one by one.
        for _ in range(3):
            self._grow([at for at in seeds if at in self._taken])
            if not self._settle():
                break

    def passages(self) -> list[Passage]:
        made: list[Passage] = []
        run: list[tuple[int, Piece]] = []
        for at in sorted(self._taken):
            piece = self._taken[at]
            if run and (
                at != run[-1][0] + 1 or piece.frame is not run[-1][1].frame or self._is_cut(*run[-1])
            ):
                made.append(self._passage(run))
                run = []
            run.append((at, piece))
        return [*made, self._passage(run)] if run else made

    def _is_cut(self, at: int, piece: Piece) -> bool:
        return piece is not self.page.pieces[at]

    def _price(self, at: int) -> int:
        if at not in self._costs:
            self._costs[at] = self.cost(self.page.pieces[at].text.rstrip("\n") + "\n")
        beside = any(
            near in self._taken and self._taken[near].frame is self.page.pieces[at].frame
            for near in (at - 1, at + 1)
        )
        where = (
            0 if beside else self._marker_cost + self.cost(cut(self.page.pieces[at].where, self._where_chars))
        )
        return self._costs[at] + where

    def _take(self, at: int) -> bool:
        if at in self._taken:
            return True
        price = self._price(at)
        if price > self._left:
            return False
        self._taken[at] = self.page.pieces[at]
        self._left -= price
        return True

    def _grow(self, seeds: Sequence[int]) -> None:
        """Read on around the seeds in turn: first to the end of their paragraph or record, a fair share each, then further."""
        share = self._left / max(1, len(seeds))
        for within in (True, False):
            sides = [
                _Side(at, step, at, share / 2 if within else self._left) for at in seeds for step in (1, -1)
            ]
            while sides:
                sides = [side for side in sides if self._step(side, within=within)]

    def _step(self, side: "_Side", *, within: bool) -> bool:
        """One piece further to a side; whether to go on."""
        at = side.reached + side.step
        while at in self._taken:
            at += side.step
        if not 0 <= at < len(self.page.pieces):
            return False
        if within and self.page.pieces[at].group != self.page.pieces[side.seed].group:
            return False
        side.reached = at
        side.room -= self._price(at)
        return side.room >= 0 and self._take(at)

    def _settle(self) -> bool:
        """Count what is shown as it will be read: give back what is too much, and say whether there is room for more."""
        while self._taken and (used := self._used()) > self.budget:
            self._taken.popitem()
        if not self._taken:
            return False
        self._left = self.budget - used
        return self._left > self.budget * 0.05 and len(self._taken) < len(self.page.pieces)

    def _used(self) -> int:
        return self.cost(render_excerpt(self.passages(), self.page.total))

    def _clip(self, at: int) -> None:
        """As much of a piece as fits, to a boundary; without a marker if there is hardly any room."""
        piece = self.page.pieces[at]
        room = piece.end - piece.start
        while room > 0:
            part = cut(piece.frame.text[piece.start : piece.start + room], room - 1).removesuffix("…") or "…"
            self._taken = {
                at: Piece(piece.frame, piece.start, piece.start + len(part), piece.group, piece.where)
            }
            if self._used() <= self.budget:
                return
            room = room * 3 // 4
        self._taken = {}

    def _passage(self, run: Sequence[tuple[int, Piece]]) -> Passage:
        first, last = run[0][1], run[-1][1]
        frame = first.frame
        return Passage(
            frame.place(first.start),
            frame.place(last.end),
            frame.shown(first.start, last.end),
            cut(first.where, self._where_chars),
        )
