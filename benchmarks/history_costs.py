"""What a month of conversations costs: a calculator that says what it assumes.

The document's 120 million tokens for 600,000 turns are 200 tokens a turn, which does not go with the 8000 tokens that it gives
one request of a conversation of 50 turns. So every figure here comes from assumptions that are printed beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pagefile.records import JsonObject


@dataclass(frozen=True, slots=True)
class Traffic:
    """The document's month."""

    conversations_a_day: int = 1000
    turns: int = 20
    days: int = 30
    #: What its dollars come to: $3600 for 120 million.
    usd_per_million: float = 30.0

    @property
    def requests(self) -> int:
        """One for each turn."""
        return self.conversations_a_day * self.turns * self.days

    def tokens(self, per_request: float) -> float:
        """Tokens of a month."""
        return self.requests * per_request

    def dollars(self, tokens: float) -> float:
        """What they cost."""
        return tokens / 1e6 * self.usd_per_million


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the calculation assumes, in tokens."""

    #: The system message and the question.
    question: float
    turn: float
    #: The summary, once there is one, and what is recalled for a question.
    summary: float
    recalled: float
    #: Turns of the window; turns before the first summary; turns that wait for the next one, on average.
    window_turns: int = 3
    first_summary_turns: int = 5
    waiting_turns: float = 1.0

    def per_request(self, way: str, turns: int) -> float:
        """Tokens of the mean request of a conversation of this length."""
        held = _HELD[way]
        return self.question + sum(held(self, before) for before in range(turns)) / turns

    def to_json(self) -> JsonObject:
        """The assumptions as plain JSON."""
        return {
            "question": round(self.question),
            "turn": round(self.turn),
            "summary": round(self.summary),
            "recalled": round(self.recalled),
            "window_turns": self.window_turns,
            "first_summary_turns": self.first_summary_turns,
            "waiting_turns": self.waiting_turns,
        }


def _full(sizes: Sizes, before: int) -> float:
    return before * sizes.turn


def _window(sizes: Sizes, before: int) -> float:
    return min(before, sizes.window_turns) * sizes.turn


def _summary(sizes: Sizes, before: int) -> float:
    more = sizes.summary + sizes.waiting_turns * sizes.turn if before >= sizes.first_summary_turns else 0.0
    return _window(sizes, before) + more


def _hybrid(sizes: Sizes, before: int) -> float:
    return _summary(sizes, before) + (sizes.recalled if before > sizes.window_turns else 0.0)


FULL, RECENT, SUMMARY, HYBRID = "full history", "last 6 messages", "summary", "summary and recall"
WAYS = (FULL, RECENT, SUMMARY, HYBRID)
_HELD: dict[str, Callable[[Sizes, int], float]] = {
    FULL: _full,
    RECENT: _window,
    SUMMARY: _summary,
    HYBRID: _hybrid,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the document's own table, in millions of tokens a month."""

    name: str
    millions: float

    def dollars(self, traffic: Traffic) -> float:
        """Its costs."""
        return traffic.dollars(self.millions * 1e6)

    def per_request(self, traffic: Traffic) -> float:
        """What a request would then have."""
        return self.millions * 1e6 / traffic.requests

    def saved(self) -> float:
        """Beside the first row."""
        return 1 - self.millions / CLAIMS[0].millions


CLAIMS = (Claim("Baseline", 120), Claim("+ Phase 1", 40), Claim("+ Phase 2", 35))
