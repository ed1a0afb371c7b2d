"""The public sets that windows are measured on: what was said, what is asked, and the words that have to be in the window."""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from benchmarks.recall_data import SETS, Asked, Corpus, Said
from pagefile.errors import TransferError

#: Of a long turn, this many characters in one piece are enough.
PIECE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and each text that answers it."""

    asked: Asked
    evidence: tuple[str, ...]
    #: Whether a piece of a long text is enough.
    piece: bool = False

    def held(self, window: str) -> list[str]:
        """The evidence that is in a window."""
        return [one for one in self.evidence if stands(one, window, piece=self.piece)]


@dataclass(frozen=True, slots=True)
class Person:
    """One user's memory and the questions about it."""

    corpus: Corpus
    questions: Sequence[Question]
    #: Whether all of it is one conversation, at whose end the same can be asked.
    one_conversation: bool = field(default=True)


def stands(evidence: str, window: str, *, piece: bool) -> bool:
    """Whether a text is in a window, both without their line breaks; of one that is long, any `piece`."""
    text = plain(evidence)
    if not piece or len(text) <= PIECE_CHARS:
        return text in window
    return any(text[at : at + PIECE_CHARS] in window for at in range(len(text) - PIECE_CHARS + 1))


def plain(text: str) -> str:
    """Words with single spaces between them, as no window escapes them."""
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return " ".join(text.split())


def _of_turns(corpus: Corpus) -> Person:
    """Evidence that is labelled by turn: all of the turn."""
    texts = {one.id: one.text for one in corpus.said}
    asked = [Question(one, tuple(texts[turn] for turn in sorted(one.turns))) for one in corpus.asked]
    said = [
        Said(one.id, "talk", one.session, one.at + timedelta(seconds=number), one.user, one.assistant)
        for number, one in enumerate(corpus.said)
    ]
    return Person(Corpus(corpus.user, said, corpus.asked), asked)


def _known(name: str) -> Callable[[Path], Iterator[Person]]:
    return lambda path: (_of_turns(corpus) for corpus in SETS[name][1](path))


def _realtalk(path: Path) -> Iterator[Person]:
    """A set in the uniform shape."""
    for person in _read(path):
        said = [
            Said(turn["id"], "talk", "", _time(turn["at"]), turn["user"], turn["assistant"])
            for turn in person["turns"]
        ]
        last = said[-1].at + timedelta(hours=1)
        asked = [
            Asked(
                f"{person['user']}-{number}",
                one["question"],
                one["kind"],
                frozenset(one["gold"]),
                frozenset(),
                last,
            )
            for number, one in enumerate(person["queries"])
            if one["unit"] == "turn"
        ]
        yield _of_turns(Corpus(person["user"], said, [one for one in asked if one.turns]))


def _longmemeval(path: Path) -> Iterator[Person]:
    """The messages that hold the answer are labelled; each session is a conversation of its own."""
    labelled = {
        sample["question_id"]: tuple(
            message["content"]
            for session in sample["haystack_sessions"]
            for message in session
            if message.get("has_answer")
        )
        for sample in _read(path)
    }
    for corpus in SETS["LongMemEval-S"][1](path):
        if evidence := labelled[corpus.user]:
            yield Person(corpus, [Question(corpus.asked[0], evidence, piece=True)], one_conversation=False)


READERS: dict[str, tuple[str, Callable[[Path], Iterator[Person]]]] = {
    "LoCoMo": (SETS["LoCoMo"][0], _known("LoCoMo")),
    "LongMemEval-S": (SETS["LongMemEval-S"][0], _longmemeval),
    "LifeBench-zh": (SETS["LifeBench-zh"][0], _known("LifeBench-zh")),
    "REALTALK": ("realtalk*.json.gz", _realtalk),
}


def people(name: str, data: Path) -> list[Person]:
    """Everybody in a set, nobody if the folder does not have it; a file of another shape raises `TransferError`."""
    pattern, read = READERS[name]
    paths = sorted(data.glob(pattern))
    try:
        return list(read(paths[0])) if paths else []
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TransferError(f"{paths[0].name} is not a file of {name}: {error!r}.") from error


def lines(data: Path, pattern: str) -> list[Any]:
    """A file of JSON lines, or of one JSON value, packed; nothing if it is not there."""
    paths = sorted(data.glob(pattern))
    if not paths:
        return []
    with gzip.open(paths[0], "rt", encoding="utf-8") as file:
        if paths[0].name.endswith(".jsonl.gz"):
            return [json.loads(line) for line in file]
        return cast("list[Any]", json.load(file))


def _read(path: Path) -> list[Any]:
    return lines(path.parent, path.name)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
