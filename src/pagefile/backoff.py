"""Exponential backoff with an upper limit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic


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
