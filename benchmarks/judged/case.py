"""What a case of the judged set is, and the small tools with which results are made up from a seed."""

import json
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "zh", "mixed"]
#: What a reader needs: of every group one alternative.
Key = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A tool result, what a reader of its synopsis needs to know, and what is asked about it later."""

    #: Its kind, a slash, and what it is.
    name: str
    #: That of its text; names, tags and commands aside.
    language: Language
    tool: str
    input: dict[str, Any]
    #: Exactly what the tool returned.
    result: str
    key: Key
    #: Questions, each with a short string of the result (as decoded text) that a passage must hold.
    questions: tuple[tuple[str, str], ...]
    #: What a synopsis or its sources must not say.
    wrong: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The family it belongs to."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Subject:
    """Sentence patterns about one subject and the words that go into them."""

    patterns: tuple[str, ...]
    slots: Mapping[str, tuple[str, ...]]
    space: str

    def sentence(self, pick: random.Random) -> str:
        """One sentence, with numbers of its own."""
        words = {slot: pick.choice(choices) for slot, choices in self.slots.items()}
        made = pick.choice(self.patterns).format(**words, n=pick.randrange(11, 600), m=pick.randrange(2, 10))
        return made[0].upper() + made[1:]

    def sentences(self, pick: random.Random, count: int) -> str:
        """A paragraph."""
        return self.space.join(self.sentence(pick) for _ in range(count))

    def paragraphs(self, pick: random.Random, chars: int) -> list[str]:
        """Paragraphs of about this many characters together."""
        made: list[str] = []
        while sum(map(len, made)) < chars:
            made.append(self.sentences(pick, pick.randrange(3, 6)))
        return made


@cache
def subject(name: str) -> Subject:
    """One of the subjects in `topics.toml`."""
    told = tomllib.loads(Path(__file__).with_name("topics.toml").read_text("utf-8"))[name]
    slots = {slot: tuple(words) for slot, words in told["slots"].items()}
    return Subject(tuple(told["patterns"]), slots, " " if told["language"] == "en" else "")


def dice(name: str) -> random.Random:
    """The same dice for the same name."""
    return random.Random(name)


def planted(lines: Sequence[str], *facts: tuple[float, str]) -> list[str]:
    """The lines with facts among them, each at its share of the way."""
    made = list(lines)
    for share, fact in sorted(facts, reverse=True):
        made.insert(int(share * len(lines)), fact)
    return made


def js(value: object, indent: int | None = None) -> str:
    """JSON as most services write it: no escapes for what needs none."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def numbered(text: str) -> str:
    """Lines with their numbers, as coding agents are shown a file."""
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(text.split("\n"), 1))


def data(name: str) -> str:
    """A text file that lies beside this module."""
    return (Path(__file__).parent / name).read_text("utf-8")
