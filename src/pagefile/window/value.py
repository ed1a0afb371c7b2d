"""What a piece of memory is worth in a window, and what its tokens cost: one measure for turns, facts and passages.

The `value` of a candidate is the probability that it helps with this message: the probability that the message needs
memory at all, times the probability that this piece is what it needs. A tier whose candidates carry one lets them
compete with those of other tiers: the window is filled by value per token, until the next piece is not worth its tokens or there is
no room. A candidate without a value is kept by the rank of its block.
"""

from collections.abc import Iterable, Sequence

from pagefile.window.candidates import Candidate, Form

#: The least that a token must bring. Measured (`pagefile bench window`): cheaper, a window fills with what
#: rarely helps; dearer, it leaves out part of what a question needs.
PRICE = 6e-5
#: The same for a token of the conversation itself: what leaves for a piece of memory moves the beginning of the prompt, which caches know.
PRICE_OF_TURNS = 3e-4
#: A message that needs memory with a lower probability gets none: even a short block of memory distracts.
OPENING = 0.36
#: The same for a message that wants something done: it says less of what it needs.
OPENING_FOR_TASK = 0.28
#: The same for a message that leans on what was said right before it, and for a question about the world.
OPENING_IN_TALK, OPENING_OF_WORLD = 0.83, 0.8
#: Where words alone tell: their probabilities are others.
OPENING_BY_WORDS, OPENING_IN_TALK_BY_WORDS = 0.45, 0.8
#: The same for a question that says that the answer was known before.
OPENING_AGAIN = 0.2


#: In a memory of this many turns or fewer, a turn is shown if it is among the first few, or worth this share of the best one: there are
#: too few to compare with, and everything resembles a message a little. In a larger memory the share is as much smaller.
_FIRST, _SHARE_OF_BEST, _SMALL = 4, 0.03, 100


def least_beside(values: Sequence[float], turns: int) -> float:
    """What one of these must be worth to be shown beside the best of them."""
    best = sorted(values, reverse=True)
    if len(best) <= _FIRST:
        return 0.0
    return min(best[_FIRST - 1], _SHARE_OF_BEST * min(1.0, _SMALL / max(1, turns)) * best[0])


def worth(value: float, tokens: int, price: float = PRICE) -> bool:
    """Whether something of this value should take this many tokens."""
    return value > 0 and value >= price * tokens


def by_value(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates with a value, the most per token first, by their shortest form."""
    return sorted(candidates, key=lambda one: (-density(one), one.position, one.id))


def density(candidate: Candidate) -> float:
    """The value per token of the shortest form."""
    if not candidate.forms:
        return 0.0
    form = candidate.forms[-1]
    return form.share * (candidate.value or 0.0) / max(1, form.tokens)


def shortest_is_worth(candidate: Candidate, price: float = PRICE) -> bool:
    return bool(candidate.forms) and worth(
        candidate.forms[-1].share * (candidate.value or 0.0), candidate.forms[-1].tokens, price
    )


def worth_more(candidate: Candidate, kept: Form, fuller: Form) -> bool:
    """Whether what a fuller form adds is worth its tokens."""
    return worth((fuller.share - kept.share) * (candidate.value or 0.0), fuller.tokens - kept.tokens)


def explained(candidate: Candidate, tokens: int) -> str:
    """What a candidate is worth, for the receipt."""
    return f"worth {candidate.value:.3g} for {tokens} tokens"
