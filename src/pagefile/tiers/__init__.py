"""The kinds of memory. To write your own, subclass `Tier` and pass it to `Memory.open(tiers=[…])`."""

from pagefile.tiers.base import Backlog, Occasion, Pace, RetryLater, Tier
from pagefile.window.candidates import Candidate, Form

__all__ = ["Backlog", "Candidate", "Form", "Occasion", "Pace", "RetryLater", "Tier"]
