"""Why somebody is ahead of Pagefile in `pagefile bench peers`: only what follows from the numbers of the same run.

A reason is written for one and for many at once, `[keeps|keep]`, and is told in full once in a report.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers_all import OURS, PEERS

#: What a line says that no reason was found for. It is not hidden: somebody has to look.
UNEXPLAINED = "no reason was found, this is ours to look into"
#: Prompts that are larger by less are as large.
_AS_LARGE = 1.1
#: The most reasons that are named.
_ENOUGH = 2
_NUMBER = re.compile(r"\[([^|\]]*)\|([^|\]]*)\]")


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


@dataclass(frozen=True, slots=True)
class Case:
    """One that is ahead, in a figure for one size of conversation, or in one that has no size."""

    them: Told
    us: Told
    turns: int | None = None

    @property
    def measured(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """What both did at that size, or else in the longest conversation that both came to."""
        same = self._at(self.turns) if self.turns is not None else None
        return same or self.longest

    @property
    def longest(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """What both did in the longest conversation that both came to."""
        both = [found for point in self.us.growth["points"] if (found := self._at(point["turns"]))]
        return both[-1] if both else None

    @property
    def walked(self) -> str:
        """Of how many turns a number of the conversation with prompts tells, where the line is about another number."""
        turns = self.us.walk["turns"]
        return "" if self.turns in (None, turns) else f" (over {turns:,} turns)"

    def _at(self, turns: int) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        theirs, ours = self.them.at(turns), self.us.at(turns)
        return (theirs, ours) if theirs and ours else None


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason, if it holds: in a few words, and in full."""

    brief: str
    full: Callable[[Case], str | None]


def _nothing_on_disk(case: Case) -> str | None:
    if case.them.on_disk or not case.us.on_disk:
        return None
    return "[keeps|keep] everything in memory: nothing is on disk when a call returns, and a restart loses it all"


def _loses(case: Case) -> str | None:
    them, us = case.them.walk, case.us.walk
    if them["bytes_lost"] <= us["bytes_lost"]:
        return None
    lost = them["bytes_lost"] / them["bytes"]
    return f"[has|have] thrown away {lost:.0%} of what was said, word for word{case.walked}"


def _no_window(case: Case) -> str | None:
    if case.them.makes_windows:
        return None
    return (
        "[makes|make] no window: the prompt has neither the latest turns nor a summary, only what was found"
    )


def _reaches_less(case: Case) -> str | None:
    them, us = case.them.walk, case.us.walk
    if them["reached"] >= us["reached"]:
        return None
    return (
        f"[reaches|reach] {them['reached']} of {them['details']} details with one more call, "
        f"Pagefile {us['reached']}{case.walked}"
    )


def _over_budget(case: Case) -> str | None:
    them, us = case.them.walk, case.us.walk
    if them["over_budget"] <= us["over_budget"]:
        return None
    return f"[sends|send] {them['over_budget']:.0%} of [its|their] prompts beyond the budget{case.walked}"


def _larger_prompt(case: Case) -> str | None:
    times = case.them.walk["prompt_tokens"] / case.us.walk["prompt_tokens"]
    return f"[sends|send] {times:.1f} times as many tokens{case.walked}" if times > _AS_LARGE else None


def _less_in_prompt(case: Case) -> str | None:
    them, us = case.them.walk, case.us.walk
    if them["in_prompt"] >= us["in_prompt"]:
        return None
    details = f"{them['in_prompt']} of {them['details']} details in the prompt, Pagefile {us['in_prompt']}"
    return f"[has|have] {details}{case.walked}"


def _no_recall(case: Case) -> str | None:
    return None if case.them.recalls else "[has|have] no index: what left the list cannot be asked for"


def _finds_less(case: Case) -> str | None:
    if case.measured is None or not case.them.recalls:
        return None
    theirs, ours = case.measured
    how = "[compares|compare] vectors and no words, and " if PEERS[case.them.name].vectors_only else ""
    size = "" if ours["turns"] == case.turns else f", at {ours['turns']:,} turns"
    for what, told in (("said_share", "said"), ("read_share", "in tool results")):
        if theirs[what] < ours[what]:
            shares = f"{theirs[what]:.0%} of the details {told}, Pagefile {ours[what]:.0%}"
            return f"{how}[finds|find] {shares}{size}"
    return None


def _always_ten(case: Case) -> str | None:
    if case.them.makes_windows:
        return None
    them, us = case.them.walk, case.us.walk
    return (
        "[puts its|put their] ten best finds into every prompt, whether or not the question asks for them, where Pagefile puts "
        f"up to three turns that pass its gate beside the latest turns; with one more call Pagefile reaches {us['reached']} of "
        f"{us['details']}, [this one|these] {them['reached']}"
    )


def _everything(case: Case) -> str | None:
    told = [reason for reason in (_over_budget(case), _larger_prompt(case)) if reason]
    return " and ".join(told) or None


def _background(case: Case) -> str | None:
    if not case.us.on_disk:
        return None
    return (
        "[does|do] less for a turn: Pagefile indexes its words and its vector, archives its results and keeps a summary ready, "
        "all in the background"
    )


