"""How many tokens a window may have, and how many of them one kind of memory may take."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pagefile.errors import BudgetError
from pagefile.window.candidates import Block

#: Own budgets of document 004: facts, and the corrections that must survive a tight one.
FACTS_TOKENS = 2000
CORRECTIONS_TOKENS = 500
EPISODES_TOKENS = 1500
CHUNKS_TOKENS = 1500
#: No kind of memory takes more than this share of a small window, so that the conversation itself has room.
MEMORY_SHARE = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """The whole window, and the own budgets of blocks that have one."""

    tokens: int
    caps: Mapping[Block, int] = field(default_factory=dict[Block, int])

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise BudgetError(f"window_tokens is {self.tokens}: give the model's context size, at least 1.")

    @classmethod
    def of(
        cls, window_tokens: int, *, facts_tokens: int = FACTS_TOKENS, chunks_tokens: int = CHUNKS_TOKENS
    ) -> "Budget":
        """The usual split of a window."""
        share = window_tokens // MEMORY_SHARE
        return cls(
            window_tokens,
            {
                "facts": min(facts_tokens, share),
                "corrections": min(CORRECTIONS_TOKENS, share),
                "episodes": min(EPISODES_TOKENS, share),
                "chunks": min(chunks_tokens, share),
            },
        )
