"""Decides when to leave something that fails alone, and when to try it again: no waiting, no clock of its own."""

from collections.abc import Callable
from typing import Literal

from pagefile.backoff import Backoff


class Breaker:
    """Closed while things go well; open after a failure; half-open while one trial finds out whether they go well again.

    Every call asks for a pass and hands it back with its outcome. The outcome of a pass from before the last change of
    state counts for nothing: hundreds of calls that fail together are one failure, and a late answer neither opens nor
    closes anything. A trial that never reports holds up the next one only as long as a failed one would.
    """

    def __init__(
        self, now: Callable[[], float], *, first_rest_s: float = 1.0, longest_rest_s: float = 30.0
    ) -> None:
        self._backoff = Backoff(first_s=first_rest_s, longest_s=longest_rest_s, now=now)
        self._pass = 0
        self._trying = False

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        if not self._backoff.failing:
            return "closed"
        return "half-open" if self._trying else "open"

    @property
    def resting(self) -> bool:
        """Whether a call would be turned away now."""
        return self._backoff.left_s > 0

    def enter(self) -> int | None:
        """A pass for one call, or None when it should not be made."""
        if self.resting:
            return None
        if self._backoff.failing:
            self._trying = True
            self._pass += 1
            self._backoff.repeat()
        return self._pass

    def succeeded(self, ticket: int) -> bool:
        """Report that a call went well; tells whether this ended an outage."""
        if ticket != self._pass or not self._backoff.failing:
            return False
        self._backoff.succeeded()
        self._trying = False
        self._pass += 1
        return True

    def failed(self, ticket: int) -> bool:
        """Report that a call failed; tells whether this began an outage. Each failed trial doubles the rest, up to a limit."""
        if ticket != self._pass:
            return False
        began = not self._backoff.failing
        self._backoff.lengthen()
        self._trying = False
        self._pass += 1
        return began