def _lighter_to_open(case: Case) -> str | None:
    theirs, ours = case.them.opened_mb, case.us.opened_mb
    if theirs >= ours:
        return None
    return f"[adds|add] {theirs:.0f} MB before the first turn, Pagefile {ours:.0f} with its imports and an exact tokenizer"


def _vectors_in_memory(case: Case) -> str | None:
    if not PEERS[case.them.name].vectors_in_memory:
        return None
    return "[has|have] only texts on disk: the vectors are in memory, and a restart loses what could be found"


def _while_short(case: Case, what: str, times: float) -> str | None:
    """It is ahead in a short conversation and behind in a long one."""
    if case.longest is None:
        return None
    theirs, ours = case.longest
    spared = (case.them.base_mb, case.us.base_mb) if what == "peak_mb" else (0.0, 0.0)
    more, less = theirs[what] * times - spared[0], ours[what] * times - spared[1]
    if more <= less:
        return None
    return (
        f"[is|are] ahead only while the conversation is short: at {ours['turns']:,} turns [it has|they have] {more:,.0f} MB, "
        f"Pagefile {less:,.0f}"
    )


_IN_MEMORY = Reason("nothing on disk", _nothing_on_disk)
_LOSES = Reason("text thrown away", _loses)
_NO_WINDOW = Reason("no window", _no_window)
_NO_RECALL = Reason("no index", _no_recall)
_OVER_BUDGET = Reason("prompts beyond the budget", _over_budget)
_LESS_IN_PROMPT = Reason("fewer details in the prompt", _less_in_prompt)
_EVERYTHING = Reason("larger prompts", _everything)

#: Which reasons hold for which numbers; all that are true are told.
REASONS: dict[str, tuple[Reason, ...]] = {
    "record": (_IN_MEMORY, _LOSES),
    "ready": (_IN_MEMORY, _LOSES, _NO_RECALL, Reason("less done for a turn", _background)),
    "recall": (Reason("fewer details found", _finds_less),),
    "context": (_NO_WINDOW, _NO_RECALL, _IN_MEMORY, _OVER_BUDGET, _LESS_IN_PROMPT),
    "memory": (
        _LOSES,
        _NO_RECALL,
        Reason("only while it is short", lambda case: _while_short(case, "peak_mb", 1.0)),
        Reason("less to open", _lighter_to_open),
    ),
    "disk": (
        Reason("vectors in memory", _vectors_in_memory),
        _LOSES,
        Reason("only while it is short", lambda case: _while_short(case, "disk_bytes", 1e-6)),
    ),
    "tokens": (_NO_WINDOW, _LESS_IN_PROMPT, Reason("fewer details reached", _reaches_less)),
    "prefix": (_EVERYTHING, _LESS_IN_PROMPT),
    "in_prompt": (Reason("ten finds in every prompt", _always_ten), _EVERYTHING),
    "reached": (_EVERYTHING,),
    "growth": (_NO_WINDOW, _NO_RECALL, _IN_MEMORY),
}


@dataclass(frozen=True, slots=True)
class Explainer:
    """Says why, line after line: a reason in full where it comes first, later in a few words."""

    told: Mapping[str, Told]
    _said: set[str] = field(default_factory=set[str])

    def why(self, kind: str, ahead: Iterable[str], turns: int | None = None) -> str:
        """Why those are ahead, who has the same reason together; it says so where nothing explains it."""
        new: dict[str, list[str]] = {}
        again: dict[str, list[str]] = {}
        for name in ahead:
            case = Case(self.told[name], self.told[OURS], turns)
            for brief, full in _true(case, REASONS.get(kind, ())):
                known, reason = (again, brief) if full in self._said else (new, full)
                known.setdefault(reason, []).append(name)
        # What is not explained is said each time.
        self._said.update(new.keys() - {UNEXPLAINED})
        return " ".join([*_in_full(new), *_as_above(again)])


def _true(case: Case, reasons: Iterable[Reason]) -> list[tuple[str, str]]:
    found = [(reason.brief, full) for reason in reasons if (full := reason.full(case))]
    return found[:_ENOUGH] or [("", UNEXPLAINED)]


def _in_full(reasons: Mapping[str, list[str]]) -> Iterator[str]:
    """A sentence for each set of names."""
    together: dict[tuple[str, ...], list[str]] = {}
    for full, names in reasons.items():
        together.setdefault(tuple(names), []).append(_for(len(names), full))
    for names, told in together.items():
        yield f"{', '.join(names)}: {'; '.join(told)}."


def _as_above(reasons: Mapping[str, list[str]]) -> Iterator[str]:
    """One sentence for all that was told before."""
    if reasons:
        told = [f"{brief} ({', '.join(names)})" for brief, names in reasons.items()]
        yield f"As above: {'; '.join(told)}."


def _for(count: int, text: str) -> str:
    """The words for one, or for many."""
    return _NUMBER.sub(lambda found: found[1 if count == 1 else 2], text)
