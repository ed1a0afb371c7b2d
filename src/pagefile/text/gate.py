"""Which past turns may enter a window by themselves: those that answer the question, and nothing just to fill up."""

import re
from collections.abc import Mapping
from typing import Literal

#: "auto": what passes the bar; "always": the best few that have anything in common with the question; "never": nothing.
Gate = Literal["auto", "always", "never"]

#: A turn passes that holds this share of the question's weight, or is this near in meaning. Likeness is the encoder's: of a
#: LoCoMo conversation, a question finds 0.2 % of the turns above this, 3 % above the lower bar, and a quarter above the last.
MIN_COVERAGE = 0.5
MIN_LIKENESS = 0.55
#: The bar for a question that points back: who asks for "that one from before" names little of it, and the pointing words count.
BACK_COVERAGE = 0.1
BACK_LIKENESS = 0.42
#: Below this, what two texts have in common is that both are texts.
SOME_LIKENESS = 0.3

_BACK = re.compile(
    r"之前|以前|刚才|刚刚|上次|上回|上一次|前面|先前|早些时候|那时|当时|那次|那个|那部|那位|那家|那件|你说过|我说过|说过的|提到过?的|提过|聊过|"
    r"讨论过|讨论的|还记得|记不记得|记得吗|回到|继续聊|接着说"
    r"|\b(?:earlier|previously|before|last time|the other day|a while ago|back then|just now|remember|recall|"
    r"(?:you|i|we)(?:'ve|\s+have)?\s+(?:said|told|mentioned|talked|discussed|suggested|recommended)|go(?:ing)? back to|"
    r"as (?:i|you|we) (?:said|mentioned)|that (?:one|film|movie|book|place|restaurant|person|guy|thing))\b",
    re.IGNORECASE,
)


def points_back(question: str) -> bool:
    """Whether a question speaks of something that was said before."""
    return _BACK.search(question) is not None


def answers(parts: Mapping[str, float]) -> bool:
    """Whether a turn has anything in common with the question: a word, the time it names, or what is meant.

    A turn that was found for its neighbours' words alone counts as well: it is part of what was said about them.
    """
    shared = sum(parts.get(name, 0.0) for name in ("words", "neighbours", "sitting", "time"))
    return shared > 0 or parts.get("likeness", 0.0) >= SOME_LIKENESS


def passes(parts: Mapping[str, float], gate: Gate, *, back: bool) -> bool:
    """Whether a turn that was found may enter a window."""
    coverage, likeness = parts.get("coverage", 0.0), parts.get("likeness", 0.0)
    if gate == "auto":
        bars = (BACK_COVERAGE, BACK_LIKENESS) if back else (MIN_COVERAGE, MIN_LIKENESS)
        return coverage >= bars[0] or likeness >= bars[1]
    return gate == "always" and (coverage > 0 or likeness >= SOME_LIKENESS)
