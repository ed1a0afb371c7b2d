"""The Claude Agent SDK's transcripts in a Pagefile database: `ClaudeAgentOptions(session_store=PagefileSessionStore(memory))`.

The SDK writes a copy of each transcript to the store, and resumes from it on another machine.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from claude_agent_sdk import fold_session_summary

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import MemoryLoop
from pagefile.engine import Memory
from pagefile.errors import ConflictError
from pagefile.integrations.item_lists import ItemList
from pagefile.ports import OWN_NAMESPACE, ItemWrite, Namespace
from pagefile.records import DEFAULT_TENANT, JsonValue, Scope, checked_id

R = TypeVar("R")
Key = Mapping[str, str]

#: How often a summary is written again because another process was faster.
_ATTEMPTS = 20
#: The name of the main transcript, beside those of sub-agents.
_MAIN = "main"


class PagefileSessionStore:
    """The SDK's `SessionStore`, with all of its optional methods.

    Transcripts are items of the user, so exports, imports and erasures include them. They are a copy of what the command has on
    disk; with `ClaudeMemory` they hold what memory added to the prompts as well.
    """

    def __init__(
        self, memory: Memory | BlockingMemory, *, user_id: str | None = None, tenant: str | None = None
    ) -> None:
        self._loop = MemoryLoop(memory)
        self._memory = self._loop.memory
        self._user, self._tenant = user_id, tenant
        self._scope = Scope(
            DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant"),
            None if user_id is None else checked_id(user_id, "user_id"),
        )

    # -- the SDK's protocol ---------------------------------------------------------------------------------------------------

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Add entries; one whose uuid is there already is not added again."""
        await self._done(partial(self._append, key, entries))

    async def load(self, key: Any) -> list[Any] | None:
        """The entries of a transcript; None if there is none."""
        return await self._done(self._list(key).items) or None

    async def list_sessions(self, project_key: str) -> list[Any]:
        found = await self._done(partial(self._under, _sessions(project_key)))
        return [{"session_id": item.key, "mtime": item.value["mtime"]} for item in found]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        return [item.value for item in await self._done(partial(self._under, _sessions(project_key)))]

    async def delete(self, key: Any) -> None:
        """Remove a transcript; with the main one those of its sub-agents."""
        await self._done(partial(self._delete, key))

    async def list_subkeys(self, key: Any) -> list[str]:
        return [item.key for item in await self._done(partial(self._under, _subkeys(key)))]

    # -- on the memory's own loop ---------------------------------------------------------------------------------------------

    async def _append(self, key: Key, entries: Sequence[Any]) -> None:
        if not entries:
            return
        space = _uuids(key)
        named: list[str] = list(dict.fromkeys(str(entry["uuid"]) for entry in entries if entry.get("uuid")))
        known: list[Any] = (
            await self._items.get(self._scope, [(space, name) for name in named], now=self._now())
            if named
            else []
        )
        there = {name for name, item in zip(named, known, strict=True) if item is not None}
        new: list[Any] = []
        for entry in entries:
            name = entry.get("uuid")
            if name is None or name not in there:
                new.append(entry)
            if name is not None:
                there.add(name)
        if not new:
            return
        await self._list(key).append(new)
        marks = [ItemWrite(space, str(entry["uuid"]), True) for entry in new if entry.get("uuid")]
        if key.get("subpath") is not None:
            marks.append(ItemWrite(_subkeys(key), key["subpath"], True))
        if marks:
            await self._items.write(self._scope, marks, now=self._now())
        if key.get("subpath") is None:
            await self._summarize(key, new)

    async def _summarize(self, key: Key, entries: list[Any]) -> None:
        place = (_sessions(key["project_key"]), key["session_id"])
        for left in reversed(range(_ATTEMPTS)):
            (before,) = await self._items.get(self._scope, [place], now=self._now())
            known = None if before is None else before.value
            folded: Any = fold_session_summary(cast("Any", known), cast("Any", key), entries)
            mtime = max(int(self._now().timestamp() * 1000), (known or {"mtime": 0})["mtime"])
            write = ItemWrite(*place, cast("JsonValue", {**folded, "mtime": mtime}))
            try:
                await self._items.write(self._scope, [write], now=self._now(), expected={place: known})
            except ConflictError:
                if not left:
                    raise
            else:
                return

    async def _delete(self, key: Key) -> None:
        keys: list[Key] = [key]
        if key.get("subpath") is None:
            keys += [{**key, "subpath": item.key} for item in await self._under(_subkeys(key))]
        writes: list[ItemWrite] = []
        for one in keys:
            await self._list(one).clear()
            writes += [ItemWrite(item.namespace, item.key, None) for item in await self._under(_uuids(one))]
            if one.get("subpath") is None:
                writes.append(ItemWrite(_sessions(one["project_key"]), one["session_id"], None))
            else:
                writes.append(ItemWrite(_subkeys(one), one["subpath"], None))
        await self._items.write(self._scope, writes, now=self._now())

    async def _under(self, space: Namespace) -> list[Any]:
        return [
            item
            for item in await self._items.under(self._scope, space, now=self._now())
            if item.namespace == space
        ]

    def _list(self, key: Key) -> ItemList:
        name = ("claude", key["project_key"], key["session_id"], key.get("subpath") or _MAIN)
        return ItemList(self._memory, name, self._user, self._tenant)

    def _done(self, work: Callable[[], Awaitable[R]]) -> Awaitable[R]:
        return self._loop.started(work)

    @property
    def _items(self) -> Any:
        self._memory.engine.check_open()
        return self._memory.engine.store.items

    def _now(self) -> Any:
        return self._memory.engine.clock.now()


def _sessions(project: str) -> Namespace:
    return (OWN_NAMESPACE, "claude", "sessions", project)


def _subkeys(key: Key) -> Namespace:
    return (OWN_NAMESPACE, "claude", "subkeys", key["project_key"], key["session_id"])


def _uuids(key: Key) -> Namespace:
    return (
        OWN_NAMESPACE,
        "claude",
        "uuids",
        key["project_key"],
        key["session_id"],
        key.get("subpath") or _MAIN,
    )
