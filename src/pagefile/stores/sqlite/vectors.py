"""Vectors as BLOBs beside the log, searched exactly, in memory.

A search reads what is new since the last one (from any process), multiplies in a thread, and checks whether what it found
still exists: a row never changes, so a place that exists is up to date. That is how erasures by other processes are noticed.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import anyio.to_thread

from pagefile.arrays import Int32s, Int64s, Numbers, np
from pagefile.lru import Lru
from pagefile.ports import EmbeddingModel, Vector, VectorHit
from pagefile.records import JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import to_json
from pagefile.stores.sql.plays import Play, Row, row, rows
from pagefile.stores.sql.rows import keys
from pagefile.stores.sql.vectors import SqlVectors
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


#: A model, a tenant, and the user, or the conversation if it has no owner.
Owner: TypeAlias = tuple[str, str, str | None, str | None]
#: A turn that was found, and the place of its row.
Hit: TypeAlias = tuple[VectorHit, int]

_ROWS_AT_FIRST = 64
#: From this share of rows on, multiplying all of them is faster than picking.
_MANY = 0.1
#: What a row costs besides its vector: ids, places and its dict entry.
_BYTES_BESIDE = 400


@dataclass(frozen=True, slots=True)
class View:
    """A block as it was at one moment; what is added later does not change it."""

    matrix: Matrix
    places: Int64s
    codes: Int32s
    seqs: Int64s
    ids: Sequence[str]
    names: Sequence[str]
    #: Only this conversation; None: all of them.
    code: int | None

    def search(self, vector: Vector, limit: int) -> list[Hit]:
        rows = None if self.code is None else np.nonzero(self.codes == self.code)[0]
        # Picking rows copies them: for many rows, it is faster to multiply all.
        if rows is None or len(rows) > _MANY * len(self.matrix):
            similarity = similarities(self.matrix, vector)
            similarity = similarity if rows is None else similarity[rows]
        else:
            similarity = similarities(self.matrix[rows], vector)
        best = np.array(largest(similarity, limit), dtype=np.int64)
        at: list[int] = (best if rows is None else rows[best]).tolist()
        far: list[float] = (-similarity[best]).tolist()
        codes: list[int] = self.codes[at].tolist()
        seqs: list[int] = self.seqs[at].tolist()
        # In the `order` of all stores, as tuples: there are a thousand.
        found = sorted(zip(far, [self.names[code] for code in codes], seqs, at, strict=True))[:limit]
        return [
            (VectorHit(name, seq, self.ids[row], -away), int(self.places[row]))
            for away, name, seq, row in found
        ]


class Block:
    """The vectors of one owner. Rows are appended after those that views hold; replacing a row makes a copy."""

    def __init__(self, dimension: int) -> None:
        self.lock = threading.Lock()
        #: Everything up to this place was read.
        self.known = 0
        self._count = 0
        self._matrix: Matrix = np.empty((_ROWS_AT_FIRST, dimension), np.float32)
        self._places = np.empty(_ROWS_AT_FIRST, np.int64)
        self._codes = np.empty(_ROWS_AT_FIRST, np.int32)
        self._seqs = np.empty(_ROWS_AT_FIRST, np.int64)
        self._ids: list[str] = []
        self._names: list[str] = []
        self._code_of: dict[str, int] = {}
        self._row_of: dict[tuple[int, int], int] = {}

    @property
    def bytes(self) -> int:
        return self._matrix.nbytes + len(self._matrix) * _BYTES_BESIDE

    def add(self, rows: Sequence[Row]) -> None:
        """Take in rows of `episodes_of_…`, in the order of their places."""
        if not rows:
            return
        vectors = vectors_of([row[4] for row in rows])
        at = [self._at(conversation, seq) for _, _, conversation, seq, _ in rows]
        self._make_room(replaced=min(at) < self._count, rows=max(at) + 1)
        self._matrix[at] = vectors
        self._places[at] = [row[0] for row in rows]
        self._seqs[at] = [row[3] for row in rows]
        self._codes[at] = [self._code_of[row[2]] for row in rows]
        for place, added in zip(at, rows, strict=True):
            self._ids[place : place + 1] = [added[1]]
        self._count = len(self._row_of)
        self.known = rows[-1][0]

    def view(self, conversation: str | None) -> View | None:
        """What is there now, of one conversation or of all; None when there is nothing."""
        if not self._count or (conversation is not None and conversation not in self._code_of):
            return None
        end, code = self._count, None if conversation is None else self._code_of[conversation]
        places, codes, seqs = self._places[:end], self._codes[:end], self._seqs[:end]
        return View(self._matrix[:end], places, codes, seqs, self._ids, self._names, code)

    def _at(self, conversation: str, seq: int) -> int:
        code = self._code_of.get(conversation)
        if code is None:
            code = self._code_of[conversation] = len(self._names)
            self._names.append(conversation)
        return self._row_of.setdefault((code, seq), len(self._row_of))

    def _make_room(self, *, replaced: bool, rows: int) -> None:
        if rows <= len(self._matrix) and not replaced:
            return
        size = len(self._matrix) if rows <= len(self._matrix) else max(_ROWS_AT_FIRST, rows + rows // 4)
        self._matrix, self._places = _copied(self._matrix, size), _copied(self._places, size)
        self._codes, self._seqs = _copied(self._codes, size), _copied(self._seqs, size)
        self._ids = list(self._ids)


class Blocks:
    """Blocks by owner; the least recently used are evicted beyond a limit. Used from several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._blocks: Lru[Owner, Block] = Lru(most_bytes, lambda block: block.bytes)

    def of(self, owner: Owner, dimension: int) -> Block:
        with self._lock:
            block = self._blocks.get(owner)
            if block is None:
                block = self._blocks[owner] = Block(dimension)
            return block

    def trim(self) -> None:
        """Evict blocks beyond the limit; a search that is running keeps its block until it ends.

        The block in use stays, however large: reading it again for each query takes as much memory, and far longer.
        """
        with self._lock:
            if self._most_bytes:
                self._blocks.trim()
            else:
                self._blocks.clear()

    def forget(self, owner: Owner) -> None:
        with self._lock:
            self._blocks.pop(owner, None)

    def clear(self) -> None:
        with self._lock:
            self._blocks.clear()

    def __len__(self) -> int:
        return len(self._blocks)


