"""Vectors for everybody from one place: the benchmark's own process has the encoder, those who are measured ask it.

So the encoder is in no system's memory, and the time spent waiting for it is known and subtracted.
"""

import secrets
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, cast

import anyio
import anyio.to_thread
import numpy as np

from benchmarks.peers_script import SERIAL
from pagefile.ports import Embedder, Vector

#: What the encoder reads of a text, see `models.embedders`.
_READ_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """Where vectors are to be had; a stranger has no key."""

    place: str
    key: str


class VectorServer:
    """Makes each vector once, and answers everybody who connects."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._made: dict[str, Vector] = {}
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def serving(self) -> Generator[Address]:
        """Where it answers, for as long as this lasts."""
        key = secrets.token_hex()
        # No port: there, a head and a body that wait for each other cost 40 ms.
        with Listener(authkey=key.encode()) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            yield Address(cast("str", listener.address), key)

    def vectors(self, texts: Sequence[str]) -> Vector:
        """One for each text."""
        keys = [plain(text) for text in texts]
        with self._one_at_a_time:
            missing = list(dict.fromkeys(key for key in keys if key not in self._made))
            if missing:
                self._made |= zip(missing, anyio.run(self._embedder.embed, missing), strict=True)
        rows = [self._made[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self._embedder.dimension), dtype=np.float32)

    def _accept(self, listener: Listener) -> None:
        # Closing the listener ends it.
        with suppress(OSError, EOFError):
            while True:
                caller = listener.accept()
                threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: "Connection[Any, Any]") -> None:
        with suppress(OSError, EOFError), caller:
            caller.send((self._embedder.name, self._embedder.dimension))
            while True:
                caller.send(self.vectors(caller.recv()))


class Vectors(Embedder):
    """The embedder of those who are measured; it knows how long they waited for it."""

    batch = 16

    def __init__(self, address: Address) -> None:
        self._server: Connection[Any, Any] = Client(address.place, authkey=address.key.encode())
        self.name, self.dimension = self._server.recv()
        self._one_at_a_time = threading.Lock()
        #: Seconds.
        self.waited = 0.0

    async def embed(self, texts: Sequence[str]) -> Vector:
        return await anyio.to_thread.run_sync(self.asked, texts)

    def now(self, texts: Sequence[str]) -> list[list[float]]:
        """The same for those who want lists, and wait."""
        return self.asked(texts).tolist()

    def asked(self, texts: Sequence[str]) -> Vector:
        """The same for those who wait."""
        began = time.perf_counter()
        with self._one_at_a_time:
            self._server.send(list(texts))
            made = cast("Vector", self._server.recv())
        self.waited += time.perf_counter() - began
        return made


def plain(text: str) -> str:
    """A text without its number, as far as the encoder reads it."""
    return SERIAL.sub("", text[: _READ_CHARS + 20])[:_READ_CHARS]
