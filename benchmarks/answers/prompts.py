"""How many prompts of each arm say a right answer in their words, of every question: no model is needed for that, and none can copy what is not there."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import anyio

from benchmarks.answers.arms import Pagefile, Summarised
from benchmarks.answers.questions import SETS, interviews
from benchmarks.answers.run import ARMS, checked, holds, open_arm, paired_interval
from benchmarks.recall_vectors import OnDisk, Remembered
from benchmarks.report import Report, Row, machine_facts
from benchmarks.window_parts import COUNT, Bench
from pagefile.models.embedders import MemoryEncoder
from pagefile.text.tokens import open_counter

#: A summary is written by a model.
WITHOUT_A_MODEL = tuple(arm for arm in ARMS if arm != Summarised.name)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that was made."""

    set: str
    question: str
    arm: str
    held: bool
    tokens: int


def measure(
    data: Path | None, *, sets: Sequence[str], arms: Sequence[str], cache: Path | None, tell: Callable[[str], None]
) -> list[Prompt]:  # fmt: skip
    """Make the prompts of all questions of the sets."""
    folder_of_sets = checked(data, sets, arms or WITHOUT_A_MODEL, WITHOUT_A_MODEL)
    maker = MemoryEncoder()
    vectors = Remembered(maker if cache is None else OnDisk(maker, cache))
    with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
        bench = Bench(vectors, tell)
        return anyio.run(
            _made, bench, folder_of_sets, Path(folder), sets or SETS, arms or WITHOUT_A_MODEL, tell
        )


async def _made(
    bench: Bench,
    data: Path,
    folder: Path,
    sets: Sequence[str],
    names: Sequence[str],
    tell: Callable[[str], None],
) -> list[Prompt]:
    made: list[Prompt] = []
    for name in sets:
        for interview in interviews(name, data):
            async with AsyncExitStack() as stack:
                for arm_name in names:
                    arm = await stack.enter_async_context(open_arm(bench, folder, arm_name, name))
                    await arm.take(interview.corpus)
                    for question in interview.questions:
                        messages = await arm.prompt(question)
                        tokens = sum(COUNT(str(one.get("content") or "")) for one in messages)
                        held = holds(messages, question)
                        made.append(Prompt(name, question.asked.id, arm_name, held, tokens))
            tell(f"{name}: {len(interview.questions)} questions about {interview.corpus.user}")
    return made


def report(made: Sequence[Prompt]) -> Report:
    """The prompts of each arm that say a right answer, and how far Pagefile's are ahead on the same questions."""
    rows: list[Row] = []
    for name in SETS:
        for arm in WITHOUT_A_MODEL:
            mine = [one for one in made if (one.set, one.arm) == (name, arm)]
            if mine:
                note = f"of {len(mine)}, {fmean(one.tokens for one in mine):.0f} tokens"
                held = sum(one.held for one in mine)
                rows.append(Row(f"{name}, {arm}", held, "say it", note=note + _ahead(made, mine, name, arm)))
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


def _ahead(made: Sequence[Prompt], theirs: Sequence[Prompt], name: str, arm: str) -> str:
    ours = {one.question: one.held for one in made if (one.set, one.arm) == (name, Pagefile.name)}
    pairs = [ours[one.question] - one.held for one in theirs if one.question in ours]
    if arm == Pagefile.name or not pairs:
        return ""
    low, mean, high = paired_interval(pairs)
    return f"; Pagefile {mean:+.3f} ({low:+.3f} to {high:+.3f})"
