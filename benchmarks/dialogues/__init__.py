"""Conversations with corrections, in two languages, and how a summary of one is judged.

They were written for this, and what holds at their ends was decided by reading them, before any summary was made.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "zh"]
#: Of every part one wording.
Parts = tuple[tuple[str, ...], ...]

#: Conversations that no weights are fitted to.
FITTED_TO_NONE = ("_sealed", "_errands", "_held")

_SENTENCE = re.compile(r"(?<=[。！？；])|(?<=[.!?;])(?<!Mr\.)(?<!Ms\.)(?<!Dr\.)(?<!Mrs\.)\s+")


@dataclass(frozen=True, slots=True)
class Overruled:
    """What was said and no longer holds, and the words that tell so."""

    parts: Parts
    corrected_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is written in the file, without what corrects it."""
        return " & ".join("|".join(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation, and what is true at its end."""

    name: str
    language: Language
    #: What the user said and what was answered.
    turns: tuple[tuple[str, str], ...]
    holds: tuple[Parts, ...]
    gone: tuple[Overruled, ...]
    #: Whether it was written later, after the first ones had been looked at.
    kept: bool
    #: The end of the name of its file.
    part: str = ""

    @property
    def blind(self) -> bool:
        """Whether no weights are fitted to it."""
        return self.part in FITTED_TO_NONE

    def missing(self, summary: str) -> list[str]:
        """What holds and is in no line of the summary."""
        lines = summary.splitlines()
        untold = [parts for parts in self.holds if not any(tells(line, parts) for line in lines)]
        return [" & ".join("|".join(part) for part in parts) for parts in untold]

    def stale(self, summary: str) -> list[str]:
        """What the summary tells as if it still held."""
        pairs = [pair for line in summary.splitlines() for pair in _pairs(line)]
        return [one.name for one in self.gone if any(_stands(one, *pair) for pair in pairs)]

    def misleading(self, summary: str) -> list[str]:
        """What the summary tells as if it still held to whoever reads on: no later sentence corrects it either."""
        sentences = [piece for line in summary.splitlines() for piece in _SENTENCE.split(line) if piece]
        return [one.name for one in self.gone if _misleads(one, sentences)]


def says(text: str, words: str) -> bool:
    """Whether a text has these words; neither as the end of a longer word nor as a part of a longer number."""
    before = r"(?<![a-z0-9])(?<!\d[.,])" if re.match(r"[a-z0-9]", words, re.IGNORECASE) else ""
    after = r"(?!\d|[.,]\d)" if words[-1].isdecimal() else ""
    return re.search(before + re.escape(words) + after, text, re.IGNORECASE) is not None


@cache
def dialogues() -> tuple[Dialogue, ...]:
    """All of them, by language."""
    return (*_read("en"), *_read("zh"))


def _read(language: Language) -> Iterator[Dialogue]:
    for part in ("", "_later", "_blind", "_fresh", "_daily", *FITTED_TO_NONE):
        file = Path(__file__).with_name(f"{language}{part}.toml")
        for one in tomllib.loads(file.read_text("utf-8"))["dialogue"]:
            yield _dialogue(one, language, part)


def _dialogue(one: dict[str, Any], language: Language, part: str) -> Dialogue:
    said = one["talk"].strip().splitlines()
    users, answers = said[::2], said[1::2]
    if len(users) != len(answers) or not all(line.startswith("> ") for line in users):
        raise ValueError(f"The lines of {one['name']!r} do not take turns")
    turns = tuple((user[2:], answer) for user, answer in zip(users, answers, strict=True))
    gone = (line.split(" -> ") for line in one["gone"])
    return Dialogue(
        one["name"],
        language,
        turns,
        tuple(map(_parts, one["holds"])),
        tuple(Overruled(_parts(told), tuple(by.split("|"))) for told, by in gone),
        one.get("kept", False),
        part,
    )


def _parts(line: str) -> Parts:
    return tuple(tuple(part.split("|")) for part in line.split(" & "))


def tells(text: str, parts: Parts) -> bool:
    """Whether a text has of every part one wording."""
    return all(any(says(text, words) for words in part) for part in parts)


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    """Each sentence of a line, with the one after it."""
    split = [piece for piece in _SENTENCE.split(line) if piece]
    yield from zip(split, [*split[1:], ""], strict=True)


def _stands(one: Overruled, sentence: str, following: str) -> bool:
    if not tells(sentence, one.parts):
        return False
    return not any(says(f"{sentence} {following}", words) for words in one.corrected_by)


def _misleads(one: Overruled, sentences: Sequence[str]) -> bool:
    last = max((at for at, sentence in enumerate(sentences) if tells(sentence, one.parts)), default=None)
    if last is None:
        return False
    return not any(says(sentence, words) for sentence in sentences[last:] for words in one.corrected_by)
