"""Vectors of turns in the log's database. Each backend searches them in its own way."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pagefile.errors import ClosedError
from pagefile.ports import Collection, EmbeddingModel, HeldVector, VectorIndex, VectorRow
from pagefile.records import Scope
from pagefile.stores.sql.plays import Play, SqlPort, Values, count, many
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import keys, part_of
from pagefile.stores.sql.texts import ALL_TENANTS
from pagefile.stores.vectors import Matrix, batch_of


class SqlVectors(SqlPort, VectorIndex, ABC):
    """Rows of `conversation_episodes`, all models in one table. They are erased with their conversation."""

    #: How many rows one transaction writes or removes, so that recording a turn never waits long for vectors.
    rows_at_once = 500
    _closed = False

    @abstractmethod
    def _bound(self, vectors: Matrix) -> Sequence[Any]:
        """Vectors as the database takes them."""

    async def _is_there(self) -> bool:
        """Whether there are tables for vectors."""
        self._check_open()
        return True

    def forget(self) -> None:
        """Drop the in-memory cache: something was removed."""

    async def _ready(self, model: EmbeddingModel) -> None:
        """Create what is needed to put vectors of this model."""

    async def prepare(self, model: EmbeddingModel) -> None:
        self._check_open()
        values = _maker_values(model)
        if await self._row("maker_known", values) is None:
            await self._change("maker_write", values)

    async def put(
        self, model: EmbeddingModel, rows: Sequence[VectorRow], *, epoch: int | None = None
    ) -> None:
        self._check_open()
        new, vectors, zeros = batch_of(model, rows)
        await self._ready(model)
        gone = [_row_key(model, row) for row in zeros]
        kept: list[Values] = [
            {**_row_key(model, row), "id": row.turn_id, "vector": vector, "seconds": int(row.at.timestamp())}
            for row, vector in zip(new, self._bound(vectors), strict=True)
        ]
        scopes = [row.scope for row in rows]

        def play(part: slice) -> Play[None]:
            yield from check_writable(epoch, scopes)
            yield from count("maker_again", _maker_values(model))
            yield from many("episode_drop", gone[part])
            yield from many("episode_write", kept[part])

        for start in range(0, max(len(kept), len(gone)), self.rows_at_once):
            part = slice(start, start + self.rows_at_once)
            await self._player.write(lambda part=part: play(part))

    async def collections(self) -> list[Collection]:
        found = await self._rows("makers", ALL_TENANTS) if await self._is_there() else []
        return [Collection(EmbeddingModel(*model), vectors) for *model, vectors in found]

    async def models(self) -> list[EmbeddingModel]:
        found = await self._rows("makers_used", ALL_TENANTS) if await self._is_there() else []
        return [EmbeddingModel(*model) for model in found]

    async def held(self, model: EmbeddingModel, scope: Scope, after: int, through: int) -> list[HeldVector]:
        values = {**keys(scope), **_maker_values(model), "after_seq": after, "through": through}
        found = await self._rows("vectors_held", values) if await self._is_there() else []
        return [HeldVector(seq, turn_id, bool(fits)) for seq, turn_id, fits in found]

    async def drop(self, model: EmbeddingModel) -> int:
        values = {**ALL_TENANTS, **_maker_values(model), "limit": self.rows_at_once}
        total = 0
        while gone := await self._removed("episodes_drop", values):
            total += gone
        if total or await self._is_there():
            await self._change("maker_drop", values)
        return total

    async def erase(self, scope: Scope) -> int:
        return await self._removed(f"erase_episodes_of_{part_of(scope)}", keys(scope))

    async def close(self) -> None:
        self._closed = True
        self.forget()

    async def _removed(self, statement: str, values: Values) -> int:
        """How many rows a statement removed, none of which stays in memory or in the database's write-ahead log."""
        if not await self._is_there():
            return 0
        gone = await self._player.write(lambda: count(statement, values), erases=True)
        self.forget()
        return gone

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError


def _row_key(model: EmbeddingModel, row: VectorRow) -> Values:
    return {**keys(row.scope), "maker": model.key, "seq": row.seq}


def _maker_values(model: EmbeddingModel) -> Values:
    # `version` is a number in other statements.
    return {**asdict(model), "maker": model.key, "made_by": model.version}
