"""Counting tokens: the protocol, the exact counter, the estimate, and a cache in front of either.

The vocabularies themselves are in `vocabularies`; callers use `tokens.open_counter`.
"""

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text. The empty text has 0, and equal texts have equal counts."""

    @property
    def name(self) -> str:
        """The vocabulary, followed by `~estimate` if the counts are estimates."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the vocabulary itself."""
        ...

    def count(self, text: str) -> int:
        """The number of tokens in the text, treated as ordinary text: nothing in it counts as a special token."""
        ...


class ExactCounter:
    """Counts with a real vocabulary, and copes with input that breaks tokenizers."""

    exact = True

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self.name = name
        self._count = count

    def count(self, text: str) -> int:
        """The number of tokens in the text; a lone surrogate counts as U+FFFD, as in tiktoken."""
        try:
            return self._in_halves(text)
        except UnicodeEncodeError:
            return self._in_halves(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _in_halves(self, text: str) -> int:
        """Count; if the library panics (tiktoken does on a megabyte of spaces), count the halves.

        Each split adds at most a token or two to the exact count.
        """
        try:
            return self._count(text)
        except BaseException as error:
            # pyo3's PanicException derives from BaseException and cannot be imported.
            if type(error).__name__ != "PanicException" or len(text) < 2:
                raise
        middle = len(text) // 2
        return self._in_halves(text[:middle]) + self._in_halves(text[middle:])

    def __repr__(self) -> str:
        return f"<tokens of {self.name}>"


_PIECES = re.compile(
    r"(?P<wide>[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<digits>\d+)"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<space>\s+)"
    r"|(?P<marks>[^\w\s]+|_+)"
)
#: Tokens per wide (Chinese, Japanese, Korean) character: o200k takes 0.6 to 0.8 on Chinese prose.
_PER_WIDE = 0.7
#: Characters of a word per token; most English words are one token, long ones two.
_WORD_CHARS = 8


class EstimateCounter:
    """Estimates tokens from the script alone, within about a quarter on Chinese and English prose.

    The fallback if no vocabulary can be opened; its name says so.
    """

    exact = False

    def __init__(self, name: str = "estimate") -> None:
        self.name = name

    def count(self, text: str) -> int:
        """Roughly the number of tokens in the text; at least one if it is not empty."""
        if not text:
            return 0
        total = 0.0
        for match in _PIECES.finditer(text):
            length = match.end() - match.start()
            total += self._weigh(match.lastgroup, length, match.group())
        return max(1, round(total))

    @staticmethod
    def _weigh(kind: str | None, length: int, piece: str) -> float:
        if kind == "wide":
            return _PER_WIDE * length
        if kind == "digits":
            return -(-length // 3)
        if kind == "word":
            # Non-ASCII letters (accents, Cyrillic, Arabic) have fewer merges.
            return -(-length // (_WORD_CHARS if piece.isascii() else _WORD_CHARS // 2))
        if kind == "space":
            # The single space before a word is part of the word's token.
            return 0 if piece == " " else 1 + length // 64
        return -(-length // 2)

    def __repr__(self) -> str:
        return f"<estimated tokens: {self.name}>"


class CachedCounter:
    """Caches counts of recurring texts, such as the system text of every window; by digest, so no text is retained."""

    def __init__(self, counter: TokenCounter, size: int = 4096) -> None:
        self.name = counter.name
        self.exact = counter.exact
        self._counter = counter
        self._size = size
        self._known: dict[bytes, int] = {}

    def count(self, text: str) -> int:
        """The number of tokens in the text, cached."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            known = self._counter.count(text)
            if len(self._known) >= self._size:
                self._known.clear()
            self._known[digest] = known
        return known
