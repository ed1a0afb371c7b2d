"""`pagefile bench inspector`: a page of a very long conversation beside the same page of a short one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.timing import side_by_side
from pagefile.engine import Memory
from pagefile.inspector import bill, timeline
from pagefile.inspector.frame import page
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.site import Gather, Show
from pagefile.settings import EmbedderSettings, Settings

SHORT = 100
#: A page of the long conversation beside one of the short. The chart has no limit: it adds up every turn there is.
LIMIT = Limit("at most", 3.0)
_WINDOWS = 20


@dataclass(frozen=True, slots=True)
class _Effort:
    turns: int
    rounds: int
    calls: int


_FULL = _Effort(turns=10_000, rounds=5, calls=7)
_QUICK = _Effort(turns=2_000, rounds=2, calls=3)


def run(*, quick: bool = False, progress: Callable[[str], None] = print) -> Report:
    """Measure; everything is written to a folder that is gone afterwards."""
    began = time.perf_counter()
    effort = _QUICK if quick else _FULL
    with TemporaryDirectory(prefix="pagefile-bench-") as folder:
        rows = anyio.run(_measured, Path(folder), effort, progress)
    return Report(rows, machine_facts("o200k_base"), quick, time.perf_counter() - began)


async def _measured(folder: Path, effort: _Effort, progress: Callable[[str], None]) -> list[Row]:
    # What is measured is reading: how safely it was written, and what recall would make of it, does not matter.
    settings = Settings(
        url=f"sqlite:///{folder / 'inspector.db'}",
        synchronous="normal",
        checkpoints="manual",
        embedder=EmbedderSettings(name="none"),
    )
    async with Memory.open(settings=settings) as memory:
        for turns in (SHORT, effort.turns):
            progress(f"Writing {turns:,} turns")
            await _written(memory, turns)
        rows: list[Row] = []
        views: tuple[tuple[str, Gather, Show, bool], ...] = (
            ("timeline, the end", timeline.gather, timeline.show, False),
            ("timeline, the middle", timeline.gather, timeline.show, True),
            ("calls and their chart", bill.gather_calls, bill.show_calls, False),
        )
        for name, gather, show, middle in views:
            progress(f"Reading: {name}")
            sides = [
                partial(_read, memory, gather, show, turns, middle=middle) for turns in (effort.turns, SHORT)
            ]
            long, short = await side_by_side(*sides, rounds=effort.rounds, calls=effort.calls)
            note = f"to {SHORT} turns ({short * 1e3:.1f} ms); {effort.turns:,} turns"
            row = Row(name, long * 1e3, "ms", long / short, note=note)
            rows.append(Row.judged(row, LIMIT) if gather is timeline.gather else row)
        return rows


async def _written(memory: Memory, turns: int) -> None:
    chat = memory.conversation(f"{turns} turns", user_id="bench")
    for number in range(turns):
        pressure = f"{90 + number % 70}/{60 + number % 40}"
        await chat.record(f"第 {number} 次测量：血压 {pressure}，怎么办？", "继续观察，注意饮食和休息。")
        if number * 10 % turns == 0 and number:
            await chat.checkpoint(recent_turns=1)
        if number * _WINDOWS % turns == 0:
            await chat.context(f"第 {number} 次测量怎么样？")
    await memory.settle()


async def _read(memory: Memory, gather: Gather, show: Show, turns: int, *, middle: bool) -> str:
    values = {"after": str(turns // 2)} if middle else {}
    asked = PageRequest(conversation_id=f"{turns} turns", user_id="bench", values=values)
    reader = Reader(asked, datetime.now(UTC), path="/inspector/conversation")
    return page(show(await gather(memory, asked), reader), reader)
