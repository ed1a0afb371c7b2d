"""Asks, grades and keeps: a line an answer, so that a run goes on where the last one ended. A question takes a small model a minute."""

import json
import random
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

import anyio
import anyio.to_thread
import httpx

from benchmarks.answers import judging
from benchmarks.answers.arms import SUMMARISED_TOKENS, Arm, Ask, Mem0, Message, Pagefile, Summarised, Trimmed
from benchmarks.answers.grading import exact, f1, matches
from benchmarks.answers.questions import SETS, Interview, Question, interviews
from benchmarks.recall_vectors import OnDisk, Remembered
from benchmarks.report import Report, Row, machine_facts
from benchmarks.window_parts import Bench
from pagefile.errors import NotFoundError
from pagefile.models.embedders import MemoryEncoder
from pagefile.testing import FakeClock
from pagefile.text.tokens import open_counter

ANSWERS = Path(__file__).parent / "answers.jsonl"
ARMS = (Trimmed.name, Mem0.name, Pagefile.name, Summarised.name)
#: The set whose memories are summarised whole.
WHOLE = "LoCoMo"
_ANSWER_TOKENS = 60
_DRAWS = 2_000
#: With fewer pairs a bootstrap draws the same few again and again, and its intervals are too narrow.
_FEWEST = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """A line of the file of answers; it holds nothing that is in a set but a question's id."""

    set: str
    question: str
    kind: str
    arm: str
    answer: str
    #: Whether all words of a right answer are in it, next to each other; and whether nothing else is.
    right: bool
    exact: bool
    f1: float
    #: As the model's server counted them.
    prompt_tokens: int
    seconds: float
    model: str
    #: Whether the prompt said a right answer in its words: if not, no model could have copied it. None before this was kept.
    held: bool | None = None
    #: The commit whose code made the prompt; empty where the code is in no checkout.
    commit: str = ""


@cache
def revision() -> str:
    """The commit that is checked out."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def is_known(commit: str) -> bool:
    """Whether the code that made a prompt can be looked at: where there is a history, it names a commit of it."""
    if not revision():
        return True
    asked = ["git", "-C", str(Path(__file__).parent), "cat-file", "-e", f"{commit}^{{commit}}"]
    return bool(commit) and not subprocess.run(asked, capture_output=True, check=False).returncode  # noqa: S603


class Model:
    """An OpenAI-compatible endpoint, asked without chance."""

    def __init__(self, url: str, name: str) -> None:
        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=3600, trust_env=False)
        self.name = name

    def close(self) -> None:
        self._http.close()

    def answer(self, messages: Sequence[Message], most: int) -> tuple[str, int]:
        body = {"model": self.name, "messages": list(messages), "temperature": 0, "max_tokens": most}
        response = self._http.post("/chat/completions", json=body).raise_for_status().json()
        said = str(response["choices"][0]["message"].get("content") or "").strip()
        usage: dict[str, int] = response.get("usage") or {}
        return said, usage.get("prompt_tokens", 0)

    def text(self, messages: Sequence[Message], most: int) -> str:
        return self.answer(messages, most)[0]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a run needs."""

    data: Path
    model: Model
    bench: Bench
    folder: Path
    sets: Sequence[str]
    arms: Sequence[str]
    most: int
    path: Path
    tell: Callable[[str], None]
    #: Requests at once. With more than one, an answer's seconds hold its wait for the others.
    at_once: int = 1


def measure(
    data: Path | None,
    url: str,
    name: str,
    *,
    sets: Sequence[str],
    arms: Sequence[str],
    most: int,
    cache: Path | None,
    tell: Callable[[str], None],
    at_once: int = 1,
    path: Path = ANSWERS,
) -> None:
    """Ask what is left to be asked, and keep the answers."""
    data = checked(data, sets, arms)
    maker = MemoryEncoder()
    vectors = Remembered(maker if cache is None else OnDisk(maker, cache))
    with (
        tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder,
        closing(Model(url, name)) as model,
    ):
        bench = Bench(vectors, tell)
        asking = Asking(
            data, model, bench, Path(folder), sets or SETS, arms or ARMS, most, path, tell, at_once
        )
        anyio.run(run, asking)


def checked(data: Path | None, sets: Sequence[str], arms: Sequence[str], there: Sequence[str] = ARMS) -> Path:
    """The folder of the sets, if it and the names are ones that can be measured."""
    if data is None:
        raise NotFoundError("Name the folder of the sets with --data or $PAGEFILE_BENCH_DATA.")
    for what, named, known in (("arm", arms, there), ("set", sets, SETS)):
        if unknown := set(named) - set(known):
            raise NotFoundError(f"There is no {what} {min(unknown)!r}: choose from {', '.join(known)}.")
    return data


