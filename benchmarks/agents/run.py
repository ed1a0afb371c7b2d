"""`pagefile bench agents`: tasks of eight or nine tool calls and two questions, with a real model and a window of 2,000 tokens.

A run of a task is kept as a line, so that the command goes on where it stopped.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import anyio

from benchmarks.agents.loops import AGENTS, Model, Pagefile, ScriptedCalls, agent
from benchmarks.agents.world import Task, World, is_right, tasks
from benchmarks.answers.run import paired_interval
from benchmarks.report import Report, Row, machine_facts
from pagefile.text.tokens import open_counter

RUNS = Path(__file__).parent / "runs.jsonl"


@dataclass(frozen=True, slots=True)
class Run:
    """A line of the file of runs."""

    task: str
    agent: str
    answers: tuple[str, ...]
    #: How many of the answers are right; a task is done when all are.
    right: int
    calls: int
    repeated: int
    requests: int
    #: As the model's server counted them, over all requests.
    prompt_tokens: int
    seconds: float
    model: str

    @property
    def done(self) -> bool:
        return self.right == len(self.answers)


def measured_name(name: str, *, scripted: bool) -> str:
    """What runs are kept under: those whose calls a script made are not to be compared with the others."""
    return f"{name}, calls scripted" if scripted else name


def measure(
    url: str,
    name: str,
    *,
    agents: Sequence[str],
    most: int,
    tell: Callable[[str], None],
    scripted: bool = False,
    path: Path = RUNS,
) -> None:
    """Run up to `most` tasks that have no run of this model and agent yet."""
    kept = measured_name(name, scripted=scripted)
    known = {(one.task, one.agent) for one in read(path) if one.model == kept}
    waiting = [(one, who) for one in tasks() for who in agents or AGENTS if (one.name, who) not in known]
    for task, who in waiting[:most]:
        model = ScriptedCalls(url, name, task) if scripted else Model(url, name)
        one = anyio.run(_run, task, who, model, kept)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        tell(
            f"{one.task} {one.agent}: {one.right} of {len(one.answers)}, {one.calls} calls, {one.seconds:.0f} s"
        )


async def _run(task: Task, who: str, model: Model, name: str) -> Run:
    world, began = World(task), time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
            async with agent(who, model, world, folder) as one:
                for ask in task.asks:
                    await one.say(ask["say"])
                answers = tuple([await one.say(question["text"]) for question in task.questions])
    finally:
        await model.close()
    right = sum(is_right(question, said) for question, said in zip(task.questions, answers, strict=True))
    seconds = round(time.monotonic() - began, 1)
    return Run(
        task.name, who, answers, right, world.calls, world.repeated,
        model.requests, model.prompt_tokens, seconds, name,
    )  # fmt: skip


def read(path: Path = RUNS) -> list[Run]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    kept: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for one in kept:
        one["answers"] = tuple(one["answers"])
    return [Run(**one) for one in kept]


def report(runs: Sequence[Run]) -> Report:
    """Tasks done, answers, calls and tokens of each agent, and how far Pagefile is ahead on the same tasks."""
    rows: list[Row] = []
    for who in AGENTS:
        mine = [one for one in runs if one.agent == who]
        if mine:
            tokens = sum(one.prompt_tokens for one in mine) / max(1, sum(one.requests for one in mine))
            note = (
                f"of {len(mine)}; {sum(one.right for one in mine)} of {sum(len(one.answers) for one in mine)} answers, "
                f"{fmean(one.calls for one in mine):.1f} calls ({sum(one.repeated for one in mine)} repeated in all), "
                f"{tokens:.0f} tokens of a prompt, {fmean(one.seconds for one in mine):.0f} s a task"
            )
            rows.append(
                Row(f"tasks done, {who}", sum(one.done for one in mine), "", note=note + _ahead(runs, who))
            )
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


def _ahead(runs: Sequence[Run], who: str) -> str:
    if who == Pagefile.name:
        return ""
    shares = {(one.task, one.agent): one.right / len(one.answers) for one in runs}
    pairs = [
        shares[task, Pagefile.name] - share
        for (task, other), share in shares.items()
        if other == who and (task, Pagefile.name) in shares
    ]
    if not pairs:
        return ""
    low, mean, high = paired_interval(pairs)
    return f"; Pagefile {mean:+.2f} of the answers ({low:+.2f} to {high:+.2f}, {len(pairs)} tasks)"
