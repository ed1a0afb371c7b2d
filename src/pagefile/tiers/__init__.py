"""The kinds of memory. To write your own, subclass `Tier` and pass it to `Memory.open(tiers=[…])`."""

from pagefile.tiers.base import Backlog, Pace, RetryLater, Tier, WindowRequest
from pagefile.window.candidates import Candidate, Form

__all__ = ["Backlog", "Candidate", "Form", "Pace", "RetryLater", "Tier", "WindowRequest"]
