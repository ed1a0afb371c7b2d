"""The kinds of memory, and what it takes to write one of your own: subclass `Tier` and give it to `Memory.open(tiers=[…])`."""

from pagefile.tiers.base import Backlog, Occasion, Pace, RetryLater, Tier
from pagefile.window.candidates import Candidate, Form

__all__ = ["Backlog", "Candidate", "Form", "Occasion", "Pace", "RetryLater", "Tier"]
