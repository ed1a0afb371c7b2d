"""A circuit breaker that only decides when to stop calling and when to try again: it never waits and has no clock."""

from collections.abc import Callable

from pagefile.backoff import Backoff


class Breaker:
    """Closed while calls succeed; open after a failure; half-open while one trial finds out whether calls succeed again.

    Every call asks for a pass and hands it back with its outcome. The outcome of a pass from before the last change of
    state is ignored: hundreds of calls that fail together are one failure, and a late answer neither opens nor
    closes anything. A trial that never reports delays the next one only as long as a failed one would.
    """

    def __init__(
        self, now: Callable[[], float], *, first_rest_s: float = 1.0, longest_rest_s: float = 30.0
    ) -> None:
        self._backoff = Backoff(first_s=first_rest_s, longest_s=longest_rest_s, now=now)
        self._pass = 0

    @property
    def rest_s(self) -> float:
        """Seconds until the next call may be made."""
        return self._backoff.left_s

    @property
    def failing(self) -> bool:
        """Whether no call has succeeded since the last failure."""
        return self._backoff.failing

    @property
    def resting(self) -> bool:
        """Whether a call would be rejected now."""
        return self._backoff.left_s > 0

    def enter(self) -> int | None:
        """A pass for one call, or None when it should not be made."""
        if self.resting:
            return None
        if self._backoff.failing:
            self._pass += 1
            self._backoff.repeat()
        return self._pass

    def succeeded(self, ticket: int) -> bool:
        """Report that a call succeeded; returns whether this ended an outage."""
        if not self.is_current(ticket) or not self._backoff.failing:
            return False
        self._backoff.succeeded()
        self._pass += 1
        return True

    def is_current(self, ticket: int) -> bool:
        """Whether the outcome of this pass counts: its failure begins a pause."""
        return ticket == self._pass

    def failed(self, ticket: int) -> bool:
        """Report that a call failed; returns whether this began an outage. Each failed trial doubles the pause, up to a limit."""
        if not self.is_current(ticket):
            return False
        began = not self._backoff.failing
        self._backoff.lengthen()
        self._pass += 1
        return began
