"""What of a turn is embedded, and how its texts become one vector."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: What a side is about stands at its beginning.
EMBEDDED_CHARS = 500


def embedded_texts(user: str | None, assistant: str | None) -> tuple[str, ...]:
    """The texts whose vectors make up that of a turn: what the user said and the head of the answer."""
    sides = ((side or "").strip() for side in (user, assistant))
    return tuple(side[:EMBEDDED_CHARS] for side in sides if side)


def blended(vectors: Sequence[Sequence[float] | npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The direction between vectors of unit length; of zeros, zeros."""
    mean = np.mean(np.asarray(vectors, dtype=np.float32), axis=0)
    length = float(np.linalg.norm(mean))
    return (mean / length if length else mean).astype(np.float32)
