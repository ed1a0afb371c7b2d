"""Where words cannot decide, the model that is measured judges by a fixed rubric; labels by hand say how far it can be believed.

Only answers that do not say the words of a right one are judged. A verdict is kept as a line, as an answer is.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.answers.arms import Message, language
from benchmarks.answers.questions import Question

VERDICTS = Path(__file__).parent / "verdicts.jsonl"
#: By "question, arm": whether the kept answer is right, as a person reads it.
LABELS = Path(__file__).parent / "labels.toml"

_RUBRIC = {
    "en": "Question: {question}\nRight answer: {right}\nGiven answer: {given}\n\n"
    "Does the given answer say the same as the right answer? It may use other words or say more, but the fact that was "
    "asked for must be the same. A refusal, another date, name or number, or only a part of a list is not the same. "
    "Reply with one word: yes or no.",
    "zh": "问题：{question}\n正确答案：{right}\n给出的答案：{given}\n\n"
    "给出的答案与正确答案说的是同一件事吗？措辞可以不同，也可以多说，但所问的事实必须一致。拒答、日期、人名或数字不同、只列出一部分，都不算一致。"
    "只回答一个字：是 或 否。",
}  # fmt: skip
_YES = ("yes", "是")
_VERDICT_TOKENS = 4


class Answered(Protocol):
    """What is judged of an answer."""

    @property
    def question(self) -> str: ...
    @property
    def arm(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def right(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """A line of the file of verdicts."""

    question: str
    arm: str
    right: bool
    #: Whose answer it is, and who judged it.
    model: str
    judge: str


def judge(
    answers: Sequence[Answered],
    questions: Mapping[str, Question],
    model: str,
    ask: Callable[[Sequence[Message], int], str],
    *,
    path: Path = VERDICTS,
    tell: Callable[[str], None] = print,
) -> None:
    """Judge what has no verdict yet of those answers whose words are not right."""
    known = {(one.question, one.arm) for one in read(path) if one.model == model}
    for one in answers:
        if one.right or not one.answer or (one.question, one.arm) in known:
            continue
        said = ask(
            [{"role": "user", "content": rubric(questions[one.question], one.answer)}], _VERDICT_TOKENS
        )
        verdict = Verdict(one.question, one.arm, said.strip().casefold().startswith(_YES), model, model)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(verdict), ensure_ascii=False) + "\n")
        tell(f"{one.question} {one.arm}: {'the same' if verdict.right else 'not the same'}")


def rubric(question: Question, given: str) -> str:
    text = question.asked.text
    return _RUBRIC[language(text)].format(question=text, right=" / ".join(question.answers), given=given)


def read(path: Path = VERDICTS) -> list[Verdict]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [Verdict(**json.loads(line)) for line in lines]


def labels(path: Path = LABELS) -> dict[tuple[str, str], bool]:
    """What a person says, by question and arm."""
    if not path.exists():
        return {}
    named: dict[str, bool] = tomllib.loads(path.read_text("utf-8"))
    return {_place(name): right for name, right in named.items()}


def _place(name: str) -> tuple[str, str]:
    question, _, arm = name.partition(", ")
    return question, arm


def agreement(
    answers: Sequence[Answered], verdicts: Sequence[Verdict], by_hand: Mapping[tuple[str, str], bool]
) -> tuple[int, int, int, int]:
    """Of the labelled answers, how many the words alone and the words with the judge decide as a person does; and how many were right."""
    judged = {(one.question, one.arm): one.right for one in verdicts}
    rows = list(_decided(answers, judged, by_hand))
    words = sum(by_words == label for by_words, _, label in rows)
    both = sum(by_both == label for _, by_both, label in rows)
    return words, both, sum(label for _, _, label in rows), len(rows)


def _decided(
    answers: Sequence[Answered],
    judged: Mapping[tuple[str, str], bool],
    by_hand: Mapping[tuple[str, str], bool],
) -> Iterator[tuple[bool, bool, bool]]:
    for one in answers:
        place = (one.question, one.arm)
        if place in by_hand:
            yield one.right, one.right or judged.get(place, False), by_hand[place]
