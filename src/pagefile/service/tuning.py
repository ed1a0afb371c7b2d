"""Interpreter tuning for a process that only serves."""

import gc
import sys

#: Garbage collection thresholds. A fifth of these made windows 5 % slower, and the process hardly smaller
#: under a steady load.
_THRESHOLDS = (50_000, 20, 100)
#: How long a computing thread may keep others waiting.
_SWITCH_S = 0.0005


def tune_for_serving() -> None:
    """Collect garbage less often, and switch threads sooner. Only for a process that runs nothing but the service.

    Everything loaded at startup lives forever, and requests leave next to nothing that reference counting does not free;
    Python's defaults traverse all of it every few dozen windows.

    While a thread extracts a summary or segments words, a request waits to be scheduled whenever it returns from the network
    or the disk, a dozen times in all. At Python's default 5 ms each, one turn in a hundred took over 50 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)
