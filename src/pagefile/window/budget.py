"""How many tokens a window may have, and how many of them one kind of memory may take."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pagefile.errors import BudgetError
from pagefile.window.beside import Beside
from pagefile.window.candidates import Block

#: Separate budgets: facts, and the corrections that must survive a tight window.
FACTS_TOKENS = 2000
CORRECTIONS_TOKENS = 500
EPISODES_TOKENS = 1500
CHUNKS_TOKENS = 1500
#: The limit for all third-party tiers together.
EXTRA_TOKENS = 1500
#: No kind of memory takes more than the window divided by this, so that the conversation itself has room.
MEMORY_SHARE = 8
#: What is taken from a window, in words.
_BESIDE: Mapping[Beside, str] = {
    "tools": "the tools' schemas",
    "answer": "the answer",
    "tokenizer": "a tokenizer that is not published",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The room for messages, the separate budgets of some blocks, and what the request contains besides messages."""

    tokens: int
    caps: Mapping[Block, int] = field(default_factory=dict[Block, int])
    reserved: Mapping[Beside, int] = field(default_factory=dict[Beside, int])

    def __post_init__(self) -> None:
        if self.tokens < 1 and self.reserved:
            raise BudgetError(f"There is no room for messages in {self.says}: raise window_tokens.")
        if self.tokens < 1:
            raise BudgetError(f"window_tokens is {self.tokens}: give the model's context size, at least 1.")

    @property
    def says(self) -> str:
        """Describes the window and what is taken from it."""
        whole = self.tokens + sum(self.reserved.values())
        taken = ", ".join(f"{tokens} for {_BESIDE[kind]}" for kind, tokens in self.reserved.items())
        return f"a window of {whole} tokens" + (f", less {taken}" if taken else "")


def share_of(window_tokens: int, most: int) -> int:
    """What one kind of memory may take of a window: `most`, or less if the window is small."""
    return min(most, window_tokens // MEMORY_SHARE)
