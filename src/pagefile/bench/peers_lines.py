"""What `pagefile bench peers` says, line by line: everybody's number, who is ahead, and why where that is not Pagefile.

A line is made from what was measured alone, and so is its reason: another run may say something else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pagefile.bench.peers_all import OURS, PEERS
from pagefile.records import JsonObject

#: Times that differ by less are the same, and so are shares.
_NOISE = 0.1
_SAME_SHARE = 0.005

#: What a line says that no reason was found for. It is not hidden: somebody has to look.
UNEXPLAINED = "no reason was found, this is ours to look into"

Better = Literal["less", "more"]


@dataclass(frozen=True, slots=True)
class Line:
    """A number of everybody."""

    name: str
    unit: str
    better: Better
    #: None where there is nothing to measure.
    values: Mapping[str, float | None]
    #: Who is ahead of Pagefile, best first.
    ahead: Sequence[str] = ()
    #: Why, where somebody is.
    why: str = ""
    #: Who cannot be told from Pagefile, where more is known than the two numbers.
    level: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """Who is ahead, in a word."""
        if self.values.get(OURS) is None:
            return "not measured"
        if self.ahead:
            return f"{self.ahead[0]} ahead"
        others = [value for name, value in self.values.items() if name != OURS and value is not None]
        if not others:
            return "nobody to compare with"
        return "level" if self.level or any(not self._worse(value) for value in others) else "Pagefile ahead"

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


def who_is_ahead(values: Mapping[str, float | None], better: Better, unit: str) -> list[str]:
    """Those who are better than Pagefile by more than chance, best first."""
    ours = values.get(OURS)
    if ours is None:
        return []
    sign = 1 if better == "less" else -1
    known = {name: value for name, value in values.items() if value is not None}
    found = [name for name, value in known.items() if sign * (ours - value) > _tolerance(unit, ours, value)]
    return sorted(found, key=lambda name: sign * known[name])


@dataclass(frozen=True, slots=True)
class Told:
    """Everything known of one who was measured."""

    name: str
    walk: Mapping[str, Any]
    growth: Mapping[str, Any]
    #: Megabytes to take off what its process held, because everybody's does.
    base_mb: float

    def at(self, turns: int) -> Mapping[str, Any] | None:
        """The point of that size, if it came that far."""
        return next((point for point in self.growth["points"] if point["turns"] == turns), None)

    @property
    def opened_mb(self) -> float:
        """What it added to the process before the first turn."""
        return self.growth["opened_mb"] - self.base_mb

    def share(self, what: str) -> float:
        """Of the details, how many."""
        return self.walk[what] / self.walk["details"]

    @property
    def on_disk(self) -> bool:
        """Whether it keeps anything beyond its process."""
        return any(point["disk_bytes"] for point in self.growth["points"])

    @property
    def makes_windows(self) -> bool:
        """Whether its prompt holds the latest turns."""
        return PEERS[self.name].makes_windows

    @property
    def recalls(self) -> bool:
        """Whether it can be asked for what is not in the prompt."""
        return PEERS[self.name].recalls


#: Takes the one that is ahead and Pagefile; says why, or nothing when that is not why.
Reason = Callable[[Told, Told], str | None]


def _nothing_on_disk(them: Told, us: Told) -> str | None:
    if them.on_disk or not us.on_disk:
        return None
    return "keeps everything in memory, so nothing is on disk when it returns and a restart loses it all"


def _loses(them: Told, us: Told) -> str | None:
    if them.walk["bytes_lost"] <= us.walk["bytes_lost"]:
        return None
    lost = them.walk["bytes_lost"] / them.walk["bytes"]
    return f"has thrown away {lost:.0%} of what was said, word for word"


def _no_window(them: Told, _: Told) -> str | None:
    if them.makes_windows:
        return None
    return "makes no window: its prompt has neither the latest turns nor a summary, only what was found"


def _reaches_less(them: Told, us: Told) -> str | None:
    if them.walk["reached"] >= us.walk["reached"]:
        return None
    return (
        f"reaches {them.walk['reached']} of {them.walk['details']} details with one more call, "
        f"Pagefile {us.walk['reached']}"
    )


def _over_budget(them: Told, us: Told) -> str | None:
    if them.walk["over_budget"] <= us.walk["over_budget"]:
        return None
    return f"sends {them.walk['over_budget']:.0%} of its prompts beyond the budget"


def _larger_prompt(them: Told, us: Told) -> str | None:
    times = them.walk["prompt_tokens"] / us.walk["prompt_tokens"]
    return f"sends {times:.1f} times as many tokens" if times > 1 + _NOISE else None


def _less_in_prompt(them: Told, us: Told) -> str | None:
    if them.walk["in_prompt"] >= us.walk["in_prompt"]:
        return None
    return f"has {them.walk['in_prompt']} of {them.walk['details']} details in the prompt, Pagefile {us.walk['in_prompt']}"


def _no_recall(them: Told, _: Told) -> str | None:
    return None if them.recalls else "has no index: what left the list cannot be asked for"


def _finds_less(them: Told, us: Told) -> str | None:
    """In the longest conversation that both came to."""
    both = [(theirs, ours) for ours in us.growth["points"] if (theirs := them.at(ours["turns"]))]
    if not both or not them.recalls:
        return None
    theirs, ours = both[-1]
    how = "compares vectors and no words, and finds" if PEERS[them.name].vectors_only else "finds"
    for what, told in (("said_share", "said"), ("read_share", "in tool results")):
        if theirs[what] < ours[what]:
            shares = f"{theirs[what]:.0%} of the details {told}, Pagefile {ours[what]:.0%}"
            return f"{how} {shares}, at {ours['turns']:,} turns"
    return None


def _always_ten(them: Told, us: Told) -> str | None:
    if them.makes_windows:
        return None
    return (
        "puts its ten best finds into every prompt, whether or not the question asks for them, where Pagefile puts up to three "
        f"turns that pass its gate beside the latest turns; with one more call Pagefile reaches {us.walk['reached']} of "
        f"{us.walk['details']}, this one {them.walk['reached']}"
    )


def _everything(them: Told, us: Told) -> str | None:
    told = [reason for reason in (_over_budget(them, us), _larger_prompt(them, us)) if reason]
    return " and ".join(told) or None


def _background(_: Told, us: Told) -> str | None:
    if not us.on_disk:
        return None
    return (
        "does less for a turn: Pagefile indexes its words and its vector, archives its results and keeps a summary ready, all "
        "while nobody waits"
    )


def _lighter_to_open(them: Told, us: Told) -> str | None:
    theirs, ours = them.opened_mb, us.opened_mb
    if theirs >= ours:
        return None
    return f"adds {theirs:.0f} MB before the first turn, Pagefile {ours:.0f} with its imports and an exact tokenizer"


def _vectors_in_memory(them: Told, _: Told) -> str | None:
    if not PEERS[them.name].vectors_in_memory:
        return None
    return "has only its texts on disk: its vectors are in memory, and a restart loses what it could find"


def _while_short(what: str, unit: str, times: float, them: Told, us: Told) -> str | None:
    """It is ahead in a short conversation and behind in a long one."""
    both = [(theirs, ours) for ours in us.growth["points"] if (theirs := them.at(ours["turns"]))]
    if not both:
        return None
    theirs, ours = both[-1]
    spared = (them.base_mb, us.base_mb) if what == "peak_mb" else (0.0, 0.0)
    more, less = theirs[what] * times - spared[0], ours[what] * times - spared[1]
    if more <= less:
        return None
    return f"is ahead only while the conversation is short: at {ours['turns']:,} turns it has {more:,.0f} {unit}, Pagefile {less:,.0f}"


def _disk_while_short(them: Told, us: Told) -> str | None:
    return _while_short("disk_bytes", "MB", 1e-6, them, us)


def _memory_while_short(them: Told, us: Told) -> str | None:
    return _while_short("peak_mb", "MB", 1.0, them, us)


#: Which reasons hold for which numbers; all that are true are told.
REASONS: dict[str, tuple[Reason, ...]] = {
    "record": (_nothing_on_disk, _loses),
    "ready": (_nothing_on_disk, _loses, _no_recall, _background),
    "recall": (_finds_less,),
    "context": (_no_window, _no_recall, _nothing_on_disk, _over_budget, _less_in_prompt),
    "memory": (_loses, _no_recall, _memory_while_short, _lighter_to_open),
    "disk": (_nothing_on_disk, _vectors_in_memory, _loses, _disk_while_short),
    "tokens": (_no_window, _less_in_prompt, _reaches_less),
    "prefix": (_everything, _less_in_prompt),
    "in_prompt": (_always_ten, _everything),
    "reached": (_everything,),
    "growth": (_no_window, _no_recall, _nothing_on_disk),
}


def why(kind: str, ahead: Iterable[str], told: Mapping[str, Told]) -> str:
    """Why those are ahead, who has the same reasons together; it says so where nothing explains it."""
    together: dict[str, list[str]] = {}
    for name in ahead:
        together.setdefault(_reasons(told[name], told[OURS], REASONS.get(kind, ())), []).append(name)
    return " ".join(f"{', '.join(names)}: {reasons}." for reasons, names in together.items())


def _reasons(them: Told, us: Told, reasons: Iterable[Reason]) -> str:
    # Of many reasons two are enough.
    true = [reason for check in reasons if (reason := check(them, us))][:2]
    return "; ".join(true) or UNEXPLAINED


@dataclass(frozen=True, slots=True)
class _Column:
    """How a line is read off those who were measured."""

    kind: str
    name: str
    unit: str
    better: Better
    read: Callable[[Told], float | None]


def lines_of(told: Mapping[str, Told], sizes: Sequence[int]) -> list[Line]:
    """All lines, those of each size first."""
    columns = [column for size in sizes for column in _sized(size)]
    if len(sizes) > 1:
        columns.append(_grown(sizes[0], sizes[-1]))
    return [_line(column, told) for column in (*columns, *_WALKED)]


def _line(column: _Column, told: Mapping[str, Told]) -> Line:
    values = {name: column.read(one) for name, one in told.items()}
    ahead = who_is_ahead(values, column.better, column.unit)
    return Line(column.name, column.unit, column.better, values, ahead, why(column.kind, ahead, told))


def _sized(turns: int) -> list[_Column]:
    def read(what: str, times: float = 1.0) -> Callable[[Told], float | None]:
        def value(one: Told) -> float | None:
            point = one.at(turns)
            return None if point is None or point[what] is None else point[what] * times

        return value

    def memory(one: Told) -> float | None:
        point = one.at(turns)
        return None if point is None else point["peak_mb"] - one.base_mb

    size = f"at {turns:,} turns"
    return [
        _Column("record", f"Record a turn, {size}", "ms", "less", read("record_ms")),
        _Column("ready", f"Until it can be recalled, {size}", "ms", "less", read("ready_ms")),
        _Column("recall", f"Recall, {size}", "ms", "less", read("recall_ms")),
        _Column("context", f"Make a prompt, {size}", "ms", "less", read("context_ms")),
        _Column("memory", f"Memory, {size}", "MB", "less", memory),
        _Column("disk", f"Disk, {size}", "MB", "less", read("disk_bytes", 1e-6)),
        _Column("found", f"Said details found, {size}", "share", "more", read("said_share")),
        _Column("found", f"Details in tool results found, {size}", "share", "more", read("read_share")),
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
