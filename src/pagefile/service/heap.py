"""How often a process that only serves looks for garbage.

What is loaded at the start stays for good, and a request leaves next to nothing behind that counting references does not
find. Python's defaults walk through all of it every few dozen windows.
"""

import gc

#: So many new objects, and so many rounds over them, before older ones are looked at.
_THRESHOLDS = (50_000, 20, 100)


def settle_heap() -> None:
    """Leave what is there alone from now on, and look at what is new less often. For a process that is all the service's."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
