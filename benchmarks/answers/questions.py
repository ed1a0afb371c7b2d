"""Which questions are asked: forty a set, chosen by their ids alone, each with the answers that count as right."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks.recall_data import Asked, Corpus, read_set, set_files
from benchmarks.window_data import lines
from pagefile.errors import NotFoundError

SETS = ("LoCoMo", "LongMemEval-S", "LifeBench-zh")
A_SET = 40
#: LifeBench is given without answers. These are ours, written from the labelled records: by question id, what an answer has to say.
LABELS = Path(__file__).parent / "lifebench.toml"
#: Questions of LoCoMo that have no answer, and of LongMemEval that have none but a rubric.
_ADVERSARIAL, _RUBRIC = "5", "single-session-preference"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one person's memory, and every wording that is right."""

    set: str
    asked: Asked
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interview:
    """One person's memory, and the questions that are asked about it."""

    corpus: Corpus
    questions: list[Question]


def interviews(name: str, data: Path, most: int = A_SET) -> list[Interview]:
    """The chosen questions of a set by person, in the order in which they were chosen: the first ones are of every kind."""
    path = set_files(data).get(name)
    if path is None:
        raise NotFoundError(f"There is no file of {name} in {data}.")
    corpora, answers = read_set(name, path), _answers(name, data, path)
    every = [
        (corpus, Question(name, asked, answers[asked.id]))
        for corpus in corpora
        for asked in corpus.asked
        if asked.id in answers
    ]
    owners = {question.asked.id: corpus for corpus, question in every}
    by_person: dict[str, Interview] = {}
    for one in chosen_of([question for _, question in every], most):
        owner = owners[one.asked.id]
        by_person.setdefault(owner.user, Interview(owner, [])).questions.append(one)
    return list(by_person.values())


def chosen_of(questions: Sequence[Question], most: int) -> Iterator[Question]:
    """As many of each kind as there are in the set, in an order that nobody chose: by the hash of their ids."""
    kinds: dict[str, list[Question]] = {}
    for one in sorted(questions, key=lambda question: sha256(question.asked.id.encode()).digest()):
        kinds.setdefault(one.asked.kind, []).append(one)
    ranked = [
        ((place + 0.5) / len(group), kind, one)
        for kind, group in kinds.items()
        for place, one in enumerate(group)
    ]
    return (one for _, _, one in sorted(ranked, key=lambda row: row[:2])[:most])


def _answers(name: str, data: Path, path: Path) -> dict[str, tuple[str, ...]]:
    if name == "LifeBench-zh":
        return {id_: tuple(wordings) for id_, wordings in tomllib.loads(LABELS.read_text("utf-8")).items()}
    if name == "LongMemEval-S":
        return {
            sample["question_id"]: (str(sample["answer"]),)
            for sample in lines(data, path.name)
            if sample["question_type"] != _RUBRIC
        }
    return {
        f"{sample['sample_id']}-{number}": (str(one["answer"]),)
        for sample in lines(data, path.name)
        for number, one in enumerate(sample["qa"])
        if str(one["category"]) != _ADVERSARIAL and "answer" in one
    }
