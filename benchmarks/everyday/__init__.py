"""Everyday messages and the pasts they are asked in, written for this repository: what needs memory and what does not.

`pasts/` has six users' turns over months; `needed.toml` and `results.toml` messages that need one of them, with what has to
be in the window; `quiet.toml` messages that need none. `second/` and `third/` have the same for four and three other users: weights are fitted on the
first set only. `fact_sets.toml` and `fact_rules.toml` are the same for facts; `persist_beneficial.txt` has the labels of
PersistBench's beneficial set, which has none of its own.
"""

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
#: A result is as long as one that leaves the window as soon as its turn is over.
_RESULT_CHARS = 12_000
#: The folder of each set of users.
FIRST, SECOND, THIRD = "", "second", "third"
#: When all of it is asked.
NOW = datetime(2025, 11, 3, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Told:
    """A turn of a user's past."""

    id: str
    at: datetime
    conversation: str
    user: str
    assistant: str

    @property
    def text(self) -> str:
        """Both sides."""
        return f"{self.user}\n{self.assistant}"


@dataclass(frozen=True, slots=True)
class Needed:
    """A message that needs the past."""

    user: str
    kind: str
    text: str
    #: Ids of the turns it needs; none if it needs a tool result.
    turns: tuple[str, ...]
    #: What has to be in the window, word for word.
    says: tuple[str, ...]
    #: What an older turn says and no longer holds: it must not be there without `says`.
    overruled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quiet:
    """A message that needs nothing of the past."""

    user: str
    kind: str
    text: str
    #: The turns before it in its own conversation.
    recent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """A turn that called a tool, and what is asked about its result later."""

    user: str
    at: datetime
    ask: str
    tool: str
    said: str
    result: str
    asks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FactSet:
    """What is known of one user, and questions with the numbers of the facts they need, from 0."""

    name: str
    facts: tuple[str, ...]
    asks: tuple[tuple[str, tuple[int, ...]], ...]
    #: Two turns about something else.
    away: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FactRules:
    """Sentences to extract facts from."""

    secrets: tuple[str, ...]
    plain: tuple[tuple[str, str], ...]
    decoys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Helpful:
    """Which memories of a line of PersistBench help its question; those in `may` neither help nor harm."""

    helps: frozenset[int]
    may: frozenset[int]


def pasts(of: str = FIRST) -> dict[str, list[Told]]:
    """The turns of each user, oldest first."""
    return {path.stem: _past(path) for path in sorted((_HERE / of / "pasts").glob("*.toml"))}


def _past(path: Path) -> list[Told]:
    rows: Sequence[Any] = _toml(path)["turns"]
    turns = [Told(name, _day(day), talk, user, assistant) for name, day, talk, user, assistant in rows]
    return sorted(turns, key=lambda turn: turn.at)


def needed(of: str = FIRST) -> list[Needed]:
    """The messages that need a turn."""
    return [
        Needed(user, kind, text, tuple(turns), tuple(says), tuple(overruled[0] if overruled else ()))
        for user, rows in _toml(_HERE / of / "needed.toml").items()
        for kind, text, turns, says, *overruled in rows
    ]


def quiet(of: str = FIRST) -> list[Quiet]:
    """The messages that need nothing."""
    return [
        Quiet(user, kind, one, ())
        if isinstance(one, str)
        else Quiet(user, kind, one[0], tuple((said, answer) for said, answer in one[1:]))
        for user, kinds in _toml(_HERE / of / "quiet.toml").items()
        for kind, messages in kinds.items()
        for one in messages
    ]


def fetched(of: str = FIRST) -> list[Fetched]:
    """The tool results, each with its questions."""
    rows: Sequence[Any] = _toml(_HERE / of / "results.toml")["result"]
    return [
        Fetched(
            row["user"],
            _day(row["day"]),
            row["ask"],
            row["tool"],
            row["said"],
            _result(row),
            tuple((question, answer) for question, answer in row["asks"]),
        )
        for row in rows
    ]


def _result(row: Mapping[str, Any]) -> str:
    """Lines of a pattern, with those that are asked about among them."""
    dice = random.Random(row["ask"])
    lines: list[str] = []
    while sum(map(len, lines)) < _RESULT_CHARS:
        words = {name: dice.choice(choices) for name, choices in row["words"].items()}
        numbers = {"n": dice.randrange(11, 99), "p": dice.randrange(120, 900), "h": dice.randrange(6, 14)}
        numbers |= {"m": dice.randrange(10, 60), "h2": dice.randrange(14, 22), "m2": dice.randrange(10, 60)}
        lines.append(row["pattern"].format(**numbers, **words))
    for line in row["lines"]:
        lines.insert(dice.randrange(len(lines) // 4, len(lines)), line)
    return "\n".join(lines)


def fact_sets() -> list[FactSet]:
    """Sets of sixty facts."""
    rows: Sequence[Any] = _toml(_HERE / "fact_sets.toml")["set"]
    return [
        FactSet(
            row["name"],
            tuple(row["facts"]),
            tuple((question, tuple(number - 1 for number in numbers)) for question, numbers in row["asks"]),
            tuple((said, answer) for said, answer in row["away"]),
        )
        for row in rows
    ]


def fact_rules(name: str = "fact_rules") -> FactRules:
    """Sentences for the rules; those of "fact_rules_more" were written apart from them."""
    told = _toml(_HERE / f"{name}.toml")
    plain = tuple((sentence, phrase) for sentence, phrase in told["plain"])
    return FactRules(tuple(told["secrets"]), plain, tuple(told["decoys"]))


def helpful() -> dict[int, Helpful]:
    """The labels of PersistBench's beneficial set, by the number of the line, from 1."""
    lines = (_HERE / "persist_beneficial.txt").read_text("utf-8").splitlines()
    labels: dict[int, Helpful] = {}
    for line in lines:
        if not line.startswith("#"):
            number, _, rest = line.partition(":")
            helps, _, may = rest.partition("|")
            labels[int(number)] = Helpful(
                frozenset(map(int, helps.split())), frozenset(map(int, may.split()))
            )
    return labels


@cache
def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _day(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(hour=18, tzinfo=UTC)
