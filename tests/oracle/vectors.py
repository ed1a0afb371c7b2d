"""Vectors in a dict, compared one after the other."""

from collections.abc import Sequence

import numpy as np

from pagefile.errors import ClosedError
from pagefile.ports import Collection, EmbeddingModel, HeldVector, Vector, VectorHit, VectorIndex, VectorRow
from pagefile.records import JsonObject, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.vectors import asked, batch_of, nearest, rounded
from tests.oracle.tables import Port, Tables

#: Tenant, conversation and position of a turn.
_Key = tuple[str, str, int]


class OracleVectors(Port, VectorIndex):
    """They are erased with the turns they belong to."""

    name = "memory"

    _closed = False

    async def prepare(self, model: EmbeddingModel) -> None:
        self._tables.vectors.setdefault(model, {})

    async def put(
        self, model: EmbeddingModel, rows: Sequence[VectorRow], *, epoch: int | None = None
    ) -> None:
        self._tables.check_epoch(epoch, *(row.scope for row in rows))
        (kept, vectors, gone), collection = batch_of(model, rows), self._tables.vectors.setdefault(model, {})
        for row in gone:
            collection.pop(_key(row), None)
        for row, vector in zip(kept, vectors, strict=True):
            if self._is_there(_key(row), row.turn_id):
                collection[_key(row)] = row.turn_id, vector

    async def search(
        self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
    ) -> list[VectorHit]:
        wanted = asked(model, vector)
        if wanted is None:
            return []
        found = [
            VectorHit(key[1], key[2], turn_id, rounded(np.dot(kept, wanted)))
            for key, (turn_id, kept) in self._living(model).items()
            if rules.lists(scope, self._owned(key))
        ]
        return nearest(found, limit)

    async def collections(self) -> list[Collection]:
        models = sorted(self._tables.vectors, key=lambda model: model.key)
        return [Collection(model, len(self._living(model))) for model in models]

    async def held(self, model: EmbeddingModel, scope: Scope, after: int, through: int) -> list[HeldVector]:
        place = scope.tenant, rules.conversation_of(scope)
        found = [
            HeldVector(key[2], turn_id)
            for key, (turn_id, _) in self._living(model).items()
            if key[:2] == place and after < key[2] <= through
        ]
        return sorted(found, key=lambda one: one.seq)

    async def drop(self, model: EmbeddingModel) -> int:
        count = len(self._living(model))
        self._tables.vectors.pop(model, None)
        return count

    async def erase(self, scope: Scope) -> int:
        count = 0
        for model, collection in self._tables.vectors.items():
            gone = [key for key in self._living(model) if self._owned(key).within(scope)]
            count += len(gone)
            for key in gone:
                del collection[key]
        return count

    async def describe(self) -> JsonObject:
        self._tables.check_open()
        return {"backend": "memory", "version": None, "place": None}

    async def close(self) -> None:
        self._closed = True

    @property
    def _tables(self) -> Tables:
        if self._closed:
            raise ClosedError
        return super()._tables

    def _living(self, model: EmbeddingModel) -> dict[_Key, tuple[str, Vector]]:
        """The vectors of turns that still exist; the rest is dropped."""
        collection = self._tables.vectors.get(model, {})
        for key in [key for key, (turn_id, _) in collection.items() if not self._is_there(key, turn_id)]:
            del collection[key]
        return collection

    def _is_there(self, key: _Key, turn_id: str) -> bool:
        # For each vector: the verb has checked that it is open.
        conversation = self._shared.conversations.get(key[:2])
        entry = conversation.ended[key[2] - 1 : key[2]] if conversation is not None and key[2] > 0 else []
        return [turn_id] == [turn.id for turn in entry if isinstance(turn, Turn)]

    def _owned(self, key: _Key) -> Scope:
        return self._shared.conversations[key[:2]].scope


def _key(row: VectorRow) -> _Key:
    return row.scope.tenant, rules.conversation_of(row.scope), row.seq
