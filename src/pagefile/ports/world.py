"""What is not a store: the clock, measurements, models."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pagefile.records import JsonValue


class Clock(Protocol):
    """Tells the time, in UTC."""

    def now(self) -> datetime: ...


class Meter(ABC):
    """Takes measurements; must be quick, and never raises."""

    @abstractmethod
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Something happened."""

    @abstractmethod
    def observe(self, name: str, value: float, **labels: str) -> None:
        """Something had this size or took this long."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summary is to be made of: the summary so far, and what was said since."""

    previous: str | None
    #: Speaker ("user", "assistant") and text, oldest first.
    said: tuple[tuple[str, str], ...]
    max_chars: int


class Summarizer(ABC):
    """Condenses what was said."""

    @abstractmethod
    async def summarize(self, request: SummaryRequest) -> str:
        """One text that speaks for `previous` and `said` together. May raise `ModelError`."""

    @property
    def max_input_chars(self) -> int:
        """How much it reads at once; more is given in parts, each with the summary so far."""
        return 24_000


class ChatModel(ABC):
    """A model that answers messages with text."""

    @abstractmethod
    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        """The answer. Raises `ModelUnavailableError` when it cannot be reached, `ModelOutputError` for no answer."""
