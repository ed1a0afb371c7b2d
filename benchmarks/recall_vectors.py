"""An embedder that works out each text once in a run, for everybody who is compared."""

from collections.abc import Sequence

import anyio.from_thread
import numpy as np
from anyio.lowlevel import EventLoopToken, current_token

from pagefile.ports import Embedder, Vector


class Remembered(Embedder):
    """Another embedder's vectors, each made once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._made: dict[str, Vector] = {}
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.batch = embedder.batch
        self._loop: EventLoopToken | None = None

    async def embed(self, texts: Sequence[str]) -> Vector:
        self._loop = current_token()
        missing = list(dict.fromkeys(text for text in texts if text not in self._made))
        for start in range(0, len(missing), self.batch):
            part = missing[start : start + self.batch]
            self._made |= zip(part, await self._embedder.embed(part), strict=True)
        rows = [self._made[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def now(self, texts: Sequence[str]) -> list[list[float]]:
        """The same for those who wait for it in a thread, of anyio's or, once somebody embedded something, of their own."""
        return anyio.from_thread.run(self.embed, texts, token=self._loop).tolist()
