"""`pagefile bench pages --data DIR`: whether every result of recorded runs can be shown in part, within a budget that is used."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.pages import LOADS, OWN_TOKENS
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.runs_data import read_runs, run_files
from pagefile.settings import ArchiveSettings
from pagefile.text.passages import Passage, render_excerpt, selected
from pagefile.text.reading import Frame, pieces
from pagefile.text.tokens import TokenCounter, open_counter

#: Of a budget, what must be the result's own text, always the same share; of a shorter result, all of it.
_OWN = {size: OWN_TOKENS * size // LOADS[0] for size in LOADS}
#: A shorter result ends with spaces that nobody misses.
_ALL = 0.9

Progress = Callable[[str], None]


class Shown(NamedTuple):
    """What became of one result in one budget."""

    run: str
    asked: bool
    size: int
    #: Tokens that can be read in it: of a web page its visible text.
    tokens: int
    #: Tokens of whole rows, lines and sentences of its own, and all that were spent.
    own: int
    spent: int

    @property
    def enough(self) -> bool:
        """Whether enough of it is shown, and no more was spent than allowed."""
        return self.spent <= self.size and self.own >= min(_OWN[self.size], int(_ALL * self.tokens))


def run(folder: Path, progress: Progress | None = None) -> Report:
    """Show every result that would be archived, for the question of its turn and for none."""
    began, counter = time.perf_counter(), open_counter()
    made: list[Shown] = []
    for name, question, result in _results(folder):
        if progress is not None:
            progress(name)
        made += _shown(name, question, result, counter)
    rows = [_row(made, size, asked=asked) for size in LOADS for asked in (True, False)]
    return Report(rows, machine_facts(counter.name), quick=False, seconds=time.perf_counter() - began)


def _row(made: Sequence[Shown], size: int, *, asked: bool) -> Row:
    of = [one for one in made if one.size == size and one.asked is asked]
    share = sum(one.enough for one in of) / max(1, len(of))
    name = f"{_OWN[size]:,} own tokens in {size:,}, {'for the question' if asked else 'without a question'}"
    note = f"{sum(one.enough for one in of):,} of {len(of):,} results"
    if few := [one for one in of if not one.enough]:
        note += "; not " + ", ".join(f"{one.run} ({one.own} of {one.tokens:,})" for one in few[:3])
    return Row.judged(Row(name, 100 * share, "%", share, note=note), Limit("at least", 1.0))


def _results(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The results that get a page, each once, with what the user had asked."""
    seen: set[str] = set()
    for path in run_files(folder):
        for recorded in read_runs(path):
            question = ""
            for event in recorded.events:
                if event.kind == "user":
                    question = event.text
                elif event.kind == "result" and len(event.text) > ArchiveSettings().page_from:
                    if event.text not in seen:
                        yield recorded.id, question, event.text
                    seen.add(event.text)


def _shown(name: str, question: str, result: str, counter: TokenCounter) -> Iterator[Shown]:
    found_in = pieces(Frame(result))
    tokens = min(counter.count(result), sum(counter.count(piece.text) for piece in found_in))
    ends = sorted({piece.frame.place(piece.end) for piece in found_in})
    for size in LOADS:
        for query in (question, ""):
            found = selected(result, query, budget=size, cost=counter.count)
            own = sum(counter.count(_whole(passage, ends)) for passage in found)
            spent = counter.count(render_excerpt(found, len(result)))
            yield Shown(name, bool(query), size, tokens, own, spent)


def _whole(passage: Passage, ends: Sequence[int]) -> str:
    """A passage without the row, line or sentence that is cut at its end."""
    last = bisect_right(ends, passage.end) - 1
    rest = passage.end - (ends[last] if last >= 0 else 0)
    # White space after the last piece is in none.
    return passage.text[: len(passage.text) - min(rest, len(passage.text))] if rest > 2 else passage.text
