"""Whether an answer is right: by the words of the right answers, in any order of writing that says the same."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

_ARTICLES = re.compile(r"\b(?:a|an|the|of)\b")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
}
_PIECES = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")


def words(text: str) -> list[str]:
    """Lower case, without articles and punctuation; numbers and months as digits and full names, a Chinese sign a word."""
    plain = _ARTICLES.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace(",", ""))
    found = [_word(piece) for piece in _PIECES.findall(plain)]
    for at in range(len(found) - 1):
        # The day before its month, as the sets write dates.
        if found[at] in _MONTHS and re.fullmatch(r"\d{1,2}", found[at + 1]):
            found[at : at + 2] = found[at + 1], found[at]
    return found


def _word(piece: str) -> str:
    if (ordinal := re.fullmatch(r"(\d+)(?:st|nd|rd|th)", piece)) is not None:
        return ordinal[1]
    month = next((name for name in _MONTHS if len(piece) >= 3 and name.startswith(piece)), None)
    return month or _NUMBERS.get(piece, piece)


def matches(answer: str, right: Iterable[str]) -> bool:
    """Whether all words of one of the right answers are in it, next to each other."""
    said = words(answer)
    return any(_within(wanted, said) for one in right if (wanted := words(one)))


def exact(answer: str, right: Iterable[str]) -> bool:
    """Whether it says a right answer and nothing else."""
    said = words(answer)
    return any(said == words(one) for one in right)


def _within(wanted: Sequence[str], said: Sequence[str]) -> bool:
    return any(wanted == said[at : at + len(wanted)] for at in range(len(said) - len(wanted) + 1))


def f1(answer: str, right: Iterable[str]) -> float:
    """The best harmonic mean of the shares of words that the answer and a right answer have in common."""
    said = Counter(words(answer))
    return max(
        (_f1(said, wanted) for said, wanted in product([said], map(Counter, map(words, right)))), default=0.0
    )


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total()) if common else 0.0
