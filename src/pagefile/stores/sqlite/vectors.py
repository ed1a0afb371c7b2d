"""Vectors as BLOBs beside the log, searched exactly, in memory.

A search reads what is new since the last one (of whichever process), multiplies in a thread, and asks whether what it found
is still there: a row never changes, so a place that exists tells the truth. What another process erased is noticed so.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any

import anyio.to_thread

from pagefile.errors import ClosedError
from pagefile.ports import HeldVector, Maker, Near, Shelf, Vector, VectorHome, VectorRow
from pagefile.records import JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import to_json
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import Values, keys, part_of
from pagefile.stores.sqlite.blocks import Blocks, Hit, Owner, View, vectors_of
from pagefile.stores.sqlite.driver import Connection, Row
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.player import played, sql
from pagefile.stores.vectors import asked, batch_of, largest, likenesses, nearest, place_of

#: Ten thousand turns at 512 dimensions are 24 MB.
CACHE_BYTES = 256 * 1024 * 1024
#: What one transaction writes or removes, so that a turn to be recorded never waits long behind vectors.
_ROWS_AT_ONCE = 500
_ROWS_A_CHUNK = 4096
#: How often a search begins anew because somebody erased or replaced what it found.
_MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Caught:
    """What a search works on."""

    owner: Owner
    view: View


class SqliteVectors(VectorHome):
    """Rows of `conversation_episodes`. They go with the conversation they belong to."""

    name = "sqlite"

    def __init__(self, writer: Writer, readers: Readers, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._writer = writer
        self._readers = readers
        self._blocks = Blocks(cache_bytes)
        self._closed = False

    async def prepare(self, maker: Maker) -> None:
        self._check_open()
        key = {"maker": maker.key}
        known = await self._readers.run(lambda connection: connection.execute(sql("maker_known"), key).get)
        if not known:
            await self._writer.run(lambda connection: _write_maker(connection, maker))

    async def put(self, maker: Maker, rows: Sequence[VectorRow], *, epoch: int | None = None) -> None:
        self._check_open()
        batch = batch_of(maker, rows)
        gone = [place_of(maker, row) for row in batch.gone]
        kept: list[Values] = [
            {
                **place_of(maker, row),
                "id": row.turn_id,
                "embedding": vector.tobytes(),
                "created_at": int(row.at.timestamp()),
            }
            for row, vector in zip(batch.kept, batch.vectors.astype("<f2"), strict=True)
        ]
        scopes = [row.scope for row in rows]

        def write(connection: Connection, part: slice) -> None:
            played(connection, check_writable(epoch, scopes))
            _write_maker(connection, maker)
            connection.executemany(sql("episode_drop"), gone[part])
            connection.executemany(sql("episode_write"), kept[part])

        for start in range(0, max(len(kept), len(gone)), _ROWS_AT_ONCE):
            await self._writer.run(partial(write, part=slice(start, start + _ROWS_AT_ONCE)))

    async def search(self, maker: Maker, scope: Scope, vector: Vector, limit: int) -> list[Near]:
        self._check_open()
        wanted = asked(maker, vector)
        if wanted is None or limit <= 0:
            return []
        if scope.user is None and scope.conversation is None:
            return await self._readers.run(
                lambda connection: _search_tenant(connection, maker, scope, wanted, limit)
            )
        hits: list[Hit] = []
        for _ in range(_MOST_ATTEMPTS):
            caught = await self._readers.run(lambda connection: self._catch_up(connection, maker, scope))
            self._blocks.trim()
            if caught is None:
                return []
            hits = await anyio.to_thread.run_sync(caught.view.search, wanted, limit)
            if await self._are_there(hits):
                break
            self._blocks.forget(caught.owner)
        return [hit.near for hit in hits]

    async def shelves(self) -> list[Shelf]:
        self._check_open()

        def read(connection: Connection) -> list[Shelf]:
            rows: Any = connection.execute(sql("makers"))
            return [Shelf(Maker(*maker), count) for *maker, count in rows]

        return await self._readers.run(read)

    async def held(self, maker: Maker, scope: Scope, after: int, through: int) -> list[HeldVector]:
        self._check_open()
        values = {**keys(scope), "maker": maker.key, "dimension": maker.dimension}

        def read(connection: Connection) -> list[HeldVector]:
            rows: Any = connection.execute(
                sql("vectors_held"), {**values, "after_seq": after, "through": through}
            )
            return [HeldVector(seq, turn_id, bool(fits)) for seq, turn_id, fits in rows]

        return await self._readers.run(read)

    async def drop(self, maker: Maker) -> int:
        self._check_open()
        values = {"maker": maker.key, "limit": _ROWS_AT_ONCE}
        count = 0
        while gone := await self._writer.run(
            lambda connection: _changed(connection, "episodes_drop", values), purge=True
        ):
            count += gone
        await self._writer.run(lambda connection: _changed(connection, "maker_drop", values))
        self._blocks.clear()
        return count

    async def erase(self, scope: Scope) -> int:
        self._check_open()
        statement = f"erase_episodes_of_{part_of(scope)}"
        count = await self._writer.run(
            lambda connection: _changed(connection, statement, keys(scope)), purge=True
        )
        self._blocks.clear()
        return count

    def forget(self) -> None:
        """Let go of what is held in memory: the store has erased something."""
        self._blocks.clear()

    async def describe(self) -> JsonObject:
        self._check_open()
        file: Any = await self._readers.run(lambda connection: connection.execute(sql("database_file")).get)
        return {"backend": "sqlite", "version": None, "place": file, "cached": len(self._blocks)}

    async def close(self) -> None:
        self._closed = True
        self._blocks.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError

    def _catch_up(self, connection: Connection, maker: Maker, scope: Scope) -> _Caught | None:
        """The owner's block with everything that is there now; None when the scope has nothing."""
        owner = _owner(connection, maker, scope)
        if owner is None:
            return None
        block = self._blocks.of(owner, maker.dimension)
        with block.lock:
            while rows := _after(connection, owner, block.known):
                block.add(rows)
                if len(rows) < _ROWS_A_CHUNK:
                    break
            # Who is alone in its block needs no picking.
            view = block.view(scope.conversation if owner[2] is not None else None)
        return None if view is None else _Caught(owner, view)

    async def _are_there(self, hits: Sequence[Hit]) -> bool:
        places = {"places": to_json([hit.place for hit in hits])}
        count = await self._readers.run(
            lambda connection: connection.execute(sql("episodes_there"), places).get
        )
        return bool(count == len(hits))


