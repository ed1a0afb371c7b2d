"""What is not a store: the clock, measurements, models."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pagefile.ports.derived import Maker, Vector
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


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants a tool to do."""

    id: str
    name: str
    #: As the model wrote them: JSON, if it did well.
    arguments: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of an answer."""

    text: str = ""
    #: Each of them whole; they come with the last piece.
    calls: tuple[ToolCall, ...] = ()
    #: Why the answer ends with this piece ("stop", "length", "tool_calls" …); None for all but the last.
    finish: str | None = None


#: The longest answer of a model that cannot stream, in tokens.
UNSTREAMED_TOKENS = 4096


class ChatModel(ABC):
    """A model that answers messages with text."""

    @abstractmethod
    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        """The answer. Raises `ModelUnavailableError` when it cannot be reached, `ModelOutputError` for no answer."""

    async def stream(
        self, messages: Sequence[Mapping[str, JsonValue]], *, tools: Sequence[Mapping[str, JsonValue]] = ()
    ) -> AsyncGenerator[Spoken]:
        """The answer piece by piece; the last one says why it ends. Whoever stops before that must close the generator.

        `tools` are JSON schemas with `name`, `description` and `parameters`. A model that cannot stream answers in one piece and
        calls none of them. Raises as `complete` does, also in the middle of an answer.
        """
        yield Spoken(await self.complete(messages, max_tokens=UNSTREAMED_TOKENS), finish="stop")


class Embedder(ABC):
    """Turns texts into vectors: texts of like meaning lie near each other."""

    #: Its name; vectors of another name cannot be compared with its own.
    name: str
    #: Its version, where it has one that can change under the same name; nor can vectors of another version.
    version: str = ""
    #: How many numbers a vector has; may be known only after the first text (0 until then).
    dimension: int
    #: How many texts are best given at once.
    batch: int = 32

    @property
    def maker(self) -> Maker:
        """What its vectors are known by."""
        return Maker(self.name, self.dimension, self.version)

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Vector:
        """One row for each text, in that order, of unit length; a text that says nothing gives zeros.

        Never blocks the event loop. Raises `ModelUnavailableError` when it cannot work now.
        """

    async def ready(self) -> None:
        """Load what must be loaded and learn the dimension; raises `ModelUnavailableError` when that fails."""
        await self.embed(["ready"])

    async def close(self) -> None:
        """Let go. Twice is the same as once."""
