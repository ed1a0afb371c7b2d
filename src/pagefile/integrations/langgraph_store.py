"""LangGraph's long-term store in a Pagefile database: `graph.compile(store=PagefileStore(memory))`.

It works the same in every Pagefile store: search and filters are evaluated here, not in SQL.
"""

import logging
import operator
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from datetime import date, datetime
from functools import cache, partial
from threading import Event, Thread
from typing import Any, cast

from pagefile.arrays import np
from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import MemoryLoop
from pagefile.engine import Memory
from pagefile.errors import ClosedError, MissingExtraError, ModelOutputError, PagefileError, SettingsError
from pagefile.models.embedders import of_unit_length
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, Namespace, StoredItem, Vector
from pagefile.records import DEFAULT_TENANT, Scope, checked_id
from pagefile.shapes.skeleton import as_list

try:
    from langgraph.store import base
except ImportError as error:
    raise MissingExtraError.of("langgraph", "LangGraph's store") from error

logger = logging.getLogger("pagefile")

_MINUTE_S = 60.0
#: Embed the whole value as one text.
_EVERYTHING = "$"
_COMPARISONS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


class PagefileStore(base.BaseStore):
    """LangGraph's `BaseStore` over an open memory: durable, with semantic search and expiry.

    Args:
        memory: with a `Memory`, create the store inside the event loop it was opened in; a `BlockingMemory` works everywhere.
        user_id: whose items these are: no other user's store sees them, `memory.forget(user_id=…)` erases them. None: the tenant's.
        index: semantic search, configured as in LangGraph; `{}` embeds whole values with the memory's own embedder, `fields` and `embed`
            override that. Without it, `query` is ignored, with a warning.
        ttl: when items expire; in minutes, as in LangGraph. Expired items are never returned, swept or not.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        index: base.IndexConfig | None = None,
        ttl: base.TTLConfig | None = None,
    ) -> None:
        self._loop = MemoryLoop(memory)
        self._memory = self._loop.memory
        user = None if user_id is None else checked_id(user_id, "user_id")
        self._scope = Scope(DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant"), user)
        self.index_config = index
        self.ttl_config = ttl
        self._index = None if index is None else _Index(self._memory, index)
        self._sweeper: Future[None] | None = None
        self._stopped = Event()

    # -- sync and async -------------------------------------------------------------------------------------------------

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        return self._loop.waited(partial(self._done, _checked(ops)))

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        return await self._loop.started(partial(self._done, _checked(ops)))

    def sweep_ttl(self) -> int:
        """Remove expired items and return how many there were; every write does so too."""
        return self._loop.waited(self._swept)

    async def asweep_ttl(self) -> int:
        """Like `sweep_ttl`, asynchronously."""
        return await self._loop.started(self._swept)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Remove expired items again and again, from a thread of its own, until `stop_ttl_sweeper` or the future is cancelled.

        The interval is by default that of `ttl`, or five minutes, as in LangGraph's own stores.
        """
        if self._sweeper is None or self._sweeper.done():
            minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
            self._stopped.clear()
            self._sweeper = Future()
            self._sweeper.add_done_callback(lambda _: self._stopped.set())
            Thread(
                target=self._sweep, args=(float(minutes) * _MINUTE_S,), daemon=True, name="sweeper"
            ).start()
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Whether the sweeper has stopped within the timeout, or was not running."""
        self._stopped.set()
        running = self._sweeper
        return running is None or not wait({running}, timeout).not_done

    def _sweep(self, pause_s: float) -> None:
        while not self._stopped.wait(pause_s):
            try:
                self.sweep_ttl()
            except ClosedError:
                break
            except PagefileError:
                logger.exception("expired items could not be removed; they stay invisible")
        if self._sweeper is not None and not self._sweeper.done():
            self._sweeper.set_result(None)

    # -- one batch ------------------------------------------------------------------------------------------------------

    async def _done(self, ops: Sequence[base.Op]) -> list[base.Result]:
        """Reads see the state before the batch, as in LangGraph's own stores; then all writes happen at once."""
        self._memory.engine.check_open()
        results: list[base.Result] = [None] * len(ops)
        gets = [(place, op) for place, op in enumerate(ops) if isinstance(op, base.GetOp)]
        for (place, _), item in zip(gets, await self._got([op for _, op in gets]), strict=True):
            results[place] = item
        for place, op in enumerate(ops):
            if isinstance(op, base.SearchOp):
                results[place] = cast("list[base.Item]", await self._found(op))
            elif isinstance(op, base.ListNamespacesOp):
                results[place] = await self._listed(op)
        await self._put([op for op in ops if isinstance(op, base.PutOp)])
        return results

    async def _got(self, ops: Sequence[base.GetOp]) -> list[base.Item | None]:
        if not ops:
            return []
        keys = [(op.namespace, op.key) for op in ops]
        found = await self._items.get(self._scope, keys, now=self._now())
        await self._touched([item for op, item in zip(ops, found, strict=True) if op.refresh_ttl and item])
        return [None if item is None else base.Item(**_fields(item)) for item in found]

    async def _put(self, ops: Sequence[base.PutOp]) -> None:
        last = list({(op.namespace, op.key): op for op in ops}.values())
        if not last:
            return
        vectors: Mapping[ItemKey, Vector] = {}
        model = None
        if self._index is not None:
            vectors = await self._index.vectors_of([op for op in last if op.value is not None])
            model = self._index.model()
        writes: list[ItemWrite] = []
        for op in last:
            value, ttl_s = _with_times_as_text(op.value), None if op.ttl is None else op.ttl * _MINUTE_S
            rows = vectors.get((op.namespace, op.key))
            writes.append(ItemWrite(op.namespace, op.key, value, ttl_s, rows, model))
        await self._items.write(self._scope, writes, now=self._now())

    async def _listed(self, op: base.ListNamespacesOp) -> list[Namespace]:
        known = await self._items.namespaces(self._scope, (), now=self._now())
        conditions = op.match_conditions or ()
        given = (name for name in known if not _is_own(name))
        kept = (name for name in given if all(_matches(condition, name) for condition in conditions))
        cut = {name if op.max_depth is None else name[: op.max_depth] for name in kept}
        return sorted(cut)[op.offset : op.offset + op.limit]

    # -- searching ------------------------------------------------------------------------------------------------------

    async def _found(self, op: base.SearchOp) -> list[base.SearchItem]:
        if op.query and self._index is None:
            # As in LangGraph's own stores, which do not say so.
            _warn_of_no_index()
        page = {"offset": op.offset, "limit": op.limit}
        ranked: list[tuple[StoredItem, float | None]]
        if op.query and self._index is not None:
            ranked = await self._ranked(op, self._index)
        elif op.filter or not op.namespace_prefix:
            ranked = [(item, None) for item in (await self._passing(op))[op.offset : op.offset + op.limit]]
        else:
            newest = await self._items.under(self._scope, op.namespace_prefix, now=self._now(), **page)
            ranked = [(item, None) for item in newest]
        if op.refresh_ttl:
            await self._touched([item for item, _ in ranked])
        return [base.SearchItem(**_fields(item), score=score) for item, score in ranked]

    async def _ranked(self, op: base.SearchOp, index: "_Index") -> list[tuple[StoredItem, float | None]]:
        """Most similar first, each by its best text; items without a vector come last, so that a search misses nothing."""
        asked = await index.embedded([op.query or ""])
        now = self._now()
        near = await self._items.vectors(self._scope, op.namespace_prefix, index.model(), now=now)
        given = (one for one in near if not _is_own(one.namespace))
        scores = {(one.namespace, one.key): float(np.max(one.rows @ asked[0])) for one in given}
        best = sorted(scores, key=lambda key: -scores[key])
        end = op.offset + op.limit
        if op.filter or len(best) < end:
            passed = {item.item_key: item for item in await self._passing(op)}
            order = [key for key in best if key in passed] + [key for key in passed if key not in scores]
            return [(passed[key], scores.get(key)) for key in order[op.offset : end]]
        found = await self._items.get(self._scope, best[op.offset : end], now=now)
        return [(item, scores[item.item_key]) for item in found if item is not None]

    async def _passing(self, op: base.SearchOp) -> list[StoredItem]:
        every = await self._items.under(self._scope, op.namespace_prefix, now=self._now())
        given = (item for item in every if not _is_own(item.namespace))
        return [item for item in given if _passes(item.value, op.filter or {})]

    # -- helpers --------------------------------------------------------------------------------------------------------

    async def _swept(self) -> int:
        return await self._items.sweep(self._scope, now=self._now())

    async def _touched(self, items: Iterable[StoredItem]) -> None:
        if keys := [item.item_key for item in items if item.ttl_s is not None]:
            await self._items.touch(self._scope, keys, now=self._now())

    @property
    def _items(self) -> Any:
        return self._memory.engine.store.items

    def _now(self) -> Any:
        return self._memory.engine.clock.now()