def _write_maker(connection: Connection, maker: Maker) -> None:
    connection.execute(sql("maker_write"), {**asdict(maker), "maker": maker.key})


def _changed(connection: Connection, statement: str, values: Values) -> int:
    connection.execute(sql(statement), values)
    return connection.changes()


def _owner(connection: Connection, maker: Maker, scope: Scope) -> Owner | None:
    """Whose block a scope is found in."""
    if scope.conversation is None:
        return maker.key, scope.tenant, scope.user, None
    row = connection.execute(sql("owner"), keys(scope)).fetchone()
    if row is None or not rules.sees(scope, row[0]):
        return None
    return maker.key, scope.tenant, row[0], None if row[0] is not None else scope.conversation


def _after(connection: Connection, owner: Owner, known: int) -> list[Row]:
    maker, tenant, user, conversation = owner
    values = {
        "maker": maker,
        "tenant": tenant,
        "user": user,
        "conversation": conversation,
        "known": known,
        "limit": _ROWS_A_CHUNK,
    }
    statement = "episodes_of_user" if user is not None else "episodes_of_conversation"
    return connection.execute(sql(statement), values).fetchall()


def _search_tenant(
    connection: Connection, maker: Maker, scope: Scope, vector: Vector, limit: int
) -> list[Near]:
    """Everybody's turns, read chunk by chunk and kept nowhere: nobody talks to a whole tenant often."""
    best: list[Near] = []
    with closing(
        connection.execute(sql("episodes_of_tenant"), {**keys(scope), "maker": maker.key})
    ) as cursor:
        rows = iter(cursor)
        while chunk := list(islice(rows, _ROWS_A_CHUNK)):
            likeness = likenesses(vectors_of([row[4] for row in chunk]), vector)
            best = nearest([*best, *_nears(chunk, likeness, limit)], limit)
    return best


def _nears(rows: Sequence[Row], likeness: Vector, limit: int) -> list[Near]:
    return [
        Near(rows[at][2], rows[at][3], rows[at][1], float(likeness[at])) for at in largest(likeness, limit)
    ]
