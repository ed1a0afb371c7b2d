"""How often the file may be rewritten after erasures: writers wait meanwhile, and some erase again and again."""

from collections.abc import Callable
from time import monotonic

#: The share of the time in which the file is rewritten in the long run, and for how long at once.
SHARE = 0.02
BURST_S = 0.5


class RewriteBudget:
    """Seconds that rewriting may take."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left_s, self._known_at = BURST_S, clock()

    def wait_s(self) -> float:
        """How long until the file may be rewritten: a large one more often than a small one."""
        now = self._clock()
        self._left_s = min(BURST_S, self._left_s + SHARE * (now - self._known_at))
        self._known_at = now
        return max(0.0, -self._left_s / SHARE)

    def spend(self, rewrite: Callable[[], None]) -> None:
        """Rewrite it, and note how long that took."""
        began = self._clock()
        try:
            rewrite()
        finally:
            self.wait_s()
            self._left_s -= self._clock() - began
