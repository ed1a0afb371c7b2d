"""Measures two things side by side, so that a noisy machine slows both.

Rounds are short and alternate between the sides. A round counts as the median of its calls, a side as its best round:
what else the machine does can only make a round slower.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

Call = Callable[[], Awaitable[object]]
Clock = Callable[[], float]


async def side_by_side(
    *sides: Call, rounds: int, calls: int, clock: Clock | None = None
) -> tuple[float, ...]:
    """Seconds of one call of each side. Every side is called once before, unmeasured.

    With the clock `time.process_time` they are those that this process computes, in all of its threads: what else the
    machine does counts for little then.
    """
    best = [float("inf")] * len(sides)
    for side in sides:
        await side()
    for _ in range(rounds):
        for number, side in enumerate(sides):
            best[number] = min(best[number], await _round(side, calls, clock or time.perf_counter))
    return tuple(best)


async def _round(side: Call, calls: int, clock: Clock) -> float:
    taken: list[float] = []
    for _ in range(calls):
        began = clock()
        await side()
        taken.append(clock() - began)
    return median(taken)


@contextmanager
def on_one_core() -> Generator[None]:
    """Keeps this thread and those it starts on one core, where the system lets us.

    Waking a thread takes 10 µs on the same core and 50 µs on one that fell asleep. Which of the two it is, the
    scheduler decides again every few seconds, and not for both sides alike.
    """
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def fsync_seconds(folder: Path, times: int) -> float:
    """What it takes the disk under this folder to keep a page that was appended, median."""
    taken: list[float] = []
    with (folder / "fsync.probe").open("wb", buffering=0) as file:
        for _ in range(times):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return median(taken)
