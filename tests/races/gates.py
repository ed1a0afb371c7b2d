"""A store whose deferred writes stop at a gate, so that an erasure can come between what was read and what is written."""

import random

import anyio

from pagefile.ports import Store

#: What is written on the strength of something that was read before.
DEFERRED = frozenset(
    (
        "log.append", "log.advance", "log.mark", "log.restore", "facts.revise", "calls.add", "terms.write", "watermarks.advance",
        "vectors.put", "pages.put", "page_index.write", "sessions.put", "cache.put",
    )
)  # fmt: skip
_PORTS = (
    "log", "reader", "source", "facts", "pages", "page_keeper", "page_index", "media", "calls", "sessions", "watermarks", "terms",
    "keys", "items", "erasures", "leases",
)  # fmt: skip
#: Nobody waits at a gate for longer: who erases in this very process may be waited for there.
_LONGEST_S = 5.0


class Gate:
    """Holds writes up: those named until they are let through, all others for a moment."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._held: frozenset[str] = frozenset()
        self._opened = anyio.Event()
        #: What stopped here since it was closed.
        self.reached: list[str] = []

    def close(self, verbs: list[str]) -> None:
        """Hold these from now on."""
        self._held, self._opened, self.reached = frozenset(verbs), anyio.Event(), []

    def open(self) -> None:
        """Let everything through."""
        self._held = frozenset()
        self._opened.set()

    async def passed(self, verb: str) -> None:
        """Return when a verb may go on."""
        if verb in self._held:
            self.reached.append(verb)
            with anyio.move_on_after(_LONGEST_S):
                await self._opened.wait()
        elif verb in DEFERRED and self._pause_s:
            await anyio.sleep(random.uniform(0, self._pause_s))


class GatedPort:
    """Any port: its deferred writes ask the gate first."""

    def __init__(self, name: str, port: object, gate: Gate) -> None:
        self._prefix, self._port, self._gate = name, port, gate

    def __getattr__(self, verb: str) -> object:
        found = getattr(self._port, verb)
        name = f"{self._prefix}.{verb}"
        if name not in DEFERRED:
            return found

        async def gated(*args: object, **kwargs: object) -> object:
            await self._gate.passed(name)
            return await found(*args, **kwargs)

        return gated


class GatedStore(Store):
    """Another store behind a gate."""

    def __init__(self, store: Store, gate: Gate) -> None:
        self._store, self._gate = store, gate
        for name in _PORTS:
            setattr(self, name, GatedPort(name, getattr(store, name), gate))
        self.audit = store.audit

    def vectors(self, *, cache_bytes: int | None = None) -> object:
        index = self._store.vectors(cache_bytes=cache_bytes)
        return None if index is None else GatedPort("vectors", index, self._gate)

    async def erase(self, scope, part=None):
        return await self._store.erase(scope, part)

    async def scrub(self):
        return await self._store.scrub()

    async def describe(self):
        return await self._store.describe()

    async def close(self):
        await self._store.close()
