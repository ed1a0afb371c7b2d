"""Everything that is not a store: the clock, metrics, models."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pagefile.ports.derived import EmbeddingModel, Vector
from pagefile.records import JsonValue
from pagefile.text.sentences import Language

__all__ = [
    "ChatModel",
    "Clock",
    "Embedder",
    "FactExtractor",
    "Meter",
    "Proposal",
    "Said",
    "Spoken",
    "Summarizer",
    "SummaryRequest",
    "ToolCall",
]


class Clock(Protocol):
    """Tells the time, in UTC."""

    def now(self) -> datetime: ...


class Meter(ABC):
    """Records metrics; must be fast, and never raises."""

    @abstractmethod
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Increment a counter."""

    @abstractmethod
    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record a size or a duration."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The input of a summary: the previous summary, and what was said since."""

    previous: str | None
    #: Speaker ("user", "assistant", or "user (unanswered)" where no answer came) and text, oldest first.
    said: tuple[tuple[str, str], ...]
    max_tokens: int
    #: The language to write in; None for that of what was said.
    language: Language | None = None


class Summarizer(ABC):
    """Summarizes what was said."""

    #: How much it reads at once; longer input is split, each part with the summary so far.
    max_input_chars: int = 24_000

    @abstractmethod
    async def summarize(self, request: SummaryRequest) -> str:
        """One text that summarizes `previous` and `said` together. May raise `ModelError`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model."""

    id: str
    name: str
    #: As the model wrote them: normally JSON, but not validated.
    arguments: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of a streamed answer."""

    text: str = ""
    #: Complete calls; they come with the last piece.
    calls: tuple[ToolCall, ...] = ()
    #: Why the answer ends with this piece ("stop", "length", "tool_calls" …); None for all but the last.
    finish: str | None = None


#: The longest answer of a model that cannot stream, in tokens.
UNSTREAMED_TOKENS = 4096


class ChatModel(ABC):
    """A model that answers messages with text."""

    @abstractmethod
    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        """The answer. Raises `ModelUnavailableError` if the model is unreachable, `ModelOutputError` if it says nothing."""

    async def stream(
        self, messages: Sequence[Mapping[str, JsonValue]], *, tools: Sequence[Mapping[str, JsonValue]] = ()
    ) -> AsyncGenerator[Spoken]:
        """The answer piece by piece; the last piece says why it ends. A caller that stops earlier must close
        the generator.

        `tools` are JSON schemas with `name`, `description` and `parameters`. A model that cannot stream
        answers in one piece and calls no tools. Raises like `complete`, also in the middle of an answer.
        """
        yield Spoken(await self.complete(messages, max_tokens=UNSTREAMED_TOKENS), finish="stop")


class Embedder(ABC):
    """Turns texts into vectors: texts with similar meaning are close to each other."""

    #: Vectors made under different names cannot be compared.
    name: str
    #: A version that can change under the same name, if there is one; different versions cannot be compared
    #: either.
    version: str = ""
    #: Length of a vector; may be known only after the first text (0 until then).
    dimension: int
    #: Preferred batch size.
    batch: int = 32
    #: Whether it runs in this process and costs nothing per text: then the single words of pages are embedded too.
    local: bool = False
    #: Names of embedders whose vectors it makes again by itself, in the background: those that it is the successor of.
    replaces: tuple[str, ...] = ()

    @property
    def model(self) -> EmbeddingModel:
        """Identifies its vectors."""
        return EmbeddingModel(self.name, self.dimension, self.version)

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Vector:
        """One unit-length row per text, in the same order; a text without content gives zeros.

        Never blocks the event loop. Raises `ModelUnavailableError` if it cannot work now.
        """

    async def ready(self) -> None:
        """Load what must be loaded and determine the dimension; raises `ModelUnavailableError` if that fails."""
        await self.embed(["ready"])

    def relearn(self) -> None:
        """Forget a dimension that was only taken from an answer: that answer may have been wrong."""

    def forget(self) -> None:
        """Discard what was remembered of texts: something was erased."""

    async def close(self) -> None:
        """Release all resources; idempotent."""


@dataclass(frozen=True, slots=True)
class Said:
    """A user's own words in one turn, without text added by memory, tools or frameworks."""

    turn_id: str
    text: str
    at: datetime
    #: Who said it, in a conversation of several people; None: the user.
    speaker: str | None = None


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
    #: What is over, if the statement only says that: it replaces a fact of its attribute that names it, and is not kept
    #: where there is none.
    ends: str | None = None


class FactExtractor(ABC):
    """Finds lasting statements that users make about themselves."""

    #: How long a conversation should be idle before it is read.
    quiet_s: float = 0.5

    @abstractmethod
    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        """The statements found, oldest first. May raise `ModelError`.

        The result is not trusted: each quote is looked up in the turn it names.
        """