class _Index:
    def __init__(self, memory: Memory, config: base.IndexConfig) -> None:
        given, vectors = config.get("embed"), memory.engine.kit.vectors
        self._dims = config.get("dims")
        self._fields = config.get("fields") or [_EVERYTHING]
        #: Identifies the embedding model: vectors of different models cannot be compared.
        self.model: Callable[[], str]
        if given is not None:
            embeddings = base.ensure_embeddings(given)
            kind = type(embeddings)
            self._embed: Callable[[list[str]], Awaitable[Any]] = embeddings.aembed_documents
            self.model = lambda: f"{kind.__module__}.{kind.__qualname__}:{self._dims}"
        elif vectors is not None:
            own = vectors.embedder
            self._embed = own.embed
            # A function, since the dimension may be known only after the first text.
            self.model = lambda: f"{own.name}:{own.dimension}"
        else:
            raise SettingsError(
                "This memory has no embedder to search by meaning with: open it with one, or give index={'embed': …}."
            )

    async def vectors_of(self, ops: Sequence[base.PutOp]) -> dict[ItemKey, Vector]:
        """The vectors of each value; values without text, or excluded from the index, are left out."""
        texts = {(op.namespace, op.key): found for op in ops if (found := self._texts(op))}
        if not texts:
            return {}
        rows = await self.embedded([text for found in texts.values() for text in found])
        ends = np.cumsum([len(found) for found in texts.values()])
        return dict(zip(texts, np.split(rows, ends[:-1]), strict=True))

    async def embedded(self, texts: list[str]) -> Vector:
        rows: Vector = np.asarray(await self._embed(texts), dtype=np.float32).reshape(len(texts), -1)
        if self._dims is not None and rows.shape[1] != self._dims:
            raise ModelOutputError(
                f"The embedder makes vectors of {rows.shape[1]} numbers, and the index has dims={self._dims}: give dims={rows.shape[1]}."
            )
        return of_unit_length(rows)

    def _texts(self, op: base.PutOp) -> list[str]:
        if op.index is False:
            return []
        paths = self._fields if op.index is None else op.index
        tokens = [path if path == _EVERYTHING else base.tokenize_path(path) for path in paths]
        return [text for one in tokens for text in base.get_text_at_path(op.value, one) if text]


