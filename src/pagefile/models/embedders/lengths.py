"""Unit-length vectors, whatever a model returns."""

from collections.abc import Sequence

import numpy as np

from pagefile.errors import ModelOutputError
from pagefile.ports import Vector


def of_unit_length(rows: Vector) -> Vector:
    """Each row divided by its length; a row of zeros is unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def spread(rows: Vector, texts: Sequence[str], dimension: int) -> Vector:
    """Rows for all texts, given those of the non-blank ones: the others get zeros."""
    full = np.zeros((len(texts), dimension), dtype=np.float32)
    full[[number for number, text in enumerate(texts) if text.strip()]] = rows
    return full


def checked_rows(given: object, wanted: int, who: str) -> Vector:
    """A model's answer as rows, one per text, or an error that says what is wrong with it."""
    try:
        rows = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ModelOutputError(
            f"{who} gave vectors that are no numbers, or not all of one length."
        ) from error
    if rows.ndim != 2 or not rows.shape[1]:
        raise ModelOutputError(f"{who} gave no vectors.")
    if len(rows) != wanted:
        raise ModelOutputError(f"{who} gave {len(rows)} vectors for {wanted} texts.")
    if not np.isfinite(rows).all():
        raise ModelOutputError(f"{who} gave a vector with numbers that are none (NaN or infinite).")
    return rows
