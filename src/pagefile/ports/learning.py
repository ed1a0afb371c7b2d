"""Extracting lasting statements from what users say."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Said:
    """A user's own words in one turn, without text added by memory, tools or frameworks."""

    turn_id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement that may be worth keeping, and the quote that supports it."""

    turn_id: str
    quote: str
    text: str
    category: str | None = None
    confidence: object = None
    subject: str | None = None
    attribute: str | None = None


class FactExtractor(ABC):
    """Finds lasting statements that users make about themselves."""

    #: How long a conversation should be idle before it is read.
    quiet_s: float = 0.5

    @abstractmethod
    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        """The statements found, oldest first. May raise `ModelError`.

        The result is not trusted: each quote is looked up in the turn it names.
        """
