"""What `import pagefile` costs, beside an interpreter that does nothing."""

import subprocess
import sys
import time

from benchmarks.report import Row


def importing(times: int) -> Row:
    """Milliseconds of a fresh interpreter that imports Pagefile, the best of runs that alternate."""
    nothing: list[float] = []
    ours: list[float] = []
    for _ in range(times):
        nothing.append(_seconds("pass"))
        ours.append(_seconds("import pagefile"))
    bare_s, import_s = min(nothing), min(ours)
    note = f"{bare_s * 1e3:,.0f} ms for `python -c pass`"
    return Row("import pagefile, fresh interpreter", import_s * 1e3, "ms", import_s / bare_s, note=note)


def _seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", code], check=True)  # noqa: S603 - our own interpreter, our own words
    return time.perf_counter() - began
