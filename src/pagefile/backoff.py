"""How long to pause: after failures, longer each time up to a limit; between looks at everything, as long as they cost."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

#: Looks take a twentieth of the time at most.
_PAUSE_PER_LOOK = 20.0


@dataclass(kw_only=True, slots=True)
class Backoff:
    """The pause after a failure. It doubles with each failed attempt and ends with the first success."""

    first_s: float = 1.0
    longest_s: float = 60.0
    now: Callable[[], float] = monotonic
    _rest_s: float = field(default=0.0, init=False)
    _until: float = field(default=0.0, init=False)

    @property
    def left_s(self) -> float:
        """Seconds until the next attempt; 0 if it may start now."""
        return max(0.0, self._until - self.now())

    @property
    def failing(self) -> bool:
        """Whether there was no success since the last failure."""
        return bool(self._rest_s)

    def failed(self) -> None:
        """An attempt failed. If several fail during one pause, only the first counts."""
        if not self.left_s:
            self.lengthen()

    def lengthen(self) -> None:
        """Pause for twice as long as last time."""
        self._rest_s = min(self.longest_s, 2 * self._rest_s or self.first_s)
        self.repeat()

    def repeat(self) -> None:
        """Pause for as long as last time, while an attempt is under way."""
        self._until = self.now() + self._rest_s

    def succeeded(self) -> None:
        """An attempt succeeded: the next failure starts with the shortest pause again."""
        self._rest_s = self._until = 0.0


@dataclass(slots=True)
class LookPause:
    """The pause between looks at all conversations, of which there may be a million.

    What counts is the quickest of the last three: a machine that is busy with other things makes a look take longer, and a pause of
    twenty times that would hide for half a minute what goes on meanwhile.
    """

    least_s: float
    _taken_s: deque[float] = field(default_factory=lambda: deque([0.0, 0.0], maxlen=3), init=False)

    def after(self, taken_s: float) -> float:
        """Seconds to pause after a look that took so long."""
        self._taken_s.append(taken_s)
        return max(self.least_s, _PAUSE_PER_LOOK * min(self._taken_s))
