"""`pagefile bench core`: what the engine promises about speed, each promise beside something measured in the same run."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks import windows, writes
from benchmarks.import_time import importing
from benchmarks.peak import peak_memory
from benchmarks.report import Report, Row, machine_facts
from benchmarks.timing import on_one_core
from pagefile.errors import StoreUnavailableError
from pagefile.text.tokens import open_counter

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How much is measured."""

    imports: int
    windows: windows.Effort
    writing: writes.Effort
    sizes: tuple[int, ...]
    #: How many turns everything is measured with at once, None where that would take too long.
    everything: int | None


_FULL = _Effort(
    imports=7,
    windows=windows.Effort(turns=10_000, rounds=60, calls=5),
    writing=writes.Effort(rounds=200, calls=10, group_rounds=9, calls_each=10),
    sizes=(1_000, 10_000, 100_000),
    everything=10_000,
)
_QUICK = _Effort(
    imports=2,
    windows=windows.Effort(turns=2_000, rounds=12, calls=5),
    writing=writes.Effort(rounds=100, calls=10, group_rounds=3, calls_each=3),
    sizes=(1_000, 20_000),
    everything=None,
)


def run(quick: bool = False, progress: Progress | None = None) -> Report:
    """Measure on the disk of the current directory; whatever is written there is removed at the end."""
    began = time.perf_counter()
    effort = _QUICK if quick else _FULL
    with _folder() as folder:
        rows = _measure(Path(folder), effort, progress or _noop)
    return Report(rows, machine_facts(open_counter().name), quick, time.perf_counter() - began)


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=".pagefile-bench-", dir=Path.cwd())
    except OSError as error:
        raise StoreUnavailableError(
            f"The current directory cannot be written ({error.strerror}): run the benchmark where a database may be made."
        ) from error


def _measure(folder: Path, effort: _Effort, tell: Progress) -> Sequence[Row]:
    """Every part has an event loop of its own: no thread of one is left over in the next."""
    counter = open_counter()
    tell("importing")
    rows = [importing(effort.imports)]
    tell("building windows, then recalling")
    rows += anyio.run(windows.windows, folder, counter, effort.windows)
    for synchronous in ("full", "normal"):
        tell(f"recording, synchronous={synchronous.upper()}")
        with on_one_core():
            rows.append(anyio.run(writes.beside_bare, folder, counter, synchronous, effort.writing))
    tell(f"recording with {writes.WRITERS} writers")
    rows += anyio.run(writes.many_writers, folder, counter, effort.writing)
    tell(f"holding memory flat up to {effort.sizes[-1]:,} turns")
    return rows + peak_memory(folder, counter, effort.sizes, everything=effort.everything)


def _noop(_: str) -> None:
    return