async def run(asking: Asking) -> list[Answer]:
    """Ask up to `most` questions that have no answer of this model and arm yet, and return all answers of the model.

    The sets take turns, and all arms answer a question before the next one is asked: wherever a run stops, it can be compared.
    """
    known = [one for one in read(asking.path) if one.model == asking.model.name]
    turn = anyio.Semaphore(max(1, asking.at_once // len(asking.arms)))
    requests = anyio.CapacityLimiter(asking.at_once)
    # What names no commit of ours was made by code that nobody can look at any more: it is asked again.
    done = {(one.question, one.arm) for one in known if is_known(one.commit)}
    going = _Going(asking, known, done, asking.most, turn, requests)
    async with anyio.create_task_group() as tasks:
        for name in asking.sets:
            tasks.start_soon(going.ask_set, name)
    return known


@dataclass(slots=True)
class _Going:
    """A run, and how far it is."""

    asking: Asking
    known: list[Answer]
    done: set[tuple[str, str]]
    left: int
    #: Whose question it is. It is fair, so that sets take turns.
    turn: anyio.Semaphore
    requests: anyio.CapacityLimiter

    async def ask_set(self, name: str) -> None:
        # Each set has its own times.
        asking = replace(self.asking, bench=replace(self.asking.bench, clock=FakeClock()))
        for interview in await anyio.to_thread.run_sync(interviews, name, asking.data):
            ids = [one.asked.id for one in interview.questions]
            waiting = [arm for arm in asking.arms if any((id_, arm) not in self.done for id_ in ids)]
            if waiting and self.left > 0:
                async with AsyncExitStack() as stack:
                    ask = asking.model.text
                    arms = [
                        await stack.enter_async_context(open_arm(asking.bench, asking.folder, arm, name, ask))
                        for arm in waiting
                    ]
                    await self._ask_person(interview, arms)

    async def _ask_person(self, interview: Interview, arms: Sequence[Arm]) -> None:
        for arm in arms:
            await arm.take(interview.corpus)
        for question in interview.questions:
            async with self.turn, anyio.create_task_group() as tasks:
                for arm in arms:
                    if self.left > 0 and (question.asked.id, arm.name) not in self.done:
                        self.left -= 1
                        tasks.start_soon(self._ask, question, arm, await arm.prompt(question))

    async def _ask(self, question: Question, arm: Arm, messages: Sequence[Message]) -> None:
        async with self.requests:
            self._keep(await _graded(self.asking.model, question, arm, messages))

    def _keep(self, one: Answer) -> None:
        self.known.append(one)
        with self.asking.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        verdict = "right" if one.right else "WRONG"
        self.asking.tell(f"{one.set} {one.question} {one.arm}: {verdict}, {one.seconds:.0f} s")


@asynccontextmanager
async def open_arm(
    bench: Bench, folder: Path, name: str, of: str, ask: Ask | None = None
) -> AsyncGenerator[Arm]:
    """An arm for one memory of a set; the one that summarises needs a model to ask."""
    if name == Trimmed.name:
        yield Trimmed()
    elif name == Mem0.name:
        own = folder / str(time.monotonic_ns())
        own.mkdir(parents=True)
        yield Mem0(bench, own)
    elif name == Summarised.name:
        assert ask is not None
        yield Summarised(ask, whole=of == WHOLE)
    else:
        async with bench.memory() as memory:
            yield Pagefile(bench, memory)


async def _graded(model: Model, question: Question, arm: Arm, messages: Sequence[Message]) -> Answer:
    began = time.monotonic()
    said, tokens = await anyio.to_thread.run_sync(model.answer, messages, _ANSWER_TOKENS)
    asked = question.asked
    return Answer(
        question.set,
        asked.id,
        asked.kind,
        arm.name,
        said,
        matches(said, question.answers),
        exact(said, question.answers),
        round(f1(said, question.answers), 4),
        tokens,
        round(time.monotonic() - began, 1),
        model.name,
        holds(messages, question),
        revision(),
    )


def holds(messages: Sequence[Message], question: Question) -> bool:
    """Whether a prompt says a right answer in its words, apart from the question itself."""
    said = "\n".join(str(message.get("content") or "") for message in messages)
    return matches(said.replace(question.asked.text, ""), question.answers)


def read(path: Path = ANSWERS) -> list[Answer]:
    """The newest of each question, arm and model."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    answers = [Answer(**json.loads(line)) for line in lines]
    return list({(one.model, one.question, one.arm): one for one in answers}.values())


def judge(
    data: Path | None, url: str, name: str, *, tell: Callable[[str], None], path: Path = ANSWERS
) -> None:
    """Have the model judge its own answers where their words do not decide."""
    if data is None:
        raise NotFoundError("Name the folder of the sets with --data or $PAGEFILE_BENCH_DATA.")
    answers = [one for one in read(path) if one.model == name]
    questions = {
        question.asked.id: question
        for name_of_set in dict.fromkeys(one.set for one in answers)
        for interview in interviews(name_of_set, data)
        for question in interview.questions
    }
    with closing(Model(url, name)) as model:
        judging.judge(answers, questions, name, model.text, tell=tell)


# -- the report -------------------------------------------------------------------------------------------------------


def report(
    answers: Sequence[Answer],
    verdicts: Sequence[judging.Verdict] = (),
    labels: Mapping[tuple[str, str], bool] | None = None,
) -> Report:
    """Right answers, words in common, tokens and seconds of each arm, and how far Pagefile is ahead on the same questions."""
    rows: list[Row] = []
    judged = {(one.question, one.arm) for one in verdicts if one.right}
    for name in SETS:
        for arm in ARMS:
            mine = [one for one in answers if (one.set, one.arm) == (name, arm)]
            if mine:
                tokens, seconds = fmean(one.prompt_tokens for one in mine), fmean(one.seconds for one in mine)
                more = sum(not one.right and (one.question, one.arm) in judged for one in mine)
                note = f"of {len(mine)}, {sum(one.exact for one in mine)} to the word, {more} more by the judge, F1 {fmean(one.f1 for one in mine):.3f}, {tokens:.0f} tokens of a prompt, {seconds:.0f} s{_held(mine)}"
                rows.append(
                    Row(
                        f"{name}, {arm}",
                        sum(one.right for one in mine),
                        "right",
                        note=note + _made(mine) + _ahead(answers, name, arm),
                    )
                )
    if labels:
        words, both, right, count = judging.agreement(answers, verdicts, labels)
        note = f"of {count} by hand ({right} right); with the judge {both}"
        rows.append(Row("decided by words as a person does", words, "", note=note))
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


def _made(mine: Sequence[Answer]) -> str:
    """What else has to be known of the prompts: what of a long memory was summarised, and whose code made them."""
    one = mine[0]
    part = (
        f"; a summary of the last {SUMMARISED_TOKENS:,} tokens"
        if one.arm == Summarised.name and one.set != WHOLE
        else ""
    )
    commits = sorted({one.commit for one in mine if one.commit})
    return part + (f"; made at {', '.join(commits)}" if commits else "")


def _held(mine: Sequence[Answer]) -> str:
    """What the model made of what it was shown: a memory that shows nothing is another fault than a model that does not read."""
    known = [one for one in mine if one.held is not None]
    shown = [one for one in known if one.held]
    return (
        f"; {len(shown)} of {len(known)} prompts say it, {sum(one.right for one in shown)} of them answered"
        if known
        else ""
    )


def _ahead(answers: Sequence[Answer], name: str, arm: str) -> str:
    """How far Pagefile is ahead, with 95 % intervals over the questions that both answered: in right answers, and in F1."""
    if arm == Pagefile.name:
        return ""
    graded = {(one.question, one.arm): one for one in answers if one.set == name}
    pairs = [
        (graded[question, Pagefile.name], theirs)
        for (question, other), theirs in graded.items()
        if other == arm and (question, Pagefile.name) in graded
    ]
    if len(pairs) < _FEWEST:
        return f"; too few questions for an interval ({len(pairs)})" if pairs else ""
    right = paired_interval([ours.right - theirs.right for ours, theirs in pairs])
    common = paired_interval([ours.f1 - theirs.f1 for ours, theirs in pairs])
    return f"; Pagefile {_signed(right)} right, {_signed(common)} F1 ({len(pairs)} questions)"


def _signed(interval: tuple[float, float, float]) -> str:
    low, mean, high = interval
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def paired_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """The mean, between the bounds of a 95 % bootstrap interval."""
    chance, count = random.Random(0), len(differences)
    means = sorted(fmean(chance.choices(differences, k=count)) for _ in range(_DRAWS))
    return means[_DRAWS // 40], fmean(differences), means[-_DRAWS // 40]
