"""An embedder without a model: texts that share character n-grams are similar."""

import zlib
from collections.abc import Sequence

import numpy as np

from pagefile.ports import Embedder, Vector

_RUNS = (1, 2, 3)


class HashingEmbedder(Embedder):
    """Hashes n-grams of one to three characters into `dimension` buckets; the same text always gives the same vector."""

    def __init__(self, dimension: int = 64, *, name: str = "hashing") -> None:
        self.name = name
        self.dimension = dimension
        #: How many texts were embedded.
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> Vector:
        self.embedded += len(texts)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            plain = text.strip().casefold()
            for size in _RUNS:
                for at in range(len(plain) - size + 1):
                    row[zlib.crc32(plain[at : at + size].encode()) % self.dimension] += 1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
