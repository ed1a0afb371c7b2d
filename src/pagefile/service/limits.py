"""How many requests a key may make: a token bucket for each, in the memory of this worker.

Several workers each count for themselves, so that together they let through as many times more.
"""

from collections.abc import Callable
from math import ceil
from time import monotonic


class RateLimit:
    """So many requests a minute for each caller, all at once or one after the other."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        """`per_minute` 0 is no limit."""
        self._most = per_minute
        self._now = now
        #: By caller: what is left, and when that was.
        self._left: dict[str, tuple[float, float]] = {}

    def wait_s(self, caller: str) -> int:
        """0: go on, and one less is left; else the whole seconds until the next request is welcome."""
        if not self._most:
            return 0
        now = self._now()
        left, then = self._left.get(caller, (float(self._most), now))
        left = min(float(self._most), left + (now - then) * self._most / 60)
        if left < 1:
            self._left[caller] = left, now
            return max(1, ceil((1 - left) * 60 / self._most))
        self._left[caller] = left - 1, now
        return 0
