"""How a conversation of the demo is written down: who speaks, what is said turn by turn, and what happens beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from pagefile.records import JsonValue

T = TypeVar("T")


class Picks:
    """Chooses without chance: the same seed makes the same choices, on every machine and in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2_654_435_761 % 2**32 or 1

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        self._state = (1_664_525 * self._state + 1_013_904_223) % 2**32
        return least + (self._state >> 8) % (most - least + 1)

    def one(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.number(0, len(options) - 1)]

    def code(self, letters: str = "ABKTX") -> str:
        """Something like an order number."""
        return f"{self.one(letters)}-{self.number(1000, 9999)}"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call of a turn and what it returned."""

    name: str
    input: JsonValue
    result: str


@dataclass(frozen=True, slots=True)
class Learnt:
    """Something that was learnt about the user, or that turned out wrong, when a turn was over."""

    text: str
    #: What it speaks of: the next fact about the same takes its place.
    attribute: str | None = None
    category: str | None = None
    confidence: float = 0.9
    #: "wrong": the fact with this text is retracted.
    kind: Literal["learnt", "wrong"] = "learnt"


@dataclass(frozen=True, slots=True)
class Said:
    """One turn."""

    user: str
    assistant: str
    tools: tuple[Tool, ...] = ()
    #: The agent loads the newest archived result of this tool again before it answers.
    loads: str | None = None
    #: The user gave up waiting: there is no answer.
    aborted: bool = False
    #: Whether a window is asked for; when tools are called, one more follows each of them.
    window: bool = False
    learnt: tuple[Learnt, ...] = ()
    #: The conversation begins anew after this turn.
    resets: bool = False
    #: Safety data of the session, such as allergies, from this turn on.
    snapshot: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation."""

    id: str
    agent: str
    began: datetime
    #: Days from the first turn to the last.
    days: int
    window_tokens: int
    instructions: str
    turns: Callable[[], Sequence[Said]]


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the demo, and the language in which their agents speak."""

    user_id: str
    language: Literal["zh", "en"]
    talks: tuple[Talk, ...]
