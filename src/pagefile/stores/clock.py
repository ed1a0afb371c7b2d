"""The real clock; tests bring their own."""

from datetime import UTC, datetime


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """The present moment in UTC."""
        return datetime.now(UTC)
