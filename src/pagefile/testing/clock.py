"""A clock that a test sets."""

from datetime import UTC, datetime, timedelta

from pagefile.records import utc

_START = datetime(2026, 2, 9, 8, 0, tzinfo=UTC)


class FakeClock:
    """Stands still until it is told otherwise; may go backwards."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        """The time it was set to."""
        return self._now

    def set(self, moment: datetime) -> None:
        """Jump to a moment."""
        self._now = utc(moment)

    def advance(self, seconds: float) -> None:
        """Move on, or back when negative."""
        self._now += timedelta(seconds=seconds)