def vectors_of(blobs: Sequence[bytes]) -> Matrix:
    return np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1).astype(np.float32)


def _copied(array: Numbers, size: int) -> Numbers:
    copy = np.empty((size, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array[:size]
    return copy


class SqliteVectors(SqlVectors):
    def __init__(self, player: ConnectionPlayer, name: str, *, cache_bytes: int) -> None:
        super().__init__(player)
        self.name = name
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
            owner, view = caught
            if view.matrix.size <= _SMALL:
                hits = view.search(wanted, limit)
            else:
                hits = await anyio.to_thread.run_sync(view.search, wanted, limit)
            there = await self._row("episodes_there", {"places": to_json([place for _, place in hits])})
            if there is not None and there[0] == len(hits):
                break
            self._blocks.forget(owner)
        return [near for near, _ in hits]

    async def describe(self) -> JsonObject:
        self._check_open()
        file = await self._row("database_file", {})
        place = None if file is None else file[0] or None
        return {"backend": self.name, "version": None, "place": place, "cached": len(self._blocks)}

    def _catch_up(self, model: EmbeddingModel, scope: Scope) -> Play[tuple[Owner, View] | None]:
        """The owner's up-to-date block; None when the scope has nothing."""
        owner = yield from _owner(model, scope)
        if owner is None:
            return None
        block = self._blocks.of(owner, model.dimension)
        statement = "episodes_of_user" if owner[2] is not None else "episodes_of_conversation"
        values = dict(zip(("maker", "tenant", "user", "conversation"), owner, strict=True))
        chunk = {**values, "limit": _ROWS_A_CHUNK}
        with block.lock:
            while found := (yield from rows(statement, {**chunk, "known": block.known})):
                block.add(found)
                if len(found) < _ROWS_A_CHUNK:
                    break
            # A conversation that has the block to itself needs no picking.
            view = block.view(scope.conversation if owner[2] is not None else None)
        return None if view is None else (owner, view)


def _owner(model: EmbeddingModel, scope: Scope) -> Play[Owner | None]:
    """Whose block a scope is found in."""
    if scope.conversation is None:
        return model.key, scope.tenant, scope.user, None
    found = yield from row("owner", keys(scope))
    if found is None or not rules.sees(scope, found[0]):
        return None
    return model.key, scope.tenant, found[0], None if found[0] is not None else scope.conversation


def _search_tenant(
    connection: Connection, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
) -> list[VectorHit]:
    """All turns of a tenant, read in chunks and not cached: a whole tenant is rarely searched."""
    best: list[VectorHit] = []
    values = {**keys(scope), "maker": model.key}
    with closing(connection.execute(sql("episodes_of_tenant"), values)) as cursor:
        rows = iter(cursor)
        while chunk := list(islice(rows, _ROWS_A_CHUNK)):
            similarity = similarities(vectors_of([row[4] for row in chunk]), vector)
            for at in largest(similarity, limit):
                _, turn_id, conversation, seq, _ = chunk[at]
                best.append(VectorHit(conversation, seq, turn_id, float(similarity[at])))
            best = nearest(best, limit)
    return best
