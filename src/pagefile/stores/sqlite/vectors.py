"""Vectors as BLOBs beside the log, searched exactly, in memory.

A search reads what is new since the last one, from any process, and multiplies, in the thread of a connection. A row never
changes, so as long as there are as many rows as were read, they are the same ones: that is how erasures by other processes
are noticed. If nothing was written to the database at all, not even that is read.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar, cast

from pagefile.arrays import Column, Float32s, Int64s, Keyed, Numbers, Texts, np
from pagefile.lru import Lru
from pagefile.ports import EmbeddingModel, Vector, VectorHit
from pagefile.records import JsonObject, Scope
from pagefile.stores import quantised, rules
from pagefile.stores.sql.plays import Play, Row, row, rows
from pagefile.stores.sql.rows import keys
from pagefile.stores.sql.vectors import SqlVectors
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.player import ConnectionPlayer, played, sql
from pagefile.stores.vectors import DIGITS, Matrix, asked, largest, nearest, similarities

R = TypeVar("R")

#: Ten thousand turns at 384 dimensions are 13 MB.
CACHE_BYTES = 256 * 1024 * 1024
_ROWS_A_CHUNK = 1024

#: A model, a tenant, and the user, or the conversation if it has no owner.
Owner: TypeAlias = tuple[str, str, str | None, str | None]

#: What a row costs besides its vector and its id: a key and a hash.
_BYTES_BESIDE = 16
#: A conversation's number and a seq make a key.
_SEQ_BITS = 32


@dataclass(frozen=True, slots=True)
class View:
    """A block as it was at one moment; what is added later does not change it."""

    vectors: quantised.View
    keys: Int64s
    hashes: Int64s
    ids: Texts
    names: Sequence[str]
    #: Only this conversation; None: all of them.
    code: int | None

    def search(self, vector: Vector, limit: int) -> list[VectorHit]:
        rows, similarity = self._nearest(vector, limit)
        codes, seqs = self._places(rows)
        columns = (codes.tolist(), seqs.tolist(), rows.tolist(), similarity.tolist())
        found = [
            VectorHit(self.names[code], seq, self.ids[row], near)
            for code, seq, row, near in cast(
                "Iterable[tuple[int, int, int, float]]", zip(*columns, strict=True)
            )
        ]
        return nearest(found, limit)

    def similarities(self, vector: Vector, limit: int) -> Keyed:
        rows, similarity = self._nearest(vector, limit)
        return Keyed(self.hashes[rows], similarity.astype(np.float64))

    def _nearest(self, vector: Vector, limit: int) -> tuple[Int64s, Float32s]:
        """The nearest rows, in any order."""
        among = None if self.code is None else self.keys >> _SEQ_BITS == self.code
        rows, similarity = self.vectors.nearest(vector, limit, among)
        similarity = np.round(similarity, DIGITS)
        best = largest(similarity, limit)
        rows, similarity = rows[best], similarity[best]
        if len(rows) <= limit:
            return rows, similarity
        # Several are as near as the last one: who comes first is in the `order` of all stores.
        codes, seqs = self._places(rows)
        names, which = np.unique(codes, return_inverse=True)
        named: list[str] = [self.names[int(code)] for code in names]
        ranks = np.empty(len(named), np.int64)
        ranks[sorted(range(len(named)), key=named.__getitem__)] = np.arange(len(named))
        order = np.lexsort((seqs, ranks[which], -similarity))[:limit]
        return rows[order], similarity[order]

    def _places(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """The number of the conversation of each row, and its seq."""
        return self.keys[rows] >> _SEQ_BITS, self.keys[rows] & (1 << _SEQ_BITS) - 1


class Block:
    """The vectors of one owner. Rows are only ever added; once one is replaced, all are read again."""

    def __init__(self, dimension: int) -> None:
        self.lock = threading.Lock()
        self._dimension = dimension
        #: The version of the database, as each connection counts them, in which everything was read.
        self.seen: dict[Connection, object] = {}
        self.clear()

    def __len__(self) -> int:
        return len(self._ids)

    def clear(self) -> None:
        #: Everything up to this place was read.
        self.known = 0
        self._vectors = quantised.Rows(self._dimension)
        self._keys = Column(np.int64)
        #: The hash of the conversation, seq and id of each.
        self._hashes = Column(np.int64)
        self._ids = Texts()
        self._names: list[str] = []
        self._code_of: dict[str, int] = {}
        #: The highest key of each conversation.
        self._last: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        return self._vectors.bytes + self._ids.bytes + len(self._ids) * _BYTES_BESIDE

    def add(self, rows: Sequence[Row]) -> None:
        """Take in rows of `episodes_of_…`, in the order of their places."""
        keys = [self._key(conversation, seq) for _, _, conversation, seq, _ in rows]
        if self._replaces(keys):
            self.clear()
            return
        self._vectors.add(halves_of([row[4] for row in rows]))
        self._keys.extend(keys)
        self._hashes.extend([hash((conversation, seq, turn_id)) for _, turn_id, conversation, seq, _ in rows])
        self._ids.extend([row[1] for row in rows])
        self.known = rows[-1][0]

    def view(self, conversation: str | None) -> View | None:
        """What is there now, of one conversation or of all; None when there is nothing."""
        if not len(self._ids) or (conversation is not None and conversation not in self._code_of):
            return None
        code = None if conversation is None else self._code_of[conversation]
        return View(self._vectors.view(), self._keys.view, self._hashes.view, self._ids, self._names, code)

    def _key(self, conversation: str, seq: int) -> int:
        code = self._code_of.get(conversation)
        if code is None:
            code = self._code_of[conversation] = len(self._names)
            self._names.append(conversation)
        return code << _SEQ_BITS | seq

    def _replaces(self, keys: Sequence[int]) -> bool:
        """Whether one of them is there already; turns mostly come in their order, so that one look says it is not."""
        late: list[int] = []
        for key in keys:
            code = key >> _SEQ_BITS
            if key <= self._last.get(code, -1):
                late.append(key)
            else:
                self._last[code] = key
        return bool(late) and bool(np.isin(late, self._keys.view).any())


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


def halves_of(blobs: Sequence[bytes]) -> Numbers:
    return np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1)


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
            find = partial(_search_tenant, model=model, scope=scope, vector=wanted, limit=limit)
            return await self._connections.look(find)
        return await self._look(model, scope, lambda view: view.search(wanted, limit)) or []

    async def similarities(self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int) -> Keyed:
        if scope.user is None and scope.conversation is None:
            return await super().similarities(model, scope, vector, limit)
        self._check_open()
        found = None
        if (wanted := asked(model, vector)) is not None and limit > 0:
            found = await self._look(model, scope, lambda view: view.similarities(wanted, limit))
        return found or Keyed.of({})

    async def _look(self, model: EmbeddingModel, scope: Scope, search: Callable[[View], R]) -> R | None:
        """What a search finds among the vectors of an owner; None if there are none."""

        def look(connection: Connection) -> R | None:
            view = self._view(connection, model, scope)
            return None if view is None else search(view)

        return await self._connections.look(look)

    async def describe(self) -> JsonObject:
        self._check_open()
        file = await self._row("database_file", {})
        place = None if file is None else file[0] or None
        return {"backend": self.name, "version": None, "place": place, "cached": len(self._blocks)}

    def _view(self, connection: Connection, model: EmbeddingModel, scope: Scope) -> View | None:
        owner = played(connection, _owner(model, scope))
        if owner is None:
            return None
        block = self._blocks.of(owner, model.dimension)
        with block.lock:
            if block.seen.get(connection) != (now := _version(connection)):
                played(connection, _catch_up(block, owner))
                block.seen[connection] = now
            # A conversation that has the block to itself needs no picking.
            view = block.view(scope.conversation if owner[2] is not None else None)
        self._blocks.trim()
        return view


def _version(connection: Connection) -> tuple[object, int]:
    """Changes whenever anybody has written to the database: the first number by others, the second by this connection."""
    return connection.execute("PRAGMA data_version").fetchone(), connection.total_changes()


def _catch_up(block: Block, owner: Owner) -> Play[None]:
    """Read what is new; or everything, if something is gone."""
    kind = "user" if owner[2] is not None else "conversation"
    values: dict[str, str | None] = dict(zip(("maker", "tenant", "user", "conversation"), owner, strict=True))
    while True:
        asked = {**values, "limit": _ROWS_A_CHUNK, "known": block.known}
        found = yield from rows(f"episodes_of_{kind}", asked)
        if found:
            block.add(found)
        elif (there := (yield from row(f"episodes_number_of_{kind}", values))) and there[0] == len(block):
            return
        else:
            block.clear()


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
            similarity = similarities(halves_of([row[4] for row in chunk]).astype(np.float32), vector)
            for at in largest(similarity, limit):
                _, turn_id, conversation, seq, _ = chunk[at]
                best.append(VectorHit(conversation, seq, turn_id, float(similarity[at])))
            best = nearest(best, limit)
    return best
