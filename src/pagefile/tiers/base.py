"""What a kind of memory is: it keeps what it needs of the turns, and offers candidates for a window."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pagefile.ports import LogView
from pagefile.records import JsonValue, Scope
from pagefile.window.candidates import Candidate
from pagefile.window.forms import Text

Note = Callable[[str], None]


class Counter(Protocol):
    """Counts tokens, and says with what."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """The window that candidates are wanted for."""

    scope: Scope
    query: str | None
    view: LogView
    window_tokens: int
    recent_turns: int
    #: Writes something worth knowing into the receipt.
    note: Note
    #: Pages that are back in this window, by turn and number of the step whose placeholder they replace.
    pages: Mapping[tuple[str, int], Sequence[Text]] = field(
        default_factory=dict[tuple[str, int], Sequence[Text]]
    )
    #: Pages of the running turn, by the number of the step.
    running: Mapping[int, Sequence[Text]] = field(default_factory=dict[int, Sequence[Text]])
    #: The run whose workspace may be shown: the scope of the handle that asks, and the run's name.
    run: tuple[Scope, str] | None = None
    #: What a tier found and the log cannot tell later: written down with the call, so that its window can be made again.
    traces: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class Tier(ABC):
    """One kind of memory."""

    #: The word for it in receipts, logs and metrics.
    name: str

    @abstractmethod
    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """What this tier would put into the window, in its own order of preference."""
