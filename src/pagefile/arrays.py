"""numpy, imported with the first array: a program that only imports Pagefile, and a command that ranks nothing, do not wait for it.

`lazy_loader.load` would leave an unfinished `numpy` in `sys.modules` for every other library to find.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bools: TypeAlias = npt.NDArray[np.bool_]
    Int32s: TypeAlias = npt.NDArray[np.int32]
    Int64s: TypeAlias = npt.NDArray[np.int64]
    Float32s: TypeAlias = npt.NDArray[np.float32]
    Float64s: TypeAlias = npt.NDArray[np.float64]
    Numbers: TypeAlias = npt.NDArray[Any]
else:
    # Names of types only: to evaluate them would import numpy.
    Bools = Int32s = Int64s = Float32s = Float64s = Numbers = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("numpy"), name)
            # Looked up once: ranking asks for the same few names over and over.
            setattr(self, name, value)
            return value

    np = _Numpy()


class Column:
    """Numbers that grow at the end. A view stays as it was while others are added."""

    __slots__ = ("_numbers", "_size")

    def __init__(self, kind: "type[np.generic]") -> None:
        self._numbers = np.zeros(16, kind)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, numbers: Sequence[float] | Numbers) -> None:
        end = self._size + len(numbers)
        if end > len(self._numbers):
            grown = np.empty(end + end // 2, self._numbers.dtype)
            grown[: self._size] = self.view
            self._numbers = grown
        self._numbers[self._size : end] = numbers
        self._size = end

    @property
    def view(self) -> Numbers:
        return self._numbers[: self._size]


class Texts:
    """Short texts that grow at the end, in as many bytes as they have: as objects they would take three times as many."""

    __slots__ = ("_data", "_ends")

    def __init__(self) -> None:
        self._data = Column(np.uint8)
        self._ends = Column(np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        ends = self._ends.view
        begin = int(ends[number - 1]) if number else 0
        return self._data.view[begin : int(ends[number])].tobytes().decode()

    def extend(self, texts: Sequence[str]) -> None:
        data = [text.encode() for text in texts]
        ends = len(self._data) + np.cumsum([len(one) for one in data], dtype=np.int64)
        self._data.extend(np.frombuffer(b"".join(data), np.uint8))
        self._ends.extend(ends)

    @property
    def bytes(self) -> int:
        return len(self._data) + 8 * len(self._ends)


class Keyed(NamedTuple):
    """A number for each of some keys, which are known by their hashes: what a thousand of them have in common is asked at once."""

    hashes: "Int64s"
    numbers: "Float64s"

    @classmethod
    def of(cls, numbers: Mapping[Any, float]) -> "Keyed":
        size = len(numbers)
        hashes = np.fromiter(map(hash, numbers), np.int64, size)
        return cls(hashes, np.fromiter(numbers.values(), np.float64, size))

    def joined(self, other: "Keyed") -> "Keyed":
        hashes = np.concatenate([self.hashes, other.hashes])
        return Keyed(hashes, np.concatenate([self.numbers, other.numbers]))


class Places:
    """The numbers of things in the order in which they are added, found by the hash of their keys.

    A dict would take ten times the memory, and for a thousand of a hundred thousand keys ten times as long.
    """

    def __init__(self) -> None:
        self._hashes = self._numbers = np.zeros(0, np.int64)
        #: Those that are not in the arrays yet.
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def extend(self, keys: Iterable[Hashable]) -> None:
        self._recent.update(zip(map(hash, keys), count(len(self))))
        if len(self._recent) > max(256, len(self._hashes) // 4):
            hashes = np.concatenate([self._hashes, np.fromiter(self._recent, np.int64, len(self._recent))])
            numbers = np.concatenate(
                [self._numbers, np.fromiter(self._recent.values(), np.int64, len(self._recent))]
            )
            order = np.argsort(hashes)
            self._hashes, self._numbers = hashes[order], numbers[order]
            self._recent.clear()

    def of(self, keys: Collection[Hashable]) -> "Int64s":
        """Their numbers; -1 for those that are unknown."""
        return self.of_hashes(np.fromiter(map(hash, keys), np.int64, len(keys)))

    def of_hashes(self, hashes: "Int64s") -> "Int64s":
        found = np.full(len(hashes), -1)
        if len(self._hashes):
            at = np.searchsorted(self._hashes, hashes)
            there = self._hashes.take(at, mode="clip") == hashes
            found[there] = self._numbers[at[there]]
        if self._recent:
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._recent.get(int(hashes[place]), -1)
        return found
