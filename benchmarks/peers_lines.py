"""What `pagefile bench peers` says, line by line: everybody's number, who is ahead, and why where that is not Pagefile.

A line is made from what was measured alone, and so is its reason: another run may say something else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from benchmarks.peers_all import OURS
from benchmarks.peers_reasons import UNEXPLAINED, Explainer, Told
from pagefile.records import JsonObject

#: Times that differ by less are the same, and so are shares.
_NOISE = 0.1
_SAME_SHARE = 0.005

#: Instead of the size on disk of one who has no disk: no size, and so not a smaller one.
IN_MEMORY = "in memory"

Better = Literal["less", "more"]
Value = float | str | None


@dataclass(frozen=True, slots=True)
class Line:
    """A number of everybody."""

    name: str
    unit: str
    better: Better
    #: None where there is nothing to measure, a word where a number would mislead.
    values: Mapping[str, Value]
    #: Who is ahead of Pagefile, best first.
    ahead: Sequence[str] = ()
    #: Why, where somebody is.
    why: str = ""
    #: Who cannot be told from Pagefile, where more is known than the two numbers.
    level: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """Who is ahead, in a word."""
        return f"{', '.join(self.leaders)} ahead" if self.leaders else self._undecided

    @property
    def leaders(self) -> list[str]:
        """Who is ahead, if somebody is; several where the best number is that of several."""
        if self.ahead:
            return [name for name in self.ahead if self.values[name] == self.values[self.ahead[0]]]
        return [] if self._undecided else [OURS]

    @property
    def _undecided(self) -> str:
        """Why no system is ahead; empty where one is."""
        numbers = _numbers(self.values)
        if OURS not in numbers:
            return "not measured"
        if self.ahead:
            return ""
        others = [value for name, value in numbers.items() if name != OURS]
        if not others:
            return "nothing to compare with"
        return "level" if self.level or any(not self._worse(value) for value in others) else ""

    def _worse(self, value: float) -> bool:
        """Whether a number is worse than Pagefile's by more than chance."""
        ours = cast("float", self.values[OURS])
        apart = value - ours if self.better == "less" else ours - value
        return apart > _tolerance(self.unit, ours, value)

    def to_json(self) -> JsonObject:
        """The line as plain JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "better": self.better,
            "values": {**self.values},
            "ahead": [*self.ahead],
            "verdict": self.verdict,
            "why": self.why,
            "level": [*self.level],
        }

    @classmethod
    def from_json(cls, made: Mapping[str, Any]) -> "Line":
        """The line that was written as JSON."""
        return cls(**{key: value for key, value in made.items() if key != "verdict"})


def _tolerance(unit: str, *values: float) -> float:
    return _SAME_SHARE if unit == "share" else _NOISE * max(map(abs, values))


def _numbers(values: Mapping[str, Value]) -> dict[str, float]:
    """Those that can be compared."""
    return {name: value for name, value in values.items() if value is not None and not isinstance(value, str)}


def who_is_ahead(values: Mapping[str, Value], better: Better, unit: str) -> list[str]:
    """Those who are better than Pagefile by more than chance, best first."""
    known = _numbers(values)
    ours = known.get(OURS)
    if ours is None:
        return []
    sign = 1 if better == "less" else -1
    found = [name for name, value in known.items() if sign * (ours - value) > _tolerance(unit, ours, value)]
    return sorted(found, key=lambda name: sign * known[name])


@dataclass(frozen=True, slots=True)
class _Column:
    """How a line is read off those who were measured."""

    kind: str
    name: str
    unit: str
    better: Better
    read: Callable[[Told], Value]
    #: How long the conversation was; None where the number belongs to no size.
    turns: int | None = None


def lines_of(told: Mapping[str, Told], sizes: Sequence[int]) -> list[Line]:
    """All lines, those of each size first."""
    columns = [column for size in sizes for column in _sized(size)]
    if len(sizes) > 1:
        columns.append(_grown(sizes[0], sizes[-1]))
    explainer = Explainer(told)
    return [_line(column, told, explainer) for column in (*columns, *_WALKED)]


def _line(column: _Column, told: Mapping[str, Told], explainer: Explainer) -> Line:
    values = {name: column.read(one) for name, one in told.items()}
    ahead = who_is_ahead(values, column.better, column.unit)
    why = explainer.why(column.kind, ahead, column.turns)
    return Line(column.name, column.unit, column.better, values, ahead, why)


def _sized(turns: int) -> list[_Column]:
    def read(what: str) -> Callable[[Told], float | None]:
        def value(one: Told) -> float | None:
            point = one.at(turns)
            return None if point is None else point[what]

        return value

    def memory(one: Told) -> float | None:
        point = one.at(turns)
        return None if point is None else point["peak_mb"] - one.base_mb

    def disk(one: Told) -> Value:
        point = one.at(turns)
        if point is None:
            return None
        return point["disk_bytes"] * 1e-6 if one.on_disk else IN_MEMORY

    def column(kind: str, name: str, unit: str, better: Better, read: Callable[[Told], Value]) -> _Column:
        return _Column(kind, name, unit, better, read, turns)

    size = f"at {turns:,} turns"
    return [
        column("record", f"Record a turn, {size}", "ms", "less", read("record_ms")),
        column("ready", f"Until it can be recalled, {size}", "ms", "less", read("ready_ms")),
        column("recall", f"Recall, {size}", "ms", "less", read("recall_ms")),
        column("context", f"Make a prompt, {size}", "ms", "less", read("context_ms")),
        column("memory", f"Memory, {size}", "MB", "less", memory),
        column("disk", f"Disk, {size}", "MB", "less", disk),
        column("found", f"Said details found, {size}", "share", "more", read("said_share")),
        column("found", f"Details in tool results found, {size}", "share", "more", read("read_share")),
    ]


def _grown(first: int, last: int) -> _Column:
    def read(one: Told) -> float | None:
        few, many = one.at(first), one.at(last)
        return many["context_ms"] / few["context_ms"] if few and many else None

    return _Column("growth", f"Make a prompt, {last:,} turns beside {first:,}", "times", "less", read)


def _walked(kind: str, name: str, unit: str, better: Better, read: Callable[[Told], float]) -> _Column:
    return _Column(kind, name, unit, better, read)


_WALKED = (
    _walked("tokens", "Prompt tokens a turn", "tokens", "less", lambda one: one.walk["prompt_tokens"]),
    _walked("over", "Prompts over the budget", "share", "less", lambda one: one.walk["over_budget"]),
    _walked(
        "prefix",
        "Prompt unchanged from call to call",
        "share",
        "more",
        lambda one: one.walk["prefix_share"],
    ),
    _walked("in_prompt", "Details in the prompt", "share", "more", lambda one: one.share("in_prompt")),
    _walked(
        "reached", "Details reached with one more call", "share", "more", lambda one: one.share("reached")
    ),
    _walked(
        "lost",
        "Bytes that are nowhere any more",
        "share",
        "less",
        lambda one: one.walk["bytes_lost"] / one.walk["bytes"],
    ),
)


def recall_lines(recall: Mapping[str, Any]) -> list[Line]:
    """The figures of `bench recall --peers`; a peer is ahead only beyond the bounds of a paired bootstrap."""
    made: list[Line] = []
    for measured in recall["sets"]:
        rankers = {
            "pagefile": OURS,
            "mem0": "mem0",
            "chroma": "chromadb",
            "LangGraph store": "LangGraph store",
        }
        for figure in measured["figures"]["pagefile"]:
            values = {
                name: measured["figures"][ranker][figure]
                for ranker, name in rankers.items()
                if ranker in measured["figures"]
            }
            ahead = [
                name
                for ranker, name in rankers.items()
                if ranker in measured["ahead of"] and measured["ahead of"][ranker][figure]["high"] < 0
            ]
            level = [
                name
                for ranker, name in rankers.items()
                if ranker in measured["ahead of"] and measured["ahead of"][ranker][figure]["low"] <= 0
            ]
            reason = f"{', '.join(ahead)}: {UNEXPLAINED}." if ahead else ""
            name = f"{measured['set']}, {figure}, {measured['questions']:,} questions"
            made.append(Line(name, "share", "more", values, ahead, reason, level))
    return made
