"""How long something that failed is left alone: twice as long each time, up to a limit."""

from collections.abc import Callable
from time import monotonic


class Backoff:
    """The rest after a failure. It doubles with each failed trial and ends with the first success."""

    def __init__(
        self, *, first_s: float = 1.0, longest_s: float = 60.0, now: Callable[[], float] = monotonic
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._now = now
        self._rest_s = 0.0
        self._until = 0.0

    @property
    def left_s(self) -> float:
        """How long until the next trial; 0 when it may begin now."""
        return max(0.0, self._until - self._now())

    @property
    def failing(self) -> bool:
        """Whether nothing worked since the last failure."""
        return bool(self._rest_s)

    def failed(self) -> None:
        """A trial failed. Of several that fail during one rest, the first one counts."""
        if not self.left_s:
            self.lengthen()

    def lengthen(self) -> None:
        """Rest twice as long as the last time."""
        self._rest_s = min(self._longest_s, 2 * self._rest_s or self._first_s)
        self.repeat()

    def repeat(self) -> None:
        """Rest as long as the last time, while a trial is under way."""
        self._until = self._now() + self._rest_s

    def succeeded(self) -> None:
        """Something worked: the next failure begins with the first rest again."""
        self._rest_s = self._until = 0.0
