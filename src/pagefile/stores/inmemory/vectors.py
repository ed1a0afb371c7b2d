"""Vectors in a dict, compared one after the other."""

from collections.abc import Sequence

import numpy as np

from pagefile.errors import ClosedError
from pagefile.ports import HeldVector, Maker, Near, Shelf, Vector, VectorHome, VectorRow
from pagefile.records import JsonObject, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.inmemory.room import Port, Room
from pagefile.stores.vectors import asked, batch_of, nearest, rounded

#: Tenant, conversation and place of a turn.
_Key = tuple[str, str, int]


class InMemoryVectors(Port, VectorHome):
    """The vectors of `memory://`. They go with the turns they belong to."""

    name = "memory"

    _closed = False

    async def prepare(self, maker: Maker) -> None:
        self._room.vectors.setdefault(maker, {})

    async def put(self, maker: Maker, rows: Sequence[VectorRow], *, epoch: int | None = None) -> None:
        self._room.check_epoch(epoch, *(row.scope for row in rows))
        batch, shelf = batch_of(maker, rows), self._room.vectors.setdefault(maker, {})
        for row in batch.gone:
            shelf.pop(_key(row), None)
        for row, vector in zip(batch.kept, batch.vectors, strict=True):
            if self._is_there(_key(row), row.turn_id):
                shelf[_key(row)] = row.turn_id, vector

    async def search(self, maker: Maker, scope: Scope, vector: Vector, limit: int) -> list[Near]:
        wanted = asked(maker, vector)
        if wanted is None:
            return []
        found = [
            Near(key[1], key[2], turn_id, rounded(np.dot(kept, wanted)))
            for key, (turn_id, kept) in self._living(maker).items()
            if rules.lists(scope, self._owned(key))
        ]
        return nearest(found, limit)

    async def shelves(self) -> list[Shelf]:
        makers = sorted(self._room.vectors, key=lambda maker: maker.key)
        return [Shelf(maker, len(self._living(maker))) for maker in makers]

    async def held(self, maker: Maker, scope: Scope, after: int, through: int) -> list[HeldVector]:
        place = scope.tenant, rules.conversation_of(scope)
        found = [
            HeldVector(key[2], turn_id)
            for key, (turn_id, _) in self._living(maker).items()
            if key[:2] == place and after < key[2] <= through
        ]
        return sorted(found, key=lambda one: one.seq)

    async def drop(self, maker: Maker) -> int:
        count = len(self._living(maker))
        self._room.vectors.pop(maker, None)
        return count

    async def erase(self, scope: Scope) -> int:
        count = 0
        for maker, shelf in self._room.vectors.items():
            gone = [key for key in self._living(maker) if self._owned(key).within(scope)]
            count += len(gone)
            for key in gone:
                del shelf[key]
        return count

    async def describe(self) -> JsonObject:
        self._room.check_open()
        return {"backend": "memory", "version": None, "place": None}

    async def close(self) -> None:
        self._closed = True

    @property
    def _room(self) -> Room:
        if self._closed:
            raise ClosedError
        return super()._room

    def _living(self, maker: Maker) -> dict[_Key, tuple[str, Vector]]:
        """What belongs to turns that are still there; the rest is let go of."""
        shelf = self._room.vectors.get(maker, {})
        for key in [key for key, (turn_id, _) in shelf.items() if not self._is_there(key, turn_id)]:
            del shelf[key]
        return shelf

    def _is_there(self, key: _Key, turn_id: str) -> bool:
        conversation = self._room.conversations.get(key[:2])
        entry = conversation.ended[key[2] - 1 : key[2]] if conversation is not None and key[2] > 0 else []
        return [turn_id] == [turn.id for turn in entry if isinstance(turn, Turn)]

    def _owned(self, key: _Key) -> Scope:
        return self._room.conversations[key[:2]].scope


def _key(row: VectorRow) -> _Key:
    return row.scope.tenant, rules.conversation_of(row.scope), row.seq