# -- checking operations ----------------------------------------------------------------------------------------------


def _checked(ops: Iterable[base.Op]) -> list[base.Op]:
    asked = list(ops)
    for op in asked:
        if isinstance(op, base.GetOp | base.PutOp):
            _check_namespace(op.namespace)
        elif isinstance(op, base.SearchOp):
            _check_namespace(op.namespace_prefix)
        elif isinstance(op, base.ListNamespacesOp):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
            for condition in op.match_conditions or ():
                _check_labels(condition.path)
        else:
            raise ValueError(f"Unknown operation type: {type(op).__name__}")  # noqa: TRY004 - what LangGraph's own stores raise
    return asked


def _is_own(namespace: Namespace) -> bool:
    # Callers are not type-checked: it may be a list.
    return tuple(namespace[:1]) == (OWN_NAMESPACE,)


def _check_namespace(namespace: Namespace) -> None:
    _check_labels(namespace)
    if _is_own(namespace):
        raise base.InvalidNamespaceError(
            f"Namespaces that begin with {OWN_NAMESPACE!r} are reserved for Pagefile itself: choose another first label."
        )


def _check_labels(namespace: Iterable[object]) -> None:
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label or "\0" in label:
            raise base.InvalidNamespaceError(
                f"A label of a namespace is {label!r}: it must be text of at least one character, without periods and NUL."
            )


def _matches(condition: base.MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)]
    return all(wanted in {"*", label} for wanted, label in zip(path, part, strict=True))


def _passes(value: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(value, Mapping) and all(
        _equal(_at(cast("Mapping[str, Any]", value), key), condition) for key, condition in wanted.items()
    )


def _at(value: Mapping[str, Any], key: str) -> Any:
    """The value at a key; a dotted key that does not exist literally is a path."""
    if key in value:
        return value[key]
    outer, period, inner = key.partition(".")
    further = value.get(outer)
    return _at(cast("Mapping[str, Any]", further), inner) if period and isinstance(further, Mapping) else None


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        conditions = cast("Mapping[str, Any]", wanted)
        if any(key.startswith("$") for key in conditions):
            return all(_compared(value, name, other) for name, other in conditions.items())
        return _passes(value, conditions)
    if isinstance(wanted, list | tuple):
        found, others = as_list(value), cast("Sequence[Any]", wanted)
        return found is not None and len(found) == len(others) and all(map(_equal, found, others))
    # In JSON, true is not a number.
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _compared(value: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return _equal(value, wanted)
    if name == "$ne":
        return not _equal(value, wanted)
    compare = _COMPARISONS.get(name)
    if compare is None:
        raise ValueError(f"Unsupported operator: {name}")
    if isinstance(value, str) and isinstance(wanted, str):
        return compare(value, wanted)
    one, other = _number(value), _number(wanted)
    return one is not None and other is not None and compare(one, other)


def _number(value: Any) -> float | None:
    """The number in a value, including numeric text; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


@cache
def _warn_of_no_index() -> None:
    logger.warning(
        "a store without an index was searched by meaning, and the query ignored: make it with PagefileStore(memory, index={})"
    )


def _with_times_as_text(value: Any) -> Any:
    """Times in ISO 8601, as LangGraph's stores on disk write them."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        return {key: _with_times_as_text(one) for key, one in inner.items()}
    if isinstance(value, list | tuple):
        return [_with_times_as_text(one) for one in cast("Sequence[Any]", value)]
    return value


def _fields(item: StoredItem) -> dict[str, Any]:
    times = {"created_at": item.created, "updated_at": item.updated}
    return {"namespace": item.namespace, "key": item.key, "value": item.value, **times}
