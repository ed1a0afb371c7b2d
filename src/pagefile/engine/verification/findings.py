"""Findings: where something is, what is wrong with it, and what to do; and what every check needs to make them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from pagefile.engine.engine import Engine
from pagefile.ports import Auditor
from pagefile.records import Entry, Scope
from pagefile.text.tables import table

#: "damage": something recorded is gone or changed, and nothing here can bring it back. "derived": it can be
#: rebuilt. "note": changed on purpose (purged, erased), or merely worth knowing.
Level: TypeAlias = Literal["damage", "derived", "note"]

#: Findings kept per level: a broken disk has more than anyone would read.
MOST_FINDINGS = 1000
#: What to do about a finding of a level, unless `ADVICE` has something better for its kind.
_BY_LEVEL: Mapping[Level, str] = table("pagefile.engine.verification", "advice")["levels"]
ADVICE: Mapping[str, str] = table("pagefile.engine.verification", "advice")["kinds"]
_OTHER_WINDOWS = frozenset({"call-differs", "call-changed"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, or not as it was."""

    level: Level
    kind: str
    what: str
    tenant: str | None = None
    user: str | None = None
    conversation: str | None = None
    turn: str | None = None
    seq: int | None = None
    page: str | None = None
    mended: bool = False

    @property
    def advice(self) -> str:
        return ADVICE.get(self.kind, _BY_LEVEL[self.level])


def at(scope: Scope, level: Level, kind: str, what: str, **where: Any) -> Finding:
    """A finding in a scope; `where` are further fields of the finding."""
    return Finding(level, kind, what, scope.tenant, scope.user, scope.conversation, **where)


def at_entry(entry: Entry, level: Level, kind: str, what: str, **where: Any) -> Finding:
    return at(entry.scope, level, kind, what, turn=entry.id, seq=entry.seq, **where)


@dataclass(frozen=True, slots=True)
class Report:
    #: The number of things checked, by kind.
    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    #: Totals per level, including findings left out of `findings`.
    damage: int
    derived: int
    mended: int
    notes: int
    #: Recorded windows, among those checked, that cannot be rebuilt as they were.
    other_windows: int = 0
    #: Whether every value was compared, not only a sample.
    full: bool = False

    @property
    def whole(self) -> bool:
        """Whether everything recorded is intact, and everything derived is correct."""
        return not self.damage and self.mended == self.derived

    @property
    def left_out(self) -> int:
        return self.damage + self.derived + self.notes - len(self.findings)


@dataclass(slots=True)
class Tally:
    checked: Counter[str] = field(default_factory=Counter[str])
    #: Findings by level, and those that are mended or about windows.
    found: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.found[finding.level] += 1
            self.found["mended"] += finding.mended
            self.found["windows"] += finding.kind in _OTHER_WINDOWS
            if self.found[finding.level] <= MOST_FINDINGS:
                self.findings.append(finding)

    def report(self, *, full: bool) -> Report:
        totals = [self.found[what] for what in ("damage", "derived", "mended", "note", "windows")]
        return Report(dict(self.checked), tuple(sorted(self.findings, key=_worst_first)), *totals, full=full)


def _worst_first(finding: Finding) -> tuple[object, ...]:
    place = finding.tenant or "", finding.conversation or "", finding.seq or 0, finding.page or ""
    return get_args(Level).index(finding.level), *place, finding.kind, finding.what


#: Without `full`, one in this many is recomputed for comparison.
SAMPLE = 20


@dataclass(slots=True)
class Check:
    """What every check needs. `full` compares every value instead of a sample; `repair` rebuilds derived data."""

    engine: Engine
    audit: Auditor
    tally: Tally
    full: bool
    repair: bool

    def sampled(self, number: int) -> bool:
        return self.full or number % SAMPLE == 1
