"""What it costs to archive a megabyte, beside counting its tokens and compressing it, which any archive has to do."""

import time
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.bulk import KINDS
from benchmarks.corpus import url_of
from benchmarks.report import Limit, Row
from pagefile.engine import Memory
from pagefile.records import Scope, Step
from pagefile.settings import Settings
from pagefile.text.tokens import TokenCounter
from pagefile.tiers.archive import Archive

LIMIT = Limit("at most", 3.0)
BYTES = 1_000_000
_LEVEL = 6
_SCOPE = Scope(user="bench", conversation="chat")


async def archiving(folder: Path, counter: TokenCounter, *, rounds: int) -> list[Row]:
    """A row for every kind of text: the result is kept, durably, with everything a page has."""
    rows: list[Row] = []
    async with Memory.open(
        url_of(folder / "archiving.db"), settings=Settings(recall="never", indexing="manual")
    ) as memory:
        for kind in KINDS:
            ours, counted, compressed = await _measured(memory, counter, kind, rounds)
            base = counted + compressed
            note = f"{counted * 1e3:,.0f} ms to count its tokens + {compressed * 1e3:,.0f} ms to compress it"
            row = Row(f"archive 1 MB of {kind}", ours * 1e3, "ms", ours / base, note=note)
            rows.append(Row.judged(row, LIMIT))
    return rows


def megabyte(kind: str, seed: int) -> str:
    """A text of about a million bytes in UTF-8."""
    make = KINDS[kind]
    sample = make(10_000, seed)
    return make(BYTES * len(sample) // len(sample.encode()), seed)


async def _measured(
    memory: Memory, counter: TokenCounter, kind: str, rounds: int
) -> tuple[float, float, float]:
    """Seconds to archive, to count and to compress, medians of rounds that alternate; the first round is not measured."""
    taken: list[tuple[float, float, float]] = []
    for number in range(rounds + 1):
        text = megabyte(kind, number)  # another text every time: an equal one would be stored already

        async def count(text: str = text) -> object:
            return counter.count(text)

        async def compress(text: str = text) -> object:
            return zlib.compress(text.encode(), _LEVEL)

        async def keep(text: str = text, turn: str = f"{kind} {number}") -> object:
            archive, step = memory.engine.tier(Archive), Step("search", {"query": kind}, text, "call")
            return await archive.absorb_step(_SCOPE, step, step, turn, partial(archive.claim, _SCOPE))

        taken.append((await _seconds(keep), await _seconds(count), await _seconds(compress)))
    ours, counted, compressed = zip(*taken[1:], strict=True)
    return median(ours), median(counted), median(compressed)


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began
