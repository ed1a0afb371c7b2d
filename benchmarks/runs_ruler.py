"""How well a long run was kept short: what was saved, what was still in view when it was needed, what prompt caches can reuse.

A run is replayed call by call; tokens are characters / 4, so that every way is measured alike. Needed is what the agent itself
copied: spans of 40 characters and more in its calls and texts that come from an earlier result.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields

from benchmarks.runs_data import Event, Run

SPAN = 40
#: Of a longer span only this much must be in view.
COMPARED = 200
CHARS_PER_TOKEN = 4

Prompt = Sequence[str]


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a run, with the spans it copies and whether a model call comes before it."""

    event: Event
    spans: tuple[str, ...]
    is_called_for: bool


@dataclass(slots=True)
class Score:
    """The sums of one way over some runs."""

    calls: int = 0
    whole: float = 0.0
    sent: float = 0.0
    before: float = 0.0
    same: float = 0.0
    spans: int = 0
    visible: int = 0
    missed: list[str] = field(default_factory=list[str])
    #: Of the missed spans: those of which some piece is not in view, and of these, those with a placeholder of their page in view
    #: and those whose page a search with their own words finds first. Only Pagefile has placeholders to search for.
    lost: int = 0
    named: int = 0
    found: int = 0
    #: The tokens of the largest prompt.
    largest: float = 0.0

    @classmethod
    def of(cls, scores: "Iterable[Score]") -> "Score":
        """The sums of several, such as those of each run."""
        total = cls()
        for one in scores:
            for name in _SUMMED:
                setattr(total, name, getattr(total, name) + getattr(one, name))
            total.missed += one.missed
            total.largest = max(total.largest, one.largest)
        return total

    @property
    def saved(self) -> float:
        """The share of prompt tokens saved over all calls."""
        return 1 - self.sent / self.whole if self.whole else 0.0

    @property
    def in_view(self) -> float:
        """Of the copied spans, the share that was in the prompt of the call that copied them."""
        return self.visible / self.spans if self.spans else 1.0

    @property
    def leads_back(self) -> float | None:
        """Of the lost spans, the share with a placeholder in view."""
        return self.named / self.lost if self.lost else None

    @property
    def finds(self) -> float | None:
        """Of the lost spans, the share whose page is found first."""
        return self.found / self.lost if self.lost else None

    @property
    def prefix(self) -> float:
        """The share of a prompt that the next one begins with, unchanged."""
        return self.same / self.before if self.before else 1.0


_SUMMED = tuple(one.name for one in fields(Score) if one.name not in {"missed", "largest"})


def moments(run: Run) -> list[Moment]:
    """The run as it is scored, whatever the way."""
    seen: set[str] = set()
    made: list[Moment] = []
    last: str | None = None
    for event in run.events:
        is_agents = event.kind in {"call", "agent"}
        spans = tuple(_copied(event.text, seen)) if is_agents else ()
        made.append(Moment(event, spans, is_agents and (last != "call" or event.kind == "agent")))
        if event.kind == "result":
            seen.update(event.text[at : at + SPAN] for at in range(len(event.text) - SPAN + 1))
        last = event.kind
    return made


def _copied(text: str, seen: set[str]) -> Iterator[str]:
    """The longest spans of a text that are in an earlier result."""
    start = 0
    while start + SPAN <= len(text):
        end = start
        while end + SPAN <= len(text) and text[end : end + SPAN] in seen:
            end += 1
        if end > start:
            yield text[start : end + SPAN - 1]
            start = end + SPAN - 1
        else:
            start += 1


class Ruler:
    """Scores the prompts of one run, in order."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._last: Prompt | None = None
        self._own: list[str] = []
        self._whole = 0.0

    def prompt(self, prompt: Prompt) -> None:
        """The prompt of a model call."""
        score = self._score
        score.calls += 1
        score.whole += self._whole
        score.sent += (sent := tokens(prompt))
        score.largest = max(score.largest, sent)
        if self._last is not None:
            score.before += tokens(self._last)
            for old, new in zip(self._last, prompt, strict=False):
                if old != new:
                    break
                score.same += len(old) / CHARS_PER_TOKEN
        self._last = prompt
        self._own = []

    @property
    def last(self) -> Prompt:
        """The last prompt."""
        return self._last or []

    def happened(self, moment: Moment) -> list[str]:
        """An event after the last prompt: what it copies should have been in view. Returns what was not."""
        before = len(self._score.missed)
        if moment.spans:
            seen = "\n".join([*(self._last or ()), *self._own])
            for span in moment.spans:
                self._score.spans += 1
                if span[:COMPARED] in seen:
                    self._score.visible += 1
                else:
                    self._score.missed.append(span)
        self._own.append(moment.event.text)
        self._whole += len(moment.event.text) / CHARS_PER_TOKEN
        return self._score.missed[before:]


def is_lost(span: str, prompt: Prompt) -> bool:
    """Whether a piece of a span is not in view. A span that joins two results is in none, though all of it may be in view."""
    seen = "\n".join(prompt)
    return any(span[at : at + SPAN] not in seen for at in range(len(span[:COMPARED]) - SPAN + 1))


def tokens(texts: Prompt) -> float:
    return sum(map(len, texts)) / CHARS_PER_TOKEN
