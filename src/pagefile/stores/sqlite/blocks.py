"""A cache of vectors in memory, one block per owner, updated by place and bounded in size."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pagefile.lru import Lru
from pagefile.ports import Vector, VectorHit
from pagefile.stores.sql.plays import Row
from pagefile.stores.vectors import Matrix, largest, order, similarities

#: A model, a tenant, and the user, or the conversation if it has no owner.
Owner: TypeAlias = tuple[str, str, str | None, str | None]

_ROWS_AT_FIRST = 64
#: From this share of rows on, multiplying all of them is faster than picking.
_MANY = 0.1
#: What a row costs besides its vector: ids, places and its dict entry.
_BYTES_BESIDE = 400


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that was found, and the place of its row."""

    near: VectorHit
    place: int


@dataclass(frozen=True, slots=True)
class View:
    """A block as it was at one moment; what is added later does not change it."""

    matrix: Matrix
    places: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    seqs: npt.NDArray[np.int64]
    ids: Sequence[str]
    names: Sequence[str]
    #: Only this conversation; None: all of them.
    code: int | None

    def search(self, vector: Vector, limit: int) -> list[Hit]:
        rows = None if self.code is None else np.nonzero(self.codes == self.code)[0]
        similarity = self._similarities(rows, vector)
        hits = [
            self._hit(int(at if rows is None else rows[at]), float(similarity[at]))
            for at in largest(similarity, limit)
        ]
        return sorted(hits, key=lambda hit: order(hit.near))[:limit]

    def _similarities(self, rows: npt.NDArray[np.intp] | None, vector: Vector) -> Vector:
        if rows is None:
            return similarities(self.matrix, vector)
        # Picking rows copies them: for many rows, it is faster to multiply all.
        if len(rows) > _MANY * len(self.matrix):
            return similarities(self.matrix, vector)[rows]
        return similarities(self.matrix[rows], vector)

    def _hit(self, row: int, similarity: float) -> Hit:
        near = VectorHit(self.names[int(self.codes[row])], int(self.seqs[row]), self.ids[row], similarity)
        return Hit(near, int(self.places[row]))


class Block:
    """The vectors of one owner. Rows are appended after those that views hold; replacing a row makes a copy."""

    def __init__(self, dimension: int) -> None:
        self.lock = threading.Lock()
        #: Everything up to this place was read.
        self.known = 0
        self._count = 0
        self._matrix: Matrix = np.empty((_ROWS_AT_FIRST, dimension), np.float32)
        self._places = np.empty(_ROWS_AT_FIRST, np.int64)
        self._codes = np.empty(_ROWS_AT_FIRST, np.int32)
        self._seqs = np.empty(_ROWS_AT_FIRST, np.int64)
        self._ids: list[str] = []
        self._names: list[str] = []
        self._code_of: dict[str, int] = {}
        self._row_of: dict[tuple[int, int], int] = {}

    @property
    def bytes(self) -> int:
        """Its size in bytes, roughly."""
        return self._matrix.nbytes + len(self._matrix) * _BYTES_BESIDE

    def add(self, rows: Sequence[Row]) -> None:
        """Take in rows of `episodes_of_…`, in the order of their places."""
        if not rows:
            return
        vectors = vectors_of([row[4] for row in rows])
        at = [self._at(conversation, seq) for _, _, conversation, seq, _ in rows]
        self._make_room(replaced=min(at) < self._count, rows=max(at) + 1)
        self._matrix[at] = vectors
        self._places[at] = [row[0] for row in rows]
        self._seqs[at] = [row[3] for row in rows]
        self._codes[at] = [self._code_of[row[2]] for row in rows]
        for place, row in zip(at, rows, strict=True):
            if place == len(self._ids):
                self._ids.append(row[1])
            else:
                self._ids[place] = row[1]
        self._count = len(self._row_of)
        self.known = rows[-1][0]

    def view(self, conversation: str | None) -> View | None:
        """What is there now, of one conversation or of all; None when there is nothing."""
        if not self._count or (conversation is not None and conversation not in self._code_of):
            return None
        rows = slice(self._count)
        return View(
            self._matrix[rows],
            self._places[rows],
            self._codes[rows],
            self._seqs[rows],
            self._ids,
            self._names,
            None if conversation is None else self._code_of[conversation],
        )

    def _at(self, conversation: str, seq: int) -> int:
        code = self._code_of.get(conversation)
        if code is None:
            code = self._code_of[conversation] = len(self._names)
            self._names.append(conversation)
        return self._row_of.setdefault((code, seq), len(self._row_of))

    def _make_room(self, *, replaced: bool, rows: int) -> None:
        if rows <= len(self._matrix) and not replaced:
            return
        size = len(self._matrix) if rows <= len(self._matrix) else max(_ROWS_AT_FIRST, rows + rows // 4)
        self._matrix, self._places = _copied(self._matrix, size), _copied(self._places, size)
        self._codes, self._seqs = _copied(self._codes, size), _copied(self._seqs, size)
        self._ids = list(self._ids)


class Blocks:
    """Blocks by owner; the least recently used are evicted beyond a limit. Used from several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._blocks: Lru[Owner, Block] = Lru(most_bytes, lambda block: block.bytes)

    def of(self, owner: Owner, dimension: int) -> Block:
        with self._lock:
            block = self._blocks.get(owner)
            if block is None:
                block = self._blocks[owner] = Block(dimension)
            return block

    def trim(self) -> None:
        """Evict blocks beyond the limit; a search that is running keeps its block until it ends.

        The block in use stays, however large: reading it again for each query takes as much memory, and far longer.
        """
        with self._lock:
            if self._most_bytes:
                self._blocks.trim()
            else:
                self._blocks.clear()

    def forget(self, owner: Owner) -> None:
        """Drop a block that is out of date."""
        with self._lock:
            self._blocks.pop(owner, None)

    def clear(self) -> None:
        with self._lock:
            self._blocks.clear()

    def __len__(self) -> int:
        return len(self._blocks)


def vectors_of(blobs: Sequence[bytes]) -> Matrix:
    return np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1).astype(np.float32)


def _copied(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    copy = np.empty((size, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array[:size]
    return copy
