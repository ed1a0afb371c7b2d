"""Responses and conversations that a provider holds: which of our conversations they belong to.

A client that leaves its history with the provider sends nothing but an id. Each is kept as an item of its user: the next
process, or another worker, knows it too, and it is erased with the user.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError
from pagefile.lru import Lru
from pagefile.ports import OWN_NAMESPACE, ItemWrite
from pagefile.records import Scope, checked_id
from pagefile.shapes.skeleton import as_object

_NAMESPACE = (OWN_NAMESPACE, "gateway")
_REMEMBERED = 10_000
#: Longer than a provider keeps a response; a conversation that rested longer begins again here.
_KEPT_S = 400 * 24 * 3600.0


class Held(NamedTuple):
    """What an id stands for."""

    conversation: str
    #: What to continue at the provider, if the client knows only the first of several rounds.
    last: str | None = None


@dataclass(slots=True)
class ProviderIds:
    memory: Memory
    _known: Lru[tuple[Scope, str], Held] = field(default_factory=lambda: Lru(_REMEMBERED))

    async def find(self, scope: Scope, name: str) -> Held | None:
        if (scope, name) in self._known:
            return self._known[scope, name]
        if not _is_usable(name):
            return None
        engine = self.memory.engine
        (item,) = await engine.store.items.get(scope, [(_NAMESPACE, name)], now=engine.clock.now())
        value = None if item is None else as_object(item.value)
        if value is None:
            return None
        self._known[scope, name] = Held(str(value["conversation"]), value.get("last"))
        return self._known[scope, name]

    async def keep(self, scope: Scope, held: dict[str, Held]) -> None:
        """Remember these; what is known already is not written again."""
        new = {
            name: one
            for name, one in held.items()
            if _is_usable(name) and self._known.get((scope, name)) != one
        }
        if not new:
            return
        engine = self.memory.engine
        writes = [ItemWrite(_NAMESPACE, name, _value(one), ttl_s=_KEPT_S) for name, one in new.items()]
        await engine.store.items.write(scope, writes, now=engine.clock.now())
        for name, one in new.items():
            self._known[scope, name] = one


def _value(held: Held) -> dict[str, Any]:
    return {name: value for name, value in held._asdict().items() if value is not None}


def _is_usable(name: str) -> bool:
    try:
        return bool(checked_id(name, "response id"))
    except InvalidArgumentError:
        return False
