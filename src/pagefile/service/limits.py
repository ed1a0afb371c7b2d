"""Rate limiting: one token bucket per key, in this worker's memory.

Each worker counts separately, so N workers together allow N times as many requests.
"""

from collections.abc import Callable
from math import ceil
from time import monotonic


class RateLimit:
    """Allows each caller a number of requests per minute, in a burst or evenly spread."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        """A `per_minute` of 0 means no limit."""
        self._most = per_minute
        self._now = now
        #: By caller: the tokens left, and when they were counted.
        self._left: dict[str, tuple[float, float]] = {}

    def wait_s(self, caller: str) -> int:
        """Take a token and return 0, or return the whole seconds until the next request is allowed."""
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
