"""The vector index in Milvus."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Literal, TypeVar

import anyio

from pagefile.arrays import np
from pagefile.errors import SettingsError, StoreError, VectorIndexError
from pagefile.ports import Collection, EmbeddingModel, HeldVector, Vector, VectorHit, VectorIndex, VectorRow
from pagefile.records import JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.milvus import schema
from pagefile.stores.milvus.driver import Client, Driver, NoCollectionError, NotLoadedError, Place
from pagefile.stores.vectors import asked, batch_of, nearest, rounded

logger = logging.getLogger("pagefile")

T = TypeVar("T")

#: The most that a search may ask for.
_MOST_HITS = 16_384
_ROWS_AT_ONCE = 500
#: One call of gRPC carries 64 MB at most.
_BYTES_AT_ONCE = 8 * 1024 * 1024
#: Milvus in a file compares rows it has not flushed in plain Python, which takes a second for ten thousand.
_MOST_UNWRITTEN = 1000
#: How many scopes one filter names.
_SCOPES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class MilvusOptions:
    read_timeout_s: float = 3.0
    write_timeout_s: float = 10.0
    #: For creating a collection and loading it into memory.
    load_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if min(self.read_timeout_s, self.write_timeout_s, self.load_timeout_s) <= 0:
            raise SettingsError("read_timeout_s, write_timeout_s and load_timeout_s must be above 0.")


#: A file has no server that could be unreachable: a slow call there is doing work.
_OF_A_FILE = MilvusOptions(read_timeout_s=30.0, write_timeout_s=60.0)


#: With bounded staleness, Milvus promises to be at most 5 seconds behind.
_BEHIND_S = 10.0
#: Beyond this many it is cheaper to wait for the server.
_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Written:
    """A row as it was written; without a vector, one that was deleted."""

    near: VectorHit
    keys: Mapping[str, str]
    vector: Vector | None


class Recent:
    """What this process wrote a moment ago: a search must find it, though the server may not show it yet.

    A distributed server makes a write visible only after a while. Waiting for that costs a search 200 to 400 ms
    (measured on 2.3.5); a search that may be up to five seconds behind costs 2 ms. So searches are of the second kind,
    and what is younger is searched here.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        # By age, oldest first. Rows expire by age, not by use, so `Lru` does not fit.
        self._rows: OrderedDict[str, tuple[float, Written]] = OrderedDict()
        self._strong_until = 0.0

    @property
    def consistency(self) -> Literal["Strong", "Bounded"]:
        return "Strong" if self._now() < self._strong_until else "Bounded"

    @property
    def ids(self) -> frozenset[str]:
        """Rows for which the server's answer may be out of date."""
        self._let_go()
        return frozenset(self._rows)

    def wrote(self, rows: Iterable[tuple[str, Written]]) -> None:
        """These were written, and the server has them."""
        until = self._now() + _BEHIND_S
        for key, row in rows:
            self._rows.pop(key, None)
            self._rows[key] = until, row
        self._let_go()
        if len(self._rows) > _MOST_ROWS:
            self._rows.clear()
            self.changed()

    def changed(self) -> None:
        """Rows changed that are not all known here: for a while only the server is right."""
        self._strong_until = self._now() + _BEHIND_S

    def removed(self, within: Callable[[Mapping[str, str]], bool]) -> None:
        for key in [key for key, (_, row) in self._rows.items() if within(row.keys)]:
            del self._rows[key]
        self.changed()

    def rows(self, within: Callable[[Mapping[str, str]], bool]) -> list[Written]:
        self._let_go()
        return [row for _, row in self._rows.values() if within(row.keys)]

    def search(self, within: Callable[[Mapping[str, str]], bool], vector: Vector) -> list[VectorHit]:
        return [
            row.near._replace(similarity=rounded(float(np.dot(row.vector, vector))))
            for row in self.rows(within)
            if row.vector is not None
        ]

    def _let_go(self) -> None:
        now = self._now()
        while self._rows and next(iter(self._rows.values()))[0] <= now:
            self._rows.popitem(last=False)


