"""Histories as frameworks keep them themselves: lists of JSON items in the database, exactly as they were given.

They are items of their user, so exports, imports and erasures include them. What was said in them is in the log, too: this is what a
framework wants back to the letter, with ids and signatures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pagefile.engine import Memory
from pagefile.errors import ConflictError
from pagefile.ports import OWN_NAMESPACE, ItemWrite, Namespace
from pagefile.records import DEFAULT_TENANT, JsonValue, Scope, checked_id

#: How often a list is written again because another worker was faster.
_ATTEMPTS = 20
_HEAD = "head"


@dataclass(frozen=True, slots=True)
class ItemList:
    """One list of a user; its methods run on the memory's own event loop."""

    memory: Memory
    #: What kind of list it is, and its name.
    name: tuple[str, ...]
    user: str | None = None
    tenant: str | None = None

    @property
    def scope(self) -> Scope:
        tenant = DEFAULT_TENANT if self.tenant is None else checked_id(self.tenant, "tenant")
        return Scope(tenant, None if self.user is None else checked_id(self.user, "user_id"))

    @property
    def space(self) -> Namespace:
        return (OWN_NAMESPACE, "lists", *self.name)

    async def length(self) -> int:
        (head,) = await self._items.get(self.scope, [(self.space, _HEAD)], now=self._now())
        return 0 if head is None else int(head.value["length"])

    async def items(self, last: int | None = None) -> list[JsonValue]:
        """All items in their order, or the last few."""
        length = await self.length()
        first = 0 if last is None else max(0, length - max(0, last))
        keys = [(self.space, _key(number)) for number in range(first, length)]
        found: list[Any] = await self._items.get(self.scope, keys, now=self._now()) if keys else []
        return [item.value["item"] for item in found if item is not None]

    async def append(self, items: Sequence[JsonValue]) -> None:
        for left in reversed(range(_ATTEMPTS)):
            length = await self.length()
            writes = [
                ItemWrite(self.space, _key(length + number), {"item": item})
                for number, item in enumerate(items)
            ]
            try:
                return await self._write(writes, length, length + len(items))
            except ConflictError:
                if not left:
                    raise
        return None

    async def pop(self) -> JsonValue:
        """Remove the last item and return it; None if there is none."""
        for left in reversed(range(_ATTEMPTS)):
            length = await self.length()
            if not length:
                return None
            (last,) = await self.items(1) or [None]
            try:
                await self._write([ItemWrite(self.space, _key(length - 1), None)], length, length - 1)
            except ConflictError:
                if not left:
                    raise
            else:
                return last
        return None

    async def replace(self, items: Sequence[JsonValue]) -> None:
        """The list is these items now."""
        length = await self.length()
        writes = [ItemWrite(self.space, _key(number), {"item": item}) for number, item in enumerate(items)]
        writes += [ItemWrite(self.space, _key(number), None) for number in range(len(items), length)]
        await self._write(writes, length, len(items))

    async def clear(self) -> None:
        await self.replace([])

    async def _write(self, writes: Sequence[ItemWrite], before: int, after: int) -> None:
        head = ItemWrite(self.space, _HEAD, {"length": after} if after else None)
        expected: dict[tuple[Namespace, str], JsonValue] = {
            (self.space, _HEAD): {"length": before} if before else None
        }
        if before or after:
            await self._items.write(self.scope, [*writes, head], now=self._now(), expected=expected)

    @property
    def _items(self) -> Any:
        self.memory.engine.check_open()
        return self.memory.engine.store.items

    def _now(self) -> Any:
        return self.memory.engine.clock.now()


def _key(number: int) -> str:
    return f"{number:012d}"
