"""How much memory windows take, however long the conversation is. Each size is measured in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import anyio

from benchmarks import ROOT
from benchmarks.corpus import LONG, Author, fill, url_of
from benchmarks.report import Limit, Row
from benchmarks.windows import QUESTION
from pagefile.engine import Memory
from pagefile.records import Scope
from pagefile.settings import Settings
from pagefile.text.tokens import TokenCounter

try:
    import resource
except ImportError:  # Windows
    resource = None

LIMIT = Limit("at most", 1.5)
_SCOPE = Scope(user="bench", conversation="chat")
_CALLS = 50
#: The texts repeat after this many turns: memory does not depend on what is said, and counting takes time.
_DISTINCT = 500

Work = Literal["windows only", "everything"]
#: Nothing but windows of turns, and what Memory does when nothing is set.
_SETTINGS: dict[Work, Settings] = {
    "windows only": Settings(recall="never", indexing="manual", checkpoints="manual"),
    "everything": Settings(),
}


def peak_memory(
    folder: Path, counter: TokenCounter, sizes: Sequence[int], *, everything: int | None
) -> list[Row]:
    """A row a size, of which the largest must stay near the smallest; and one with all defaults, if a size is given."""
    for size in sizes:
        turns = Author(counter).turns(_SCOPE, size, LONG, distinct=_DISTINCT)
        anyio.run(fill, _place(folder, size), turns)
    peaks = {size: _measured(_place(folder, size), "windows only") for size in sizes}
    rows = [
        Row(
            f"peak memory, {size:,} turns",
            peak,
            "MB",
            peak / peaks[sizes[0]],
            note=f"{_CALLS} windows in a process of its own, beside {sizes[0]:,} turns",
        )
        for size, peak in peaks.items()
    ]
    rows[-1] = Row.judged(rows[-1], LIMIT)
    if everything is not None:
        peak = _measured(_place(folder, everything), "everything")
        note = f"{everything:,} turns with their word index and summaries, beside the same without"
        rows.append(
            Row("the same with recall and checkpoints", peak, "MB", peak / peaks[everything], note=note)
        )
    return rows


def _place(folder: Path, size: int) -> Path:
    return folder / f"peak-{size}.db"


def _measured(database: Path, work: Work) -> float:
    """Megabytes that a fresh process held at most; this one has seen too much to say."""
    command = [sys.executable, "-m", "benchmarks.peak", str(database), work]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603 - our own interpreter
    return float(json.loads(done.stdout))


async def _windows(database: Path, work: Work) -> None:
    async with Memory.open(url_of(database), settings=_SETTINGS[work]) as memory:
        chat = memory.conversation("chat", user_id="bench")
        for _ in range(_CALLS):
            await chat.context(QUESTION)


def peak_mb() -> float:
    """The most memory this process ever held, as the kernel counts it; 0 where it does not tell."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    if resource is None:
        return 0.0
    # Unlike VmHWM this may include what the parent held when it made this process. macOS counts bytes.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    anyio.run(_windows, Path(sys.argv[1]), cast("Work", sys.argv[2]))
    print(peak_mb())
