"""Vectors in memory, of which the nearest are found exactly without looking at all of them closely.

Each vector is held at half precision, as it is stored, and a second time as whole numbers from -127 to 127. A search
multiplies all of the latter, an eighth of the memory of plain floats, and then only those of the former that may be among
the nearest by what rounding can have changed. So the result is that of multiplying everything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pagefile.arrays import Bools, Float32s, Int64s, Numbers, np
from pagefile.ports import Vector

if TYPE_CHECKING:
    #: A matrix of half precision, one vector per row.
    Halves = Numbers
else:
    Halves = Any

#: Rows of a chunk, which is never copied again once it is full.
_CHUNK = 4096
_ROWS_AT_FIRST = 64
#: Up to this many rows all are multiplied exactly: it takes half a millisecond.
_FEW = 4096
#: Half precision has eleven bits: a number is the sum of two halves, the second one that much smaller.
_LOWER = 4096.0
#: Instructions that also add up at half precision, four digits instead of eight: newer processors have them.
_INEXACT = ("sapphire", "sve_f16")


class _Chunk(NamedTuple):
    """Some rows; what is added later is behind those that others see."""

    halves: Halves
    coarse: Numbers
    #: What one step of a row's whole numbers is worth.
    steps: Float32s

    @classmethod
    def empty(cls, rows: int, dimension: int) -> "_Chunk":
        shape = rows, dimension
        return cls(np.empty(shape, "<f2"), np.empty(shape, np.int8), np.empty(rows, np.float32))

    def upto(self, rows: int) -> "_Chunk":
        return _Chunk(self.halves[:rows], self.coarse[:rows], self.steps[:rows])

    def copied(self, rows: int) -> "_Chunk":
        copy = _Chunk.empty(rows, self.coarse.shape[1])
        for old, new in zip(self, copy, strict=True):
            new[: len(old)] = old
        return copy


class Rows:
    """Vectors of unit length, numbered in the order in which they are added."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._chunks = [_Chunk.empty(_ROWS_AT_FIRST, dimension)]
        self._count = 0
        #: The largest distance of a vector from its whole numbers.
        self._error = 0.0

    def __len__(self) -> int:
        return self._count

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for chunk in self._chunks for array in chunk)

    def add(self, halves: Halves) -> None:
        for start in range(0, len(halves), _CHUNK):
            coarse, steps, error = _rounded(halves[start : start + _CHUNK].astype(np.float32))
            self._error = max(self._error, error)
            self._append(_Chunk(halves[start : start + _CHUNK], coarse, steps))

    def _append(self, rows: _Chunk) -> None:
        while len(rows.steps):
            if self._count == _CHUNK * len(self._chunks):
                self._chunks.append(_Chunk.empty(_CHUNK, self._dimension))
            begin = self._count - _CHUNK * (len(self._chunks) - 1)
            end = min(_CHUNK, begin + len(rows.steps))
            chunk = self._chunks[-1]
            if end > len(chunk.steps):
                self._chunks[-1] = chunk = chunk.copied(min(_CHUNK, max(end, 2 * len(chunk.steps))))
            for old, new in zip(chunk, rows, strict=True):
                old[begin:end] = new[: end - begin]
            self._count += end - begin
            rows = _Chunk(*(array[end - begin :] for array in rows))

    def view(self) -> "View":
        """What is there now; what is added later does not change it."""
        *full, last = self._chunks
        return View((*full, last.upto(self._count - _CHUNK * len(full))), self._error)


@dataclass(frozen=True, slots=True)
class View:
    chunks: Sequence[_Chunk]
    error: float

    def __len__(self) -> int:
        return sum(len(chunk.steps) for chunk in self.chunks)

    @property
    def size(self) -> int:
        """How many numbers a search multiplies."""
        return sum(chunk.coarse.size for chunk in self.chunks)

    def nearest(self, vector: Vector, limit: int, among: Bools | None = None) -> tuple[Int64s, Float32s]:
        """Rows, ascending, and their similarities to a vector of unit length: at least the nearest `limit` and their equals."""
        if among is None:
            among = np.ones(len(self), dtype=np.bool_)
        rows = np.flatnonzero(among)
        if len(rows) > max(limit, _FEW):
            rows = self._candidates(vector, limit, among)
        return rows, self._exact(rows, vector)

    def _candidates(self, vector: Vector, limit: int, among: Bools) -> Int64s:
        coarse, steps, error = _rounded(vector[None])
        found = np.concatenate([_dots(coarse, chunk.coarse)[0] * chunk.steps for chunk in self.chunks])
        found *= steps[0]
        found[~among] = -np.inf
        least = np.partition(found, len(found) - limit)[len(found) - limit]
        # The bar may be too high by as much as a candidate is too low.
        return np.flatnonzero(found >= least - 2 * _off(error, self.error, len(vector)))

    def _exact(self, rows: Int64s, vector: Vector) -> Float32s:
        upper = vector.astype("<f2")
        lower = ((vector - upper.astype(np.float32)) * _LOWER).astype("<f2")
        both = np.stack([upper, lower])
        parts = [np.zeros(0, np.float32)]
        ends = np.searchsorted(rows, [_CHUNK * (number + 1) for number in range(len(self.chunks))])
        for number, (chunk, part) in enumerate(zip(self.chunks, np.split(rows, ends[:-1]), strict=True)):
            if len(part):
                halves = chunk.halves.take(part - number * _CHUNK, axis=0)
                upper_dots, lower_dots = _dots(both, halves)
                parts.append((upper_dots + lower_dots / _LOWER).astype(np.float32))
        return np.concatenate(parts)


#: More than what half precision changes of a length, and adding up in another order of a sum.
_NOISE = 2e-5
#: Rounding a vector knows nothing of the other, so that it changes their product by this many standard deviations once in
#: 10^15 times.
_DEVIATIONS = 8.0


def _off(one: float, other: float, dimension: int) -> float:
    """How far the product of two vectors of unit length is off at most, when each is rounded by such a distance."""
    surely = one + (1 + one) * other
    likely = _DEVIATIONS * math.hypot(one, other) / math.sqrt(dimension)
    return min(surely, likely) + _NOISE


def _rounded(vectors: Float32s) -> tuple[Numbers, Float32s, float]:
    """Vectors as whole numbers, what a step of each is worth, and the largest distance that makes."""
    steps = np.maximum(vectors.max(axis=1), -vectors.min(axis=1)) / 127
    steps[steps == 0] = 1.0
    whole = vectors / steps[:, None]
    np.rint(whole, out=whole)
    coarse = whole.astype(np.int8)
    # What is off, in the same memory: there are many vectors when a process begins.
    whole *= steps[:, None]
    np.subtract(vectors, whole, out=whole)
    error = float(np.sqrt(np.einsum("ij,ij->i", whole, whole).max(initial=0.0)))
    return coarse, steps, error


def _dots(some: Numbers, others: Numbers) -> Numbers:
    """The products of all pairs of rows of the same kind."""
    kind = "int8" if some.dtype == np.int8 else "float16"
    return np.asarray(_simsimd().cdist(some, others, "dot", dtype=kind, out_dtype="float32"))


@cache
def _simsimd() -> Any:
    """Loaded with the first search, as numpy is."""
    simsimd: Any = import_module("simsimd")
    for instructions in _INEXACT:
        simsimd.disable_capability(instructions)
    return simsimd
