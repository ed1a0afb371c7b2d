"""A cache that evicts what was least recently used."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Lru(OrderedDict[K, V]):
    """A mapping that evicts the least recently used values once it holds more than `most`.

    cachetools weighs a value when it is put and refuses one that is too heavy. Ours grow while they are held,
    and the one in use stays, however heavy: rebuilding it for every use would need as much memory, and time
    as well. Not thread-safe: threads that share one need a lock.
    """

    def __init__(self, most: float, weight: Callable[[V], float] | None = None) -> None:
        super().__init__()
        self._most = most
        self._weight = weight

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        self.move_to_end(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        self.trim()

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: D | None = None, /) -> V | D | None:
        return self[key] if key in self else default  # noqa: SIM401 - this is it

    def drop(self, matches: Callable[[K], bool]) -> list[V]:
        """Remove the keys that match, and return their values."""
        return [self.pop(key) for key in [key for key in self if matches(key)]]

    def trim(self) -> None:
        """Evict what exceeds the limit; call it after making a value heavier."""
        if self._weight is None:
            while len(self) > max(1, self._most):
                self.popitem(last=False)
            return
        held = sum(map(self._weight, self.values()))
        while held > self._most and len(self) > 1:
            _, dropped = self.popitem(last=False)
            held -= self._weight(dropped)
