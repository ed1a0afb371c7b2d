"""The public sets recall is measured on, read into one shape: who said what when, what is asked, and what answers it."""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from pagefile.errors import NotFoundError, TransferError


@dataclass(frozen=True, slots=True)
class Said:
    """What is recorded as one turn."""

    id: str
    conversation: str
    #: What a ranking of sessions is scored by; never indexed, for it may give the answer away.
    session: str
    at: datetime
    user: str | None
    assistant: str | None = None

    @property
    def text(self) -> str:
        """Both sides, as a reader sees them."""
        return "\n".join(side for side in (self.user, self.assistant) if side)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what answers it."""

    id: str
    text: str
    #: What sort of question it is, as the set names it.
    kind: str
    turns: frozenset[str]
    sessions: frozenset[str]
    #: When it is asked, from which "last week" is seen.
    at: datetime
    #: How many turns there were when it was asked: later ones are left out of every ranking. None for all.
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The memory of one user, each conversation in order of time, and the questions about it."""

    user: str
    said: Sequence[Said]
    asked: Sequence[Asked]


def locomo(path: Path) -> Iterator[Corpus]:
    """LoCoMo: an utterance is a turn, at its session's time."""
    for sample in _read(path):
        talk = sample["conversation"]
        numbers = sorted(int(name[8:]) for name in talk if re.fullmatch(r"session_\d+", name))
        said = [
            Said(
                id=utterance["dia_id"],
                conversation=f"session-{number}",
                session=str(number),
                at=_time(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"),
                user=" ".join(
                    [f"{utterance['speaker']}: {utterance['text']}", utterance.get("blip_caption") or ""]
                ).strip(),
            )
            for number in numbers
            for utterance in talk[f"session_{number}"]
        ]
        yield Corpus(sample["sample_id"], said, _locomo_questions(sample, said))


def _locomo_questions(sample: Any, said: Sequence[Said]) -> list[Asked]:
    """Questions with evidence that is there, asked after everything was said."""
    session_of = {one.id: one.session for one in said}
    last = max(one.at for one in said)
    asked: list[Asked] = []
    for number, question in enumerate(sample["qa"]):
        found = re.findall(r"D(\d+):(\d+)", " ".join(question.get("evidence") or ()))
        evidence = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found) & session_of.keys()
        if evidence:
            sessions = frozenset(session_of[turn] for turn in evidence)
            name = f"{sample['sample_id']}-{number}"
            kind = str(question["category"])
            asked.append(Asked(name, question["question"], kind, frozenset(evidence), sessions, last))
    return asked


def longmemeval(path: Path) -> Iterator[Corpus]:
    """LongMemEval-S: a question and its answer are a turn, a session is a conversation; abstention questions are left out."""
    for sample in _read(path):
        if sample["question_id"].endswith("_abs"):
            continue
        sessions = zip(
            sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
        )
        said = [
            Said(
                f"{number}:{turn}", f"session-{number:03}", session, _time(day, "%Y/%m/%d (%a) %H:%M"), *pair
            )
            # A haystack may hold the same session twice: the number tells them apart.
            for number, (session, day, messages) in enumerate(sessions)
            for turn, pair in enumerate(_pairs(messages))
        ]
        gold = frozenset[str](sample["answer_session_ids"])
        at = _time(sample["question_date"], "%Y/%m/%d (%a) %H:%M")
        asked = Asked(
            sample["question_id"], sample["question"], sample["question_type"], frozenset(), gold, at
        )
        yield Corpus(sample["question_id"], said, [asked])


def _pairs(messages: Sequence[Any]) -> Iterator[tuple[str | None, str | None]]:
    """What the user says with the answer behind it; either may be missing."""
    waiting: str | None = None
    for message in messages:
        if message["role"] == "user":
            if waiting is not None:
                yield waiting, None
            waiting = message["content"]
        else:
            yield waiting, message["content"]
            waiting = None
    if waiting is not None:
        yield waiting, None


def lifebench(path: Path) -> Iterator[Corpus]:
    """LifeBench: a record is a turn, in order of time, in one conversation."""
    for person in _read(path):
        said = [
            Said(
                doc["id"],
                "life",
                "life",
                datetime.fromisoformat(doc["datetime"]).replace(tzinfo=UTC),
                doc["text"],
            )
            for doc in sorted(person["docs"], key=_moment)
        ]
        known = {one.id for one in said}
        asked = [
            Asked(
                query["id"],
                query["question"],
                query["question_type"],
                frozenset(query["evidence"]) & known,
                frozenset(),
                _month_end(query["ask_time"]),
            )
            for query in person["queries"]
        ]
        yield Corpus(person["user"], said, [question for question in asked if question.turns])


def uniform(path: Path) -> Iterator[Corpus]:
    """REALTALK, BEAM and RealMem, which have one shape; what answers is named by turn, or by conversation."""
    for person in _read(path):
        said = [
            Said(
                turn["id"],
                turn["conversation"],
                turn["conversation"],
                datetime.fromisoformat(turn["at"]).astimezone(UTC),
                turn["user"],
                turn["assistant"],
            )
            for turn in person["turns"]
        ]
        asked = [_uniformly_asked(person["user"], said, *one) for one in enumerate(person["queries"])]
        yield Corpus(person["user"], said, [one for one in asked if one.turns or one.sessions])


def _uniformly_asked(user: str, said: Sequence[Said], number: int, query: Any) -> Asked:
    there = said[: query["before"]]
    gold = frozenset(query["gold"])
    by_turn = query["unit"] == "turn"
    turns = gold & {one.id for one in there} if by_turn else frozenset[str]()
    sessions = frozenset(one.session for one in there if (one.id if by_turn else one.session) in gold)
    at = (there[-1] if there else said[0]).at + timedelta(hours=1)
    return Asked(f"{user}-{number}", query["question"], query["kind"], turns, sessions, at, query["before"])


def _moment(doc: Any) -> str:
    return doc["datetime"]


#: The file of each set and what reads it.
SETS: dict[str, tuple[str, Callable[[Path], Iterator[Corpus]]]] = {
    "LoCoMo": ("locomo*.json.gz", locomo),
    "LongMemEval-S": ("longmemeval-s*.json.gz", longmemeval),
    "LifeBench-zh": ("lifebench-zh*.json.gz", lifebench),
    "REALTALK": ("realtalk*.json.gz", uniform),
    "BEAM-100K": ("beam100k*.json.gz", uniform),
    "RealMem": ("realmem*.json.gz", uniform),
}


def set_files(data: Path) -> dict[str, Path]:
    """The file of each set that is in a folder."""
    found = {name: sorted(data.glob(pattern)) for name, (pattern, _) in SETS.items()}
    files = {name: paths[0] for name, paths in found.items() if paths}
    if not files:
        looked = ", ".join(pattern for pattern, _ in SETS.values())
        raise NotFoundError(f"There is nothing to measure recall on in {data}: it has none of {looked}.")
    return files


def read_set(name: str, path: Path) -> list[Corpus]:
    """All of a set; a file of another shape raises `TransferError`."""
    try:
        return list(SETS[name][1](path))
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TransferError(f"{path.name} is not a file of {name}: {error!r}.") from error


def _read(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return cast("list[Any]", json.load(file))


def _month_end(month: str) -> datetime:
    """A question is asked in a month such as 2025-03: after it."""
    first = _time(month[:7], "%Y-%m")
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _time(text: str, pattern: str) -> datetime:
    return datetime.strptime(text, pattern).replace(tzinfo=UTC)
