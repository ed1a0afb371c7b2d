"""The passages of a page that answer a question, or that matter most, within a budget that is used.

Whoever asks for passages (a load with a question, the window of the running turn, a hook, a search) need not know what kind of
result the page is: `reading` makes pieces of any, here the best are chosen and grown by their neighbours.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Literal

from pagefile.text.piece_ranking import RankedPage
from pagefile.text.reading import Piece
from pagefile.text.reading.json_tree import unescaped
from pagefile.text.sentences import cut, language
from pagefile.text.splitting import Passage, page_slice, split
from pagefile.text.words import terms

__all__ = ["Passage", "matching", "page_slice", "render_excerpt", "select", "selected", "split"]

Cost = Callable[[str], int]
_Reach = Literal["group", "where", "page"]

#: How many places of a passage a search shows: the words of a query may be spread over several.
_MATCHES = 3
#: At how many places to read: a minimum, and one more for this many tokens of budget.
_LEAST_PLACES, _PER_PLACE = 3, 150
#: Maximum length of the heading that gives a passage's context.
_WHERE_CHARS = 200
#: The most rounds of counting again, and the share of the budget below which it is not worth another.
_ROUNDS, _UNUSED = 3, 0.05
#: A shorter part of a piece is left out.
_LEAST_PART = 24
#: Characters before the words of a question in a part of a piece.
_BEFORE_MATCH = 20
#: How much of a part is taken for a word of the question.
_WORD_CHARS = 12
#: The share of the budget that a part of the best piece may take, where all of it is too long.
_PART_OF_BEST = 0.8
#: The share of the budget that the lines before the passages may take.
_MARKERS = 0.22
_ESCAPED = re.compile(r"\\(?:n|\"|u[0-9a-f]{4})")
#: Between two passages with fewer characters there is only what JSON needs.
_NO_GAP = 30


class Selection(list[Passage]):
    """Passages in the order of the text."""

    #: Whether any of them shares words with the question.
    answers = False
    #: Where what answers best begins, and where in it the words of the question are.
    found_at: tuple[int, int] = (0, 0)
    #: The offset to continue from, after the best match, and the offset of the first gap.
    read_on, gap = 0, 0


def select(passages: Sequence[Passage], query: str, *, budget: int, cost: Cost) -> Selection:
    """What to show of a text that was split: see `selected`."""
    return selected("".join(passage.text for passage in passages), query, budget=budget, cost=cost)


def selected(text: str, query: str, *, budget: int, cost: Cost, zh: bool | None = None) -> Selection:
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
        whole.read_on = whole.gap = len(text)
        return whole
    page = RankedPage(text, query)
    told = language(text[:2000]) == "zh" if zh is None else zh
    marker = _marker(len(text), len(text), len(text), zh=told)
    written = partial(render_excerpt, total_chars=len(text), zh=zh)
    shown = _Shown(page.pieces, budget, cost, written, marker, page.asked_at)
    seeds = page.places(_LEAST_PLACES + budget // _PER_PLACE)
    shown.fill(seeds, answers=page.answers)
    made = Selection(shown.passages)
    made.answers = page.answers
    made.found_at, made.read_on, made.gap = shown.found_at(seeds), shown.read_on(seeds), shown.gap
    return made


def matching(passage: str, query: str, max_chars: int) -> str:
    """The part of a passage that a query is about, in at most `max_chars` characters; strings of JSON as they read."""
    text = unescaped(passage) if _ESCAPED.search(passage) else passage
    if len(text) <= max_chars:
        return text
    page = RankedPage(text, query)
    shown = _Shown(page.pieces, max_chars, len, _joined, "", page.asked_at)
    shown.fill(page.places(_MATCHES))
    return _joined(shown.passages)


def _joined(passages: Sequence[Passage]) -> str:
    return " … ".join(passage.text.strip() for passage in passages)


def render_excerpt(passages: Sequence[Passage], total_chars: int, *, zh: bool | None = None) -> str:
    """Passages as a model reads them: each run of adjacent passages is preceded by a line with its character range.

    That line also says what encloses the passage, unless it is the same as for the passage before. A whole text has no such
    line. It is in Chinese if `zh` says so, by default if the passages are Chinese themselves.
    """
    zh = _in_chinese(passages) if zh is None else zh
    out: list[str] = []
    end, where = None, ""
    for run in _runs(passages):
        body = "".join(passage.text for passage in run)
        told = "" if run[0].where == where else run[0].where
        if told and end is not None and 0 <= run[0].start - end <= _NO_GAP:
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


# -- what fits ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Side:
    """How far the text around a seed is shown, in one direction, and how much more it may cost."""

    seed: int
    step: int
    reached: int
    room: float


@dataclass(eq=False)
class _Shown:
    """The pieces that are shown, within a budget."""

    pieces: Sequence[Piece]
    budget: int
    cost: Cost
    render: Callable[[Sequence[Passage]], str]
    #: What is written before each place that is shown.
    marker: str = ""
    #: Where in a text the first word of the question is.
    asked_at: Callable[[str], int] = lambda _: 0

    def __post_init__(self) -> None:
        self._taken: dict[int, Piece] = {}
        self._costs: dict[int, int] = {}
        self._left = self.budget
        self._markers = 0
        self._marker_cost = self.cost(self.marker)
        self._where_chars = min(_WHERE_CHARS, 24 + self.budget // 20)

    @property
    def passages(self) -> list[Passage]:
        """What is shown, in order: pieces that follow one another in the same text are one passage."""
        runs: list[list[int]] = []
        for at in sorted(self._taken):
            if runs and self._follows(at, runs[-1][-1]):
                runs[-1].append(at)
            else:
                runs.append([at])
        return [self._passage(self._taken[run[0]], self._taken[run[-1]]) for run in runs]

    def fill(self, seeds: Sequence[int], *, answers: bool = False) -> None:
        """Take the seeds, then what is around them, until the budget is used; of a best answer that is too long, the part asked for."""
        if answers and not self._take(seeds[0]):
            self._take_asked(seeds[0], int(self.budget * _PART_OF_BEST))
        for at in seeds:
            self._take(at)
        # What was taken together costs less than its pieces one by one.
        for _ in range(_ROUNDS):
            self._grow([at for at in seeds if at in self._taken])
            if not self._settle():
                return
        for at in seeds:
            if self._take_part(at):
                return

    def found_at(self, seeds: Sequence[int]) -> tuple[int, int]:
        """Where in the page the best of the seeds begins, and where in it the words of the question are."""
        if not seeds:
            return 0, 0
        piece = self.pieces[seeds[0]]
        words = piece.start + self.asked_at(piece.frame.text[piece.start : piece.end])
        return piece.frame.place(piece.start), piece.frame.place(words)

    def read_on(self, seeds: Sequence[int]) -> int:
        """The offset after the best shown seed and what follows it without a gap; at the end of the text, the first gap."""
        shown = [at for at in seeds if at in self._taken]
        at = self._run_end(shown[0]) if shown else len(self.pieces)
        if at == len(self.pieces) or (at == len(self.pieces) - 1 and self._taken[at] is self.pieces[at]):
            return self.gap
        return self._end(at)

    @property
    def gap(self) -> int:
        """Where in the page something is missing first."""
        return self._end(self._run_end(0)) if 0 in self._taken else 0

    def _end(self, at: int) -> int:
        return self._taken[at].frame.place(self._taken[at].end)

    def _run_end(self, at: int) -> int:
        """The last of the pieces that are shown one after the other."""
        while at + 1 in self._taken and self._taken[at] is self.pieces[at]:
            at += 1
        return at

    # -- piece by piece ---------------------------------------------------------------------------------------------

    def _take(self, at: int) -> bool:
        if at not in self._taken:
            text, marker = self._price(at)
            apart = bool(self._taken) and self._taken.keys().isdisjoint((at - 1, at + 1))
            if text + marker > self._left or (apart and self._markers + marker > self.budget * _MARKERS):
                return False
            self._taken[at] = self.pieces[at]
            self._left -= text + marker
            self._markers += marker
        return True

    def _price(self, at: int) -> tuple[int, int]:
        """The tokens to show a piece and its heading; less if a neighbour is already shown."""
        piece = self.pieces[at]
        if at not in self._costs:
            self._costs[at] = self.cost(piece.text.rstrip("\n") + "\n")
        near = [self._taken[other] for other in (at - 1, at + 1) if other in self._taken]
        if any(other.frame is piece.frame for other in near):
            return self._costs[at], 0
        where = cut(piece.where, self._where_chars)
        marker = self.cost(f"[… · {where}]\n") if where else 0
        return self._costs[at], marker if near else marker + self._marker_cost

    def _grow(self, seeds: Sequence[int]) -> None:
        """Read on around the seeds in turn: in their paragraph or record, a fair share each; in their section; then further."""
        share = self._left / (2 * max(1, len(seeds)))
        for reach in ("group", "where", "page"):
            room = share if reach == "group" else self._left
            # What precedes a section says less about it than what follows.
            for steps in ((1, -1),) if reach != "page" else ((1,), (-1,)):
                sides = [_Side(at, step, at, room) for at in seeds for step in steps]
                while sides:
                    sides = [side for side in sides if self._step(side, reach)]

    def _step(self, side: _Side, reach: _Reach) -> bool:
        """One piece further to a side; whether to go on."""
        at = self._next(side.reached, side.step)
        if at is None:
            return False
        piece, seed = self.pieces[at], self.pieces[side.seed]
        if reach != "page" and getattr(piece, reach) != getattr(seed, reach):
            return False
        side.reached = at
        side.room -= sum(self._price(at))
        return side.room >= 0 and self._take(at)

    def _next(self, at: int, step: int) -> int | None:
        """The next piece not yet shown in that direction."""
        while at in self._taken:
            at += step
        return at if 0 <= at < len(self.pieces) else None

    def _settle(self) -> bool:
        """Count what is shown as it will be read: give back what is too much, and say whether there is room for more."""
        while self._taken and self._used() > self.budget:
            self._taken.popitem()
        self._left = self.budget - self._used()
        return self._left > self.budget * _UNUSED and len(self._taken) < len(self.pieces)

    def _used(self) -> int:
        return self.cost(self.render(self.passages)) if self._taken else 0

    def _take_part(self, seed: int) -> bool:
        """Take the part of an overlong seed, or of the piece after it, that fits, cut at a boundary."""
        at = self._next(seed, 1)
        if at is None:
            return False
        return self._take_asked(at, self.budget)

    def _take_asked(self, at: int, budget: int) -> bool:
        """Take the part of a piece that has the words of the question, as far as it fits."""
        piece = self.pieces[at]
        asked = piece.start + self.asked_at(piece.frame.text[piece.start : piece.end])
        # The beginning tells what the words of the question belong to; else a little before them does.
        starts = (piece.start, asked - _BEFORE_MATCH, asked)
        wanted = min(piece.end, asked + _WORD_CHARS)
        for room, start in product((budget, self.budget), starts):
            fits = start >= piece.start and self._cut(at, replace(piece, start=start), room)
            if fits and self._taken[at].end >= wanted:
                break
        self._left = self.budget - self._used()
        return at in self._taken

    def _cut(self, at: int, piece: Piece, budget: int) -> bool:
        """Take the beginning of a piece, as far as it fits."""
        room = piece.end - piece.start - 1
        # The beginning of a sentence says nothing, unless there is nothing else.
        least = _LEAST_PART if self._taken else 0
        while room > least:
            kept = cut(piece.frame.text[piece.start : piece.end], room + 1).removesuffix("…")
            self._taken[at] = replace(piece, end=piece.start + max(1, len(kept)))
            if self._used() <= budget:
                return True
            room = min(room, len(kept)) * 3 // 4
        self._taken.pop(at, None)
        return False

    def _follows(self, at: int, before: int) -> bool:
        first, second = self._taken[before], self._taken[at]
        return at == before + 1 and first.frame is second.frame and first is self.pieces[before]

    def _passage(self, first: Piece, last: Piece) -> Passage:
        frame, where = first.frame, cut(first.where, self._where_chars)
        shown = frame.shown(first.start, last.end)
        return Passage(frame.place(first.start), frame.place(last.end), shown, where)
