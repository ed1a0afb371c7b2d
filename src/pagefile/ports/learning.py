"""Who reads lasting statements out of what users say."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Said:
    """A user's own words in one turn, without what memory, tools or frameworks wrote into them."""

    turn_id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement that may be worth keeping, and the words it rests on."""

    turn_id: str
    quote: str
    text: str
    category: str | None = None
    confidence: object = None
    subject: str | None = None
    attribute: str | None = None


class FactExtractor(ABC):
    """Finds what users say about themselves for good."""

    #: How long a conversation should have been quiet before it is read.
    quiet_s: float = 0.5

    @abstractmethod
    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        """What was stated, oldest first. May raise `ModelError`.

        Nothing in it is believed: each quote is looked up in the turn it names.
        """
