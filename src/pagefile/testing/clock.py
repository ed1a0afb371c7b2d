"""A clock controlled by the test."""

from datetime import UTC, datetime, timedelta

from pagefile.records import utc

_START = datetime(2026, 2, 9, 8, 0, tzinfo=UTC)


class FakeClock:
    """Does not move until told to; may go backwards."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        """The time it was set to."""
        return self._now

    def set(self, moment: datetime) -> None:
        """Jump to a point in time."""
        self._now = utc(moment)

    def advance(self, seconds: float) -> None:
        """Move forward, or back if negative."""
        self._now += timedelta(seconds=seconds)