class MilvusVectors(VectorIndex):
    """One collection per model: ids and vectors, and no text."""

    name = "milvus"
    apart = True

    def __init__(
        self,
        place: Place,
        *,
        options: MilvusOptions | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connects on first use. The clock measures how long ago something was written."""
        self._options = options or (_OF_A_FILE if place.is_file else MilvusOptions())
        self._unwritten = 0
        self._driver = Driver(place, monotonic=monotonic)
        self._monotonic = monotonic
        #: Collections known to exist and to be in memory.
        self._ready: set[str] = set()
        self._recent: dict[str, Recent] = {}
        #: Whether collections that other processes left unfinished, or with texts in them, were cleaned up.
        self._tidy = False
        self._tidying = anyio.Lock()
        #: Collections in a file that hold no deleted rows.
        self._clean: set[str] = set()
        if not place.is_file:
            self.leaves = "ids and vectors, without any text, in the files of Milvus: until it has compacted them and collected its garbage"

    async def prepare(self, model: EmbeddingModel) -> None:
        name, timeout = schema.collection_of(model), self._options.load_timeout_s

        def make(client: Client) -> None:
            if not client.has_collection(name, timeout=timeout):
                self._rewriter(client).create(name, model)
                self._clean.add(name)
            found = schema.model_of(client.describe_collection(name, timeout=timeout))
            if found != model:
                raise VectorIndexError(
                    f"The collection {name!r} in {self._driver.place.shown} was made for {found and found.key!r}, not for "
                    f"{model.key!r}: rename or drop it, then run `pagefile rebuild`."
                )
            client.load_collection(name, timeout=timeout)
            self._ready.add(name)

        await self._run(make)

    async def put(
        self, model: EmbeddingModel, rows: Sequence[VectorRow], *, epoch: int | None = None
    ) -> None:
        self._driver.check_open()
        name, timeout = schema.collection_of(model), self._options.write_timeout_s
        kept, matrix, zeros = batch_of(model, rows)
        if name not in self._ready:
            await self.prepare(model)
        vectors = list(zip(kept, matrix, strict=True))
        at_once = min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // (schema.TEXT_BYTES + 4 * model.dimension))
        for start in range(0, len(vectors), at_once):
            part = [_record(row, vector, epoch or 0) for row, vector in vectors[start : start + at_once]]
            await self._again(model, lambda client, part=part: client.upsert(name, part, timeout=timeout))
        self._unwritten += len(vectors)
        # A server decides itself when to flush.
        if self._driver.place.is_file and self._unwritten >= _MOST_UNWRITTEN:
            self._unwritten = 0
            await self._driver.run(lambda client: client.flush(name, timeout=timeout))
        if gone := [schema.id_of(row) for row in zeros]:
            await self._again(model, lambda client: self._delete(client, name, ids=gone))
        recent = self._recent_of(name)
        recent.wrote(_as_written(row, vector) for row, vector in vectors)
        recent.wrote(_as_written(row, None) for row in zeros)

    async def search(
        self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
    ) -> list[VectorHit]:
        self._driver.check_open()
        wanted, name = asked(model, vector), schema.collection_of(model)
        if wanted is None or limit <= 0 or not await self._is_there(name):
            return []
        text, within = schema.filter_of(scope)
        recent = self._recent_of(name)
        hidden, young = recent.ids, recent.search(within, wanted)
        how = {"consistency_level": recent.consistency, "timeout": self._options.read_timeout_s}
        most = min(_MOST_HITS, limit + len(recent.rows(within)))

        def search(client: Client) -> list[dict[str, Any]]:
            fields = list(schema.NAMES)
            (hits,) = client.search(
                name, [wanted.tolist()], filter=text, limit=most, output_fields=fields, **how
            )
            return list(hits)

        hits = await self._loaded(name, search, [])
        entities = [(hit["entity"], hit["distance"]) for hit in hits if hit["id"] not in hidden]
        old = [
            VectorHit(one["conversation_id"], one["seq"], one["turn_id"], rounded(distance))
            for one, distance in entities
        ]
        return nearest([*young, *old], limit)

    async def collections(self) -> list[Collection]:
        found = await self._run(self._collections)
        collections = [Collection(model, await self._count(name)) for name, model in found.items()]
        return sorted(collections, key=lambda collection: collection.model.key)

    async def held(self, model: EmbeddingModel, scope: Scope, after: int, through: int) -> list[HeldVector]:
        self._driver.check_open()
        name = schema.collection_of(model)
        if not await self._is_there(name):
            return []
        keys = schema.keys_of(scope)
        text = f'conversation_key == "{keys["conversation_key"]}" and seq > {after} and seq <= {through}'
        found = await self._query(name, text, "seq", "turn_id", "user_key")
        owner = keys["user_key"]
        held = [HeldVector(int(row["seq"]), row["turn_id"], row["user_key"] == owner) for row in found]
        return sorted(held, key=lambda one: one.seq)

    async def drop(self, model: EmbeddingModel) -> int:
        name = schema.collection_of(model)
        if not await self._is_there(name):
            return 0
        count = await self._count(name)
        timeout = self._options.load_timeout_s
        await self._driver.run(lambda client: client.drop_collection(name, timeout=timeout))
        self._forget(name)
        return count

    async def erase(self, scope: Scope) -> int:
        text, within = schema.filter_of(scope, of_any_owner=True)
        return sum([await self._erase(name, text, within) for name in await self._run(self._collections)])

    async def erase_before(self, erased: Mapping[str, int]) -> int:
        found, count = await self._run(self._collections), 0
        for name, model in found.items():
            for text, keys in _erased_filters(erased):
                count += await self._erase(
                    name, text, lambda row, keys=keys: not keys.isdisjoint(row.values())
                )
            await self._clear_files(name, model)
        return count

    async def _erase(self, name: str, text: str, within: Callable[[Mapping[str, str]], bool]) -> int:
        if not await self._is_there(name):
            return 0
        count = await self._loaded(name, lambda client: self._delete(client, name, filter=text), 0)
        self._recent_of(name).removed(within)
        if count:
            self._clean.discard(name)
        return count

    async def _clear_files(self, name: str, model: EmbeddingModel) -> None:
        """Remove deleted rows from the files: at once for a Milvus in a file; a server is asked to start compacting."""
        if name in self._clean or not await self._is_there(name):
            return
        if self._driver.place.is_file:
            # Once it is dropped, no one may assume the collection is in memory.
            self._ready.discard(name)
            await self._driver.run(lambda client: self._rewriter(client).rewrite(name, model))
            self._clean.add(name)
            return

        def compact(client: Client) -> None:
            client.flush(name, timeout=self._options.load_timeout_s)
            client.compact(name, timeout=self._options.load_timeout_s)

        try:
            await self._driver.run(compact)
        except StoreError as error:
            # The rows are deleted. A server that is asked too often refuses, and compacts on its own schedule.
            logger.info("Milvus does not compact %s now: %s", name, error)

    async def describe(self) -> JsonObject:
        timeout = self._options.read_timeout_s
        version = await self._run(lambda client: client.get_server_version(timeout=timeout))
        return {"backend": "milvus", "version": version, "place": self._driver.place.shown}

    async def close(self) -> None:
        await self._driver.close()

    async def _run(self, function: Callable[[Client], T]) -> T:
        """The result of a function of the client, after leftovers of other processes are cleaned up."""
        async with self._tidying:
            if not self._tidy:
                await self._driver.run(lambda client: self._rewriter(client).tidy())
                self._tidy = True
        return await self._driver.run(function)

    def _rewriter(self, client: Client) -> schema.Rewriter:
        return schema.Rewriter(client, self._options.load_timeout_s)

    async def _is_there(self, name: str) -> bool:
        """Whether the collection exists; if so, it is loaded into memory."""
        timeout = self._options.load_timeout_s

        def look(client: Client) -> None:
            if client.has_collection(name, timeout=timeout):
                client.load_collection(name, timeout=timeout)
                self._ready.add(name)

        if name not in self._ready:
            await self._run(look)
        return name in self._ready

    async def _loaded(self, name: str, function: Callable[[Client], T], otherwise: T) -> T:
        """The result of a function of a collection; retried if it was unloaded, `otherwise` if it no longer exists."""
        try:
            return await self._driver.run(function)
        except NotLoadedError:
            self._ready.discard(name)
        except NoCollectionError:
            self._forget(name)
            return otherwise
        return await self._driver.run(function) if await self._is_there(name) else otherwise

    async def _again(self, model: EmbeddingModel, function: Callable[[Client], Any]) -> None:
        """Write; retried once if another process dropped the collection."""
        try:
            await self._driver.run(function)
        except (NoCollectionError, NotLoadedError):
            self._forget(schema.collection_of(model))
            await self.prepare(model)
            await self._driver.run(function)

    async def _query(self, name: str, text: str, *fields: str) -> list[dict[str, Any]]:
        timeout = self._options.write_timeout_s
        return await self._loaded(name, lambda client: schema.query(client, name, text, fields, timeout), [])

    def _delete(self, client: Client, name: str, **which: Any) -> int:
        told: Any = client.delete(name, timeout=self._options.write_timeout_s, **which)
        # The server returns how many, the file which ones.
        return int(told["delete_count"]) if "delete_count" in told else len(told)

    def _collections(self, client: Client) -> dict[str, EmbeddingModel]:
        timeout = self._options.read_timeout_s
        names = [name for name in client.list_collections(timeout=timeout) if name.startswith(schema.PREFIX)]
        models = {name: schema.model_of(client.describe_collection(name, timeout=timeout)) for name in names}
        return {
            name: model for name, model in models.items() if model and schema.collection_of(model) == name
        }

    async def _count(self, name: str) -> int:
        found = await self._query(name, "", "count(*)") if await self._is_there(name) else []
        return int(found[0]["count(*)"]) if found else 0

    def _recent_of(self, name: str) -> Recent:
        return self._recent.setdefault(name, Recent(self._monotonic))

    def _forget(self, name: str) -> None:
        self._ready.discard(name)
        self._clean.discard(name)
        self._recent.pop(name, None)


def _erased_filters(erased: Mapping[str, int]) -> Iterator[tuple[str, frozenset[str]]]:
    by_epoch = sorted(erased, key=lambda key: (erased[key], key))
    for epoch, keys in groupby(by_epoch, key=lambda key: erased[key]):
        while some := frozenset(islice(keys, _SCOPES_AT_ONCE)):
            yield schema.erased_filter(some, epoch), some


def _record(row: VectorRow, vector: Vector, epoch: int) -> dict[str, Any]:
    return {
        "id": schema.id_of(row),
        "conversation_id": rules.conversation_of(row.scope),
        "turn_id": row.turn_id,
        **schema.keys_of(row.scope),
        "seq": row.seq,
        "epoch": epoch,
        "embedding": vector.tolist(),
    }


def _as_written(row: VectorRow, vector: Vector | None) -> tuple[str, Written]:
    near = VectorHit(rules.conversation_of(row.scope), row.seq, row.turn_id, 0.0)
    return schema.id_of(row), Written(near, schema.keys_of(row.scope), vector)
