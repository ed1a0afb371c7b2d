"""How much memory windows take, however long the conversation is. Each size is measured in a process of its own."""

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from pagefile.bench.corpus import LONG, Author, fill, url_of
from pagefile.bench.report import Limit, Row
from pagefile.bench.windows import QUESTION
from pagefile.memory import Memory
from pagefile.records import Scope
from pagefile.settings import Settings
from pagefile.text.tokens import TokenCounter

_SCOPE = Scope(user="bench", conversation="chat")
LIMIT = Limit("at most", 1.5)
_CALLS = 50
#: The texts repeat after so many turns: memory does not depend on what is said, and counting takes time.
_DISTINCT = 500


async def peak_memory(folder: Path, counter: TokenCounter, sizes: Sequence[int]) -> list[Row]:
    """A row a size; the largest must stay near the smallest."""
    peaks = [await _measured(folder / f"peak-{size}.db", counter, size) for size in sizes]
    rows = [
        Row(
            f"peak memory, {size:,} turns", peak, "MB", peak / peaks[0], note=f"{_CALLS} windows in a process"
        )
        for size, peak in zip(sizes, peaks, strict=True)
    ]
    return [*rows[:-1], Row.judged(rows[-1], LIMIT)]


async def _measured(database: Path, counter: TokenCounter, size: int) -> float:
    await fill(database, Author(counter).turns(_SCOPE, size, LONG, distinct=_DISTINCT))
    command = [sys.executable, "-I", "-m", "pagefile.bench.peak", str(database)]
    # A process that was just made has no peak of anything else in it.
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: ASYNC221, S603 - nothing else runs
    return float(json.loads(done.stdout))


async def _windows(database: Path) -> None:
    async with Memory.open(url_of(database), settings=Settings(recall="never")) as memory:
        chat = memory.conversation("chat", user_id="bench")
        for _ in range(_CALLS):
            await chat.context(QUESTION)


def _peak_mb() -> float:
    """The most memory this process ever held, as the kernel counts it."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    # Elsewhere the number may include what the parent held when it made this process (macOS counts bytes).
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    anyio.run(_windows, Path(sys.argv[1]))
    print(_peak_mb())
