"""Deterministic choices for the demo."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Picks:
    """Makes pseudo-random choices: the same seed gives the same ones on every machine and Python version."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2_654_435_761 % 2**32 or 1

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        self._state = (1_664_525 * self._state + 1_013_904_223) % 2**32
        return least + (self._state >> 8) % (most - least + 1)

    def one(self, options: Sequence[T]) -> T:
        """One of the given items."""
        return options[self.number(0, len(options) - 1)]

    def code(self, letters: str = "ABKTX") -> str:
        """Something like an order number."""
        return f"{self.one(letters)}-{self.number(1000, 9999)}"
