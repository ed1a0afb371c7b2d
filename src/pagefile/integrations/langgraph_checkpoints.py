"""LangGraph's checkpoints in a Pagefile database: `graph.compile(checkpointer=PagefileSaver(memory))`.

They are items of the user that a run names, so exports, imports and erasures include them: `memory.forget(user_id=…)` removes a
user's threads with everything else.
"""

import base64
import builtins
import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import MemoryLoop
from pagefile.engine import Memory
from pagefile.errors import ConflictError, MissingExtraError
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, Namespace, StoredItem
from pagefile.records import DEFAULT_TENANT, JsonValue, Scope, checked_id

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint import base
    from langgraph.checkpoint.serde.base import SerializerProtocol
except ImportError as error:
    raise MissingExtraError.of("langgraph", "LangGraph's checkpointer") from error

_CHECKPOINTS, _BLOBS, _WRITES, _HEADS = (
    "checkpoints",
    "checkpoint blobs",
    "checkpoint writes",
    "checkpoint heads",
)
#: The type of a channel that has no value.
_EMPTY = "empty"
#: How often the newest checkpoint of a thread is written again because another worker was faster.
_ATTEMPTS = 20


class PagefileSaver(base.BaseCheckpointSaver[str]):
    """LangGraph's checkpointer over an open memory.

    Args:
        memory: with a `Memory`, create it inside the event loop it was opened in; a `BlockingMemory` works everywhere.
        user_id: whose threads these are; by default `user_id` from the run's configuration, else the tenant's.
        serde: how values are serialized; by default as LangGraph does.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._loop = MemoryLoop(memory)
        self._memory = self._loop.memory
        self._user = None if user_id is None else checked_id(user_id, "user_id")
        self._tenant = DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant")

    # -- LangGraph's interface, synchronous and asynchronous ----------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        return self._loop.waited(partial(self._tuple, config))

    async def aget_tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        return await self._loop.started(partial(self._tuple, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[base.CheckpointTuple]:
        yield from self._loop.waited(partial(self._listed, config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[base.CheckpointTuple]:
        for one in await self._loop.started(partial(self._listed, config, filter, before, limit)):
            yield one

    def put(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        return self._loop.waited(partial(self._put, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        return await self._loop.started(partial(self._put, config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._loop.waited(partial(self._put_writes, config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._loop.started(partial(self._put_writes, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self._loop.waited(partial(self._delete_thread, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._loop.started(partial(self._delete_thread, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._loop.waited(partial(self._delete_for_runs, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._loop.started(partial(self._delete_for_runs, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._loop.waited(partial(self._copy_thread, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._loop.started(partial(self._copy_thread, source_thread_id, target_thread_id))

    def get_next_version(self, current: str | int | None, channel: None = None) -> str:
        """Counted, with a random part: two branches of a thread never give one version to two values."""
        last = 0 if current is None else int(str(current).split(".")[0])
        return f"{last + 1:032}.{random.random():.16f}"  # noqa: S311 - to tell branches apart

    # -- reading ----------------------------------------------------------------------------------------------------------

    async def _tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        place = self._place(config)
        wanted = base.get_checkpoint_id(config)
        if wanted is None:
            head = await self._value(place, (place.namespace(_HEADS), "latest"))
            if head is None:
                return None
            wanted = cast("str", head)
        kept = await self._value(place, (place.namespace(_CHECKPOINTS), wanted))
        return None if kept is None else await self._built(place, wanted, kept)

    async def _built(self, place: "_Place", checkpoint_id: str, kept: Any) -> base.CheckpointTuple:
        checkpoint = self._read(kept["checkpoint"])
        versions = cast("Mapping[str, Any]", checkpoint["channel_versions"])
        keys = [(place.namespace(_BLOBS), _name(channel, version)) for channel, version in versions.items()]
        blobs = await self._items.get(place.scope, keys, now=self._now())
        values = {
            channel: self._read(blob.value)
            for channel, blob in zip(versions, blobs, strict=True)
            if blob is not None and blob.value[0] != _EMPTY
        }
        parent = kept["parent"]
        return base.CheckpointTuple(
            config=place.config(checkpoint_id),
            checkpoint=cast("base.Checkpoint", {**checkpoint, "channel_values": values}),
            metadata=self._read(kept["metadata"]),
            parent_config=place.config(parent) if parent else None,
            pending_writes=await self._pending(place, checkpoint_id),
        )

    async def _pending(self, place: "_Place", checkpoint_id: str) -> builtins.list[base.PendingWrite]:
        found = await self._items.under(place.scope, place.namespace(_WRITES, checkpoint_id), now=self._now())
        ordered = sorted(
            found, key=lambda item: base.writes_sort_key(item.value["path"], *json.loads(item.key))
        )
        return [
            (json.loads(item.key)[0], item.value["channel"], self._read(item.value["value"]))
            for item in ordered
        ]

    async def _listed(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> builtins.list[base.CheckpointTuple]:
        found: list[base.CheckpointTuple] = []
        until = None if before is None else base.get_checkpoint_id(before)
        exact = None if config is None else base.get_checkpoint_id(config)
        for place, item in await self._kept(config):
            if limit is not None and len(found) >= limit:
                break
            if (until is not None and item.key >= until) or exact not in {None, item.key}:
                continue
            metadata = self._read(cast("Any", item.value)["metadata"])
            if all(metadata.get(name) == value for name, value in (wanted or {}).items()):
                found.append(await self._built(place, item.key, item.value))
        return found

    async def _kept(self, config: RunnableConfig | None) -> "builtins.list[tuple[_Place, StoredItem]]":
        """Every checkpoint that a configuration can mean, newest first."""
        found: list[tuple[_Place, StoredItem]] = []
        given = {} if config is None else config.get("configurable", {})
        prefix: Namespace = (OWN_NAMESPACE, _CHECKPOINTS)
        if "thread_id" in given:
            prefix = (*prefix, _label(str(given["thread_id"])))
            if "checkpoint_ns" in given:
                prefix = (*prefix, _label(given["checkpoint_ns"]))
        scopes = await self._scopes() if config is None else [self._place(config).scope]
        for scope in scopes:
            items = await self._items.under(scope, prefix, now=self._now())
            found += [(_Place.of(scope, item.namespace), item) for item in items]
        return sorted(found, key=lambda one: one[1].key, reverse=True)

    # -- writing ----------------------------------------------------------------------------------------------------------

    async def _put(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        place, checkpoint_id = self._place(config), checkpoint["id"]
        values = checkpoint["channel_values"]
        bare = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        kept: JsonValue = {
            "checkpoint": self._written(bare),
            "metadata": self._written(base.get_checkpoint_metadata(config, metadata)),
            "parent": base.get_checkpoint_id(config),
        }
        writes = [ItemWrite(place.namespace(_CHECKPOINTS), checkpoint_id, kept)]
        for channel, version in new_versions.items():
            value = self._written(values[channel]) if channel in values else [_EMPTY, ""]
            writes.append(ItemWrite(place.namespace(_BLOBS), _name(channel, version), value))
        await self._write_head(place, checkpoint_id, writes)
        return place.config(checkpoint_id)

    async def _write_head(self, place: "_Place", checkpoint_id: str, writes: Sequence[ItemWrite]) -> None:
        key = (place.namespace(_HEADS), "latest")
        for _ in range(_ATTEMPTS):
            head = await self._value(place, key)
            newest = max(checkpoint_id, cast("str", head or ""))
            try:
                await self._items.write(
                    place.scope, [*writes, ItemWrite(*key, newest)], now=self._now(), expected={key: head}
                )
            except ConflictError:
                continue
            return
        raise ConflictError(f"Thread {place.thread!r} is written faster than one more checkpoint can be.")

    async def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        place, checkpoint_id = self._place(config), cast("str", base.get_checkpoint_id(config))
        where = place.namespace(_WRITES, checkpoint_id)
        numbered = {
            (where, _name(task_id, base.WRITES_IDX_MAP.get(channel, number))): (channel, value)
            for number, (channel, value) in enumerate(writes)
        }
        there = await self._items.get(place.scope, [*numbered], now=self._now())
        # What a task wrote is written once; errors and interrupts, which have numbers below zero, are replaced.
        kept = {key for key, item in zip(numbered, there, strict=True) if item is not None}
        new = [
            ItemWrite(*key, {"channel": channel, "value": self._written(value), "path": task_path})
            for key, (channel, value) in numbered.items()
            if key not in kept or json.loads(key[1])[1] < 0
        ]
        await self._items.write(place.scope, new, now=self._now())

    # -- whole threads ----------------------------------------------------------------------------------------------------

    async def _delete_thread(self, thread_id: str) -> None:
        for scope in await self._scopes():
            items = await self._thread(scope, thread_id)
            await self._remove(scope, items)

    async def _copy_thread(self, source: str, target: str) -> None:
        for scope in await self._scopes():
            copies = [
                ItemWrite((*item.namespace[:2], _label(target), *item.namespace[3:]), item.key, item.value)
                for item in await self._thread(scope, source)
            ]
            await self._items.write(scope, copies, now=self._now())

    async def _delete_for_runs(self, run_ids: Sequence[str]) -> None:
        for place, item in await self._kept(None):
            if self._read(cast("Any", item.value)["metadata"]).get("run_id") in run_ids:
                writes = await self._items.under(
                    place.scope, place.namespace(_WRITES, item.key), now=self._now()
                )
                await self._remove(place.scope, [item, *writes])
                await self._mend_head(place)

    async def _mend_head(self, place: "_Place") -> None:
        left = await self._items.under(place.scope, place.namespace(_CHECKPOINTS), now=self._now())
        newest = max((item.key for item in left), default=None)
        write = ItemWrite(place.namespace(_HEADS), "latest", newest)
        await self._items.write(place.scope, [write], now=self._now())

    async def _thread(self, scope: Scope, thread_id: str) -> builtins.list[StoredItem]:
        found: list[StoredItem] = []
        for kind in (_CHECKPOINTS, _BLOBS, _WRITES, _HEADS):
            prefix = (OWN_NAMESPACE, kind, _label(thread_id))
            found += await self._items.under(scope, prefix, now=self._now())
        return found

    async def _remove(self, scope: Scope, items: Sequence[StoredItem]) -> None:
        gone = [ItemWrite(item.namespace, item.key, None) for item in items]
        await self._items.write(scope, gone, now=self._now())

    # -- helpers ----------------------------------------------------------------------------------------------------------

    def _place(self, config: RunnableConfig) -> "_Place":
        given = config.get("configurable", {})
        user = self._user if self._user is not None else given.get("user_id")
        scope = Scope(self._tenant, None if user is None else checked_id(str(user), "user_id"))
        return _Place(scope, str(given["thread_id"]), given.get("checkpoint_ns", ""))

    async def _scopes(self) -> builtins.list[Scope]:
        """Whose threads these can be."""
        if self._user is not None:
            return [Scope(self._tenant, self._user)]
        return await self._items.owners(self._tenant)

    async def _value(self, place: "_Place", key: ItemKey) -> JsonValue:
        self._memory.engine.check_open()
        (found,) = await self._items.get(place.scope, [key], now=self._now())
        return None if found is None else found.value

    def _written(self, value: Any) -> JsonValue:
        kind, data = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(data).decode()]

    def _read(self, kept: Any) -> Any:
        return self.serde.loads_typed((kept[0], base64.b64decode(kept[1])))

    @property
    def _items(self) -> Any:
        return self._memory.engine.store.items

    def _now(self) -> Any:
        return self._memory.engine.clock.now()


class _Place:
    """A thread's checkpoints in one of its namespaces."""

    def __init__(self, scope: Scope, thread: str, checkpoint_ns: str) -> None:
        self.scope, self.thread, self.checkpoint_ns = scope, thread, checkpoint_ns

    @classmethod
    def of(cls, scope: Scope, namespace: Namespace) -> "_Place":
        return cls(scope, namespace[2][1:], namespace[3][1:])

    def namespace(self, kind: str, *more: str) -> Namespace:
        return (OWN_NAMESPACE, kind, _label(self.thread), _label(self.checkpoint_ns), *more)

    def config(self, checkpoint_id: str) -> RunnableConfig:
        named = {
            "thread_id": self.thread,
            "checkpoint_ns": self.checkpoint_ns,
            "checkpoint_id": checkpoint_id,
            **({} if self.scope.user is None else {"user_id": self.scope.user}),
        }
        return {"configurable": named}


def _label(name: str) -> str:
    """A label of a namespace, which cannot be empty."""
    return f"={name}"


def _name(*parts: Any) -> str:
    return json.dumps(parts)
