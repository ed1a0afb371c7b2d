"""Vectors from any endpoint that speaks OpenAI's protocol."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pagefile.errors import MissingExtraError, ModelOutputError, ModelUnavailableError
from pagefile.models.embedders.lengths import checked_rows, of_unit_length, spread
from pagefile.ports import Embedder, Vector

#: What every such model accepts; most refuse more.
MAX_CHARS = 6000
#: How often a request is retried after a transient failure; the client waits longer each time.
RETRIES = 2


class OpenAIEmbedder(Embedder):
    """A model reached through the `openai` client; `base_url` may be any compatible server.

    `dimension` requests vectors of that length; without it the model's default applies, which is known from
    the first answer.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        dimension: int | None = None,
        batch: int = 64,
    ) -> None:
        self.name = model
        self.dimension = dimension or 0
        self.batch = batch
        self._asked = dimension
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._client: Any = None

    async def embed(self, texts: Sequence[str]) -> Vector:
        said = [text[:MAX_CHARS] for text in texts if text.strip()]
        made = [
            await self._answered(said[start : start + self.batch])
            for start in range(0, len(said), self.batch)
        ]
        rows = np.concatenate(made) if made else np.zeros((0, self.dimension), dtype=np.float32)
        return spread(of_unit_length(rows), texts, self.dimension)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _answered(self, texts: Sequence[str]) -> Vector:
        client = self._open()
        asked = {"dimensions": self._asked} if self._asked else {}
        try:
            answer = await client.embeddings.create(model=self.name, input=list(texts), **asked)
            given = sorted(answer.data, key=lambda one: one.index)
        except cast("type[Exception]", _openai().OpenAIError) as error:
            # The client's own message may quote the key.
            raise ModelUnavailableError(
                f"The embedder {self.name!r} did not answer ({_reason(error)})."
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            # A response outside the protocol breaks the client in unpredictable ways.
            raise ModelOutputError(
                f"The embedder {self.name!r} gave an answer that is no embeddings."
            ) from error
        rows = checked_rows([one.embedding for one in given], len(texts), f"The embedder {self.name!r}")
        if self.dimension and rows.shape[1] != self.dimension:
            raise ModelOutputError(
                f"The embedder {self.name!r} gave vectors of {rows.shape[1]} numbers instead of {self.dimension}."
            )
        self.dimension = rows.shape[1]
        return rows

    def _open(self) -> Any:
        if self._client is None:
            self._client = _openai().AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key or "none",
                timeout=self._timeout_s,
                max_retries=RETRIES,
            )
        return self._client


def _reason(error: Exception) -> str:
    status = cast("int | None", getattr(error, "status_code", None))
    return type(error).__name__ if status is None else f"{type(error).__name__}, status {status}"


def _openai() -> Any:
    try:
        import openai  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtraError.of("openai", "An embedder behind an endpoint") from error
    return openai
