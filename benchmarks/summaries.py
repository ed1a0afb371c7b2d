"""`pagefile bench summaries`: whether summaries without a model tell what holds, and nothing that no longer does.

The judged conversations are in `benchmarks.dialogues`. Each is summarised as it would be while it is held: again and again, each
time from the summary so far and the turns since.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import anyio

from benchmarks.dialogues import Dialogue, dialogues
from benchmarks.report import Report, Row, machine_facts
from pagefile.engine import Memory
from pagefile.records import JsonObject
from pagefile.settings import Settings
from pagefile.text.tokens import open_counter

#: Turns from one summary to the next.
EVERY = 8
#: The default window, and one in which a summary must be short.
WINDOWS = (16_000, 4_000)
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Summarised:
    """What became of one conversation."""

    dialogue: Dialogue
    window_tokens: int
    summary: str
    tokens: int
    missing: Sequence[str]
    stale: Sequence[str]
    misleading: Sequence[str]

    @property
    def told(self) -> int:
        """How much of what holds the summary tells."""
        return len(self.dialogue.holds) - len(self.missing)

    def lines(self) -> list[str]:
        """A line for everything that is wrong with it."""
        where = f"{self.window_tokens // 1000}k, {self.dialogue.language}/{self.dialogue.name}"
        return [
            *(f"{where}: does not say {one}" for one in self.missing),
            *(f"{where}: still says {one}" for one in self.stale),
        ]

    def to_json(self) -> JsonObject:
        """It as plain JSON."""
        return {
            "name": self.dialogue.name,
            "language": self.dialogue.language,
            "kept": self.dialogue.kept,
            "window_tokens": self.window_tokens,
            "told": self.told,
            "holds": len(self.dialogue.holds),
            "stale": list(self.stale),
            "misleading": list(self.misleading),
            "missing": list(self.missing),
            "tokens": self.tokens,
            "summary": self.summary,
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """The sums of some conversations."""

    told: int
    holds: int
    stale: int
    gone: int
    misleading: int
    tokens: float

    @classmethod
    def of(cls, made: Sequence[Summarised]) -> "Figures":
        """Of at least one."""
        return cls(
            sum(one.told for one in made),
            sum(len(one.dialogue.holds) for one in made),
            sum(len(one.stale) for one in made),
            sum(len(one.dialogue.gone) for one in made),
            sum(len(one.misleading) for one in made),
            sum(one.tokens for one in made) / len(made),
        )


@dataclass(frozen=True, slots=True)
class SummariesReport:
    """All conversations."""

    report: Report
    made: Sequence[Summarised]

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    @property
    def groups(self) -> dict[str, Figures]:
        """The figures by window, language and part, and of each window all together."""
        groups: dict[str, list[Summarised]] = {}
        for one in self.made:
            half = "kept" if one.dialogue.kept else "open"
            part = one.dialogue.part.strip("_") if one.dialogue.blind else half
            for name in ("all", f"{one.dialogue.language}, {part}"):
                groups.setdefault(f"{one.window_tokens // 1000}k, {name}", []).append(one)
        return {name: Figures.of(group) for name, group in groups.items()}

    def summaries(self, name: str) -> list[str]:
        """The summaries of one conversation, by window."""
        return [one.summary for one in self.made if f"{one.dialogue.language}/{one.dialogue.name}" == name]

    def failures(self) -> list[str]:
        """A line for everything that is wrong."""
        return [line for one in self.made for line in one.lines()]

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {**self.report.to_json(), "dialogues": [one.to_json() for one in self.made]}


def run(progress: Progress | None = None, judging: Iterable[Dialogue] | None = None) -> SummariesReport:
    """Summarise every conversation and judge it; nothing stays on disk."""
    began = time.perf_counter()
    chosen = dialogues() if judging is None else tuple(judging)
    made = anyio.run(_all_summarised, chosen, progress or _noop)
    rows = [
        row for size in WINDOWS for row in _rows(size, [one for one in made if one.window_tokens == size])
    ]
    seconds = time.perf_counter() - began
    machine = machine_facts(open_counter().name)
    return SummariesReport(Report(rows, machine, quick=False, seconds=seconds), made)


def _rows(window_tokens: int, made: Sequence[Summarised]) -> list[Row]:
    figures = Figures.of(made)
    told, stale = figures.told / figures.holds, figures.stale / figures.gone
    size = f"in a window of {window_tokens:,}"
    return [
        Row(f"told of what holds, {size}", 100 * told, "%", told, note=f"{figures.told} of {figures.holds}"),
        Row(
            f"still told of what does not, {size}",
            100 * stale,
            "%",
            stale,
            note=f"{figures.stale} of {figures.gone}",
        ),
        Row(
            f"of these with no correction after it, {size}",
            100 * figures.misleading / figures.gone,
            "%",
            figures.misleading / figures.gone,
            note=f"{figures.misleading} of {figures.gone}",
        ),
        Row(f"a summary, {size}", figures.tokens, "tokens"),
    ]


async def _all_summarised(chosen: Sequence[Dialogue], tell: Progress) -> list[Summarised]:
    made: list[Summarised] = []
    for size in WINDOWS:
        async with Memory.open("memory://", settings=Settings(window_tokens=size), embedder="none") as memory:
            made += [await summarised(memory, dialogue, size, tell) for dialogue in chosen]
    return made


def _noop(_step: str) -> None:
    pass


async def summarised(memory: Memory, dialogue: Dialogue, size: int, tell: Progress = _noop) -> Summarised:
    """Summarise one conversation as it is held."""
    tell(f"{dialogue.language}/{dialogue.name}")
    # Two parts may have a conversation of the same name.
    name = f"{dialogue.language}{dialogue.part}/{dialogue.name}"
    chat = memory.conversation(name, user_id=name)
    summary = ""
    for at, turn in enumerate(dialogue.turns, 1):
        await chat.record(*turn)
        if at % EVERY == 0 or at == len(dialogue.turns):
            summary = (await chat.checkpoint(recent_turns=0)).summary
    judged = dialogue.missing(summary), dialogue.stale(summary), dialogue.misleading(summary)
    return Summarised(dialogue, size, summary, open_counter().count(summary), *judged)
