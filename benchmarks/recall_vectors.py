"""Embedders that work out each text once: in a run, for everybody who is compared, or for all runs, in a file."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import anyio.from_thread
import numpy as np
from anyio.lowlevel import EventLoopToken, current_token

from pagefile.ports import Embedder, Vector


class Remembered(Embedder):
    """Another embedder's vectors, each made once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._made: dict[str, Vector] = {}
        self.name, self.version = embedder.name, embedder.version
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


class OnDisk(Embedder):
    """Another embedder's vectors, kept in a file for the runs to come: whole sets take an hour to embed."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.name, self.version = embedder.name, embedder.version
        self.dimension = embedder.dimension
        self.batch = embedder.batch
        folder.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(folder / "vectors.db", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA synchronous = off")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS made (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    async def embed(self, texts: Sequence[str]) -> Vector:
        keys = [
            hashlib.blake2b(f"{self.name}{self.version}\n{text}".encode("utf-8", "replace")).digest()
            for text in texts
        ]
        made = {key: found for key in dict.fromkeys(keys) if (found := self._found(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in made}
        if missing:
            made |= zip(missing, await self._embedder.embed(list(missing.values())), strict=True)
            rows = [(key, np.asarray(made[key], np.float32).tobytes()) for key in missing]
            self._file.executemany("INSERT OR IGNORE INTO made VALUES (?, ?)", rows)
        rows = [made[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def _found(self, key: bytes) -> Vector | None:
        row = self._file.execute("SELECT vector FROM made WHERE text = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)

    async def close(self) -> None:
        self._file.close()
        await self._embedder.close()
