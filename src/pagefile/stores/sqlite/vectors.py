"""Vectors as BLOBs beside the log, searched exactly, in memory.

A search reads what is new since the last one (from any process), multiplies in a thread, and checks whether what it found
still exists: a row never changes, so a place that exists is up to date. That is how erasures by other processes are noticed.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import anyio.to_thread

from pagefile.ports import EmbeddingModel, Vector, VectorHit
from pagefile.records import JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import to_json
from pagefile.stores.sql.plays import Play, Row, row, rows
from pagefile.stores.sql.rows import keys
from pagefile.stores.sql.vectors import SqlVectors
from pagefile.stores.sqlite.blocks import Blocks, Hit, Owner, View, vectors_of
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.player import ConnectionPlayer, sql
from pagefile.stores.vectors import Matrix, asked, largest, nearest, similarities

#: Ten thousand turns at 512 dimensions are 24 MB.
CACHE_BYTES = 256 * 1024 * 1024
_ROWS_A_CHUNK = 4096
#: Numbers in a matrix that takes about as long to multiply as to hand to a thread: two thousand turns at 512 dimensions.
_SMALL = 2**20
#: How often a search starts over because its results were erased or replaced meanwhile.
_MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Caught:
    owner: Owner
    view: View


class SqliteVectors(SqlVectors):
    name = "sqlite"

    def __init__(self, player: ConnectionPlayer, *, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(player)
        self._connections = player
        self._blocks = Blocks(cache_bytes)

    def _bound(self, vectors: Matrix) -> Sequence[bytes]:
        return [vector.tobytes() for vector in vectors.astype("<f2")]

    def forget(self) -> None:
        self._blocks.clear()

    async def search(
        self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
    ) -> list[VectorHit]:
        self._check_open()
        wanted = asked(model, vector)
        if wanted is None or limit <= 0:
            return []
        if scope.user is None and scope.conversation is None:
            return await self._connections.look(
                lambda connection: _search_tenant(connection, model, scope, wanted, limit)
            )
        hits: list[Hit] = []
        for _ in range(_MOST_ATTEMPTS):
            caught = await self._player.read(lambda: self._catch_up(model, scope))
            self._blocks.trim()
            if caught is None:
                return []
            hits = await _found(caught.view, wanted, limit)
            if await self._are_there(hits):
                break
            self._blocks.forget(caught.owner)
        return [hit.near for hit in hits]

    async def describe(self) -> JsonObject:
        self._check_open()
        file = await self._row("database_file", {})
        place = None if file is None else file[0] or None
        return {"backend": self.name, "version": None, "place": place, "cached": len(self._blocks)}

    def _catch_up(self, model: EmbeddingModel, scope: Scope) -> Play[_Caught | None]:
        """The owner's up-to-date block; None when the scope has nothing."""
        owner = yield from _owner(model, scope)
        if owner is None:
            return None
        block = self._blocks.of(owner, model.dimension)
        with block.lock:
            while found := (yield from _after(owner, block.known)):
                block.add(found)
                if len(found) < _ROWS_A_CHUNK:
                    break
            # A conversation that has the block to itself needs no picking.
            view = block.view(scope.conversation if owner[2] is not None else None)
        return None if view is None else _Caught(owner, view)

    async def _are_there(self, hits: Sequence[Hit]) -> bool:
        places = {"places": to_json([hit.place for hit in hits])}
        there = await self._row("episodes_there", places)
        return there is not None and there[0] == len(hits)


async def _found(view: View, vector: Vector, limit: int) -> list[Hit]:
    if view.matrix.size <= _SMALL:
        return view.search(vector, limit)
    return await anyio.to_thread.run_sync(view.search, vector, limit)


def _owner(model: EmbeddingModel, scope: Scope) -> Play[Owner | None]:
    """Whose block a scope is found in."""
    if scope.conversation is None:
        return model.key, scope.tenant, scope.user, None
    found = yield from row("owner", keys(scope))
    if found is None or not rules.sees(scope, found[0]):
        return None
    return model.key, scope.tenant, found[0], None if found[0] is not None else scope.conversation


def _after(owner: Owner, known: int) -> Play[list[Row]]:
    values = dict(zip(("maker", "tenant", "user", "conversation"), owner, strict=True))
    statement = "episodes_of_user" if owner[2] is not None else "episodes_of_conversation"
    return (yield from rows(statement, {**values, "known": known, "limit": _ROWS_A_CHUNK}))


def _search_tenant(
    connection: Connection, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
) -> list[VectorHit]:
    """All turns of a tenant, read in chunks and not cached: a whole tenant is rarely searched."""
    best: list[VectorHit] = []
    with closing(
        connection.execute(sql("episodes_of_tenant"), {**keys(scope), "maker": model.key})
    ) as cursor:
        rows = iter(cursor)
        while chunk := list(islice(rows, _ROWS_A_CHUNK)):
            similarity = similarities(vectors_of([row[4] for row in chunk]), vector)
            best = nearest([*best, *_nears(chunk, similarity, limit)], limit)
    return best


def _nears(rows: Sequence[Row], similarity: Vector, limit: int) -> list[VectorHit]:
    return [
        VectorHit(rows[at][2], rows[at][3], rows[at][1], float(similarity[at]))
        for at in largest(similarity, limit)
    ]
