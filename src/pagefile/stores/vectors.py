"""Vectors as every index takes them: checked, of unit length, each turn once."""

from collections.abc import Sequence
from typing import TypeAlias

from pagefile.arrays import Float32s, np
from pagefile.errors import VectorIndexError
from pagefile.ports import EmbeddingModel, Vector, VectorHit, VectorRow
from pagefile.stores import rules

#: Vectors, one per row.
Matrix: TypeAlias = Float32s

#: Rounded to this, equal vectors have equal similarity, wherever in a matrix they are.
DIGITS = 6


def batch_of(
    model: EmbeddingModel, rows: Sequence[VectorRow]
) -> tuple[list[VectorRow], Matrix, list[VectorRow]]:
    """The rows to write, their vectors at unit length, and the rows whose vector is all zeros: similar to nothing, so not stored.

    For a turn named twice, the last vector counts.
    """
    newest = list(
        {(row.scope.tenant, rules.conversation_of(row.scope), row.seq): row for row in rows}.values()
    )
    for row in newest:
        _check(model, row.vector, f"The vector of turn {row.turn_id!r}")
    matrix = np.array([row.vector for row in newest], np.float32).reshape(-1, model.dimension)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    there = lengths > 0
    kept = [row for row, keep in zip(newest, there, strict=True) if keep]
    gone = [row for row, keep in zip(newest, there, strict=True) if not keep]
    return kept, (matrix[there] / lengths[there, None]).astype(np.float32), gone


def asked(model: EmbeddingModel, vector: Vector) -> Vector | None:
    """The vector of a search at unit length; None for zeros, which are similar to nothing."""
    _check(model, vector, "The vector of this search")
    length = float(np.linalg.norm(vector.astype(np.float64)))
    return (vector / length).astype(np.float32) if length > 0 else None


def order(near: VectorHit) -> tuple[float, str, int]:
    """The nearest first; equally near ones by conversation and place."""
    return -near.similarity, near.conversation, near.seq


def nearest(found: Sequence[VectorHit], limit: int) -> list[VectorHit]:
    return sorted(found, key=order)[: max(0, limit)]


def rounded(similarity: float) -> float:
    """A similarity without the noise of its last digits."""
    return round(float(similarity), DIGITS)


def similarities(matrix: Matrix, vector: Vector) -> Vector:
    return np.round(matrix @ vector, DIGITS)


def largest(similarity: Vector, limit: int) -> list[int]:
    """The positions of the largest, unordered; ties with the last of them are included."""
    if limit >= len(similarity):
        return list(range(len(similarity)))
    least = np.partition(similarity, len(similarity) - limit)[len(similarity) - limit]
    return np.nonzero(similarity >= least)[0].tolist()


def _check(model: EmbeddingModel, vector: Vector, what: str) -> None:
    if vector.shape != (model.dimension,):
        shape = "×".join(str(length) for length in vector.shape)
        raise VectorIndexError(
            f"{what} has {shape} dimensions, those of {model.name!r} have {model.dimension}: if the embedder changed, run "
            "`pagefile rebuild` to rebuild all vectors."
        )
    if not np.isfinite(vector).all():
        raise VectorIndexError(
            f"{what} contains NaN or infinity: check what the embedder {model.name!r} returns."
        )
