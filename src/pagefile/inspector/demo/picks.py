"""The demo's data files, and deterministic choices from them."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
#: A table of the data.
Data: TypeAlias = Mapping[str, Any]


def read(name: str) -> Data:
    return tomllib.loads(
        files("pagefile.inspector.demo").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    )


class Picks:
    """Makes pseudo-random choices: the same seed gives the same ones on every machine and Python version."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2_654_435_761 % 2**32 or 1

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        self._state = (1_664_525 * self._state + 1_013_904_223) % 2**32
        return least + (self._state >> 8) % (most - least + 1)

    def one(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def code(self, letters: str = "ABKTX") -> str:
        """Something like an order number."""
        return f"{self.one(letters)}-{self.number(1000, 9999)}"

    def slots(self, kinds: Data, lists: Data | None = None) -> dict[str, Any]:
        """A value for each placeholder: one of several texts, in place or of a named list, or a number in a range."""
        slots: dict[str, Any] = {}
        for name, kind in kinds.items():
            match kind:
                case {"code": letters}:
                    slots[name] = self.code(letters)
                case {"hex": [least, most]}:
                    slots[name] = f"{self.number(least, most):x}"
                case {"tenths": [least, most], "below": other}:
                    slots[name] = round(slots[other] - self.number(least, most) / 10, 1)
                case {"tenths": [least, most]}:
                    slots[name] = self.number(least, most) / 10
                case {"hundredths": [least, most]}:
                    slots[name] = self.number(least, most) / 100
                case {"one_more_than": other}:
                    slots[name] = slots[other] + 1
                case [int(least), int(most)]:
                    slots[name] = self.number(least, most)
                case str():
                    slots[name] = self.one((lists or {})[kind])
                case _:
                    slots[name] = self.one(kind)
        return slots
