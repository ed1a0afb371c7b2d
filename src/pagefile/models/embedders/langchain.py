"""Vectors from an object with LangChain's interface; LangChain itself is not required."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

import numpy as np

from pagefile.errors import ModelOutputError, ModelUnavailableError, PagefileError
from pagefile.models.embedders.lengths import checked_rows, of_unit_length, spread
from pagefile.ports import Embedder, Vector


class Embeddings(Protocol):
    """The required interface, which every LangChain `Embeddings` has."""

    def aembed_documents(self, texts: list[str], /) -> Awaitable[list[list[float]]]: ...


class LangChainEmbedder(Embedder):
    """Uses a LangChain `Embeddings` object. Vectors made under different names are never compared."""

    def __init__(self, embeddings: Embeddings, *, name: str, dimension: int = 0, batch: int = 32) -> None:
        self._embeddings = embeddings
        self.name = name
        self.dimension = dimension
        self.batch = batch

    async def embed(self, texts: Sequence[str]) -> Vector:
        said = [text for text in texts if text.strip()]
        if not said:
            return np.zeros((len(texts), self.dimension), dtype=np.float32)
        try:
            given = await self._embeddings.aembed_documents(said)
        except PagefileError:
            raise
        except Exception as error:
            raise ModelUnavailableError(
                f"The embedder {self.name!r} failed ({type(error).__name__})."
            ) from error
        rows = checked_rows(given, len(said), f"The embedder {self.name!r}")
        if self.dimension and rows.shape[1] != self.dimension:
            raise ModelOutputError(
                f"The embedder {self.name!r} gave vectors of {rows.shape[1]} numbers instead of {self.dimension}."
            )
        self.dimension = rows.shape[1]
        return spread(of_unit_length(rows), texts, self.dimension)
