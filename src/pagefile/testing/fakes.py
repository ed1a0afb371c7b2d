"""Fakes for tests: a clock and a store that do as they are told, an embedder without a model, a cache without a server."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_type_hints

import numpy as np

from pagefile.errors import StoreUnavailableError
from pagefile.ports import CachedSession, Clock, Embedder, Part, SessionCache, Store, Vector, VectorIndex
from pagefile.records import ErasureReceipt, JsonObject, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, to_json
from pagefile.stores.session_cache import SESSION_TTL_S, checked_version

_START = datetime(2026, 2, 9, 8, 0, tzinfo=UTC)


class FakeClock:
    """Does not move until told to; may go backwards."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        """The time it was set to."""
        return self._now

    def set(self, moment: datetime) -> None:
        """Jump to a point in time."""
        self._now = utc(moment)

    def advance(self, seconds: float) -> None:
        """Move forward, or back if negative."""
        self._now += timedelta(seconds=seconds)


_RUNS = (1, 2, 3)


class HashingEmbedder(Embedder):
    """Hashes n-grams of one to three characters into `dimension` buckets; the same text always gives the same vector."""

    def __init__(self, dimension: int = 64, *, name: str = "hashing") -> None:
        self.name = name
        self.dimension = dimension
        #: How many texts were embedded.
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> Vector:
        self.embedded += len(texts)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            plain = text.strip().casefold()
            for size in _RUNS:
                for at in range(len(plain) - size + 1):
                    row[zlib.crc32(plain[at : at + size].encode()) % self.dimension] += 1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


class InMemorySessions(SessionCache):
    """Keeps every promise of a session cache, with a clock controlled by the test; it can be emptied and taken down."""

    def __init__(self, clock: Clock, *, ttl_s: float = SESSION_TTL_S) -> None:
        self._clock = clock
        self._ttl = timedelta(seconds=ttl_s)
        #: By tenant and conversation: the text (None after an erasure), its version, and until when it is kept.
        self._kept: dict[tuple[str, str], tuple[str | None, int, datetime]] = {}
        #: What a permit says: how often a conversation was invalidated.
        self._invalidated = Counter[tuple[str, str]]()
        self._closed = False
        #: While set, every call fails as if the server were unreachable.
        self.down = False

    async def get(self, scope: Scope) -> CachedSession | None:
        text, version = self._living(scope) if self._answers() else (None, -1)
        if text is None:
            self.misses += 1
            return None
        self.hits += 1
        return CachedSession(from_json(text), version)

    async def permit(self, scope: Scope) -> str | None:
        return str(self._invalidated[_place(scope)]) if self._answers() else None

    async def put(self, scope: Scope, value: JsonObject, *, version: int, permit: str | None = None) -> bool:
        now = str(self._invalidated[_place(scope)])
        return permit in {None, now} and self._keep(scope, to_json(value), version)

    async def drop(self, scope: Scope) -> None:
        text, *_ = self._kept.get(place := _place(scope), (None,))
        # The mark of an erasure stays.
        if self._answers() and text is not None:
            del self._kept[place]

    async def invalidate(self, scope: Scope) -> bool:
        await self.drop(scope)
        reached = not (self.down or self._closed)
        self._invalidated[_place(scope)] += reached
        return reached

    async def erase(self, scope: Scope, *, version: int) -> bool:
        return self._keep(scope, None, version)

    @property
    def answers(self) -> bool:
        return not self.down

    @property
    def name(self) -> str:
        return "a session cache in memory"

    async def kept(self) -> list[Scope]:
        if not self._answers():
            raise StoreUnavailableError("The session cache is down.")
        kept = [place for place, (text, *_) in self._kept.items() if text is not None]
        return [Scope(tenant, None, name) for tenant, name in kept]

    async def close(self) -> None:
        self._closed = True

    def flush(self) -> None:
        """Lose everything."""
        self._kept.clear()

    def _answers(self) -> bool:
        self.errors += self.down and not self._closed
        return not (self.down or self._closed)

    def _keep(self, scope: Scope, text: str | None, version: int) -> bool:
        _, newest = self._living(scope)
        checked_version(version)
        if not self._answers() or (text is not None and newest >= version):
            return False
        self._kept[_place(scope)] = text, version, self._clock.now() + self._ttl
        return True

    def _living(self, scope: Scope) -> tuple[str | None, int]:
        """The text and its version; None and -1 if there is nothing, or it has expired."""
        text, version, until = self._kept.get(_place(scope), (None, -1, self._clock.now()))
        return (text, version) if self._clock.now() < until else (None, -1)


def _place(scope: Scope) -> tuple[str, str]:
    return scope.tenant, rules.conversation_of(scope)


_PORTS = sorted(get_type_hints(Store).keys() - {"audit"})


class FlakyStore(Store):
    """Passes everything on to another store, but raises for the named verbs.

    Verbs are written `port.verb`: `log.append`, `reader.view`, `pages.load` …, and `erase`, `describe` for the store
    itself. A failing verb never reaches the underlying store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._error: Exception = StoreUnavailableError()
        self._failing: set[str] = set()
        self._left: int | None = None
        for name in _PORTS:
            setattr(self, name, _FlakyPort(name, getattr(store, name), self.check))

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex | None:
        index = self._store.vectors(cache_bytes=cache_bytes)
        if index is None:
            return None
        flaky = _FlakyPort("vectors", index, self.check)
        flaky.name, flaky.apart = index.name, index.apart
        return cast("VectorIndex", flaky)

    def fail(self, verbs: Iterable[str], *, error: Exception | None = None, times: int | None = None) -> None:
        """Fail these verbs from now on, or only the next few times."""
        self._failing = set(verbs)
        self._error = error or StoreUnavailableError()
        self._left = times

    def mend(self) -> None:
        """Stop failing."""
        self._failing = set()

    def check(self, verb: str) -> None:
        """Raise if this verb is to fail now."""
        if verb not in self._failing or self._left == 0:
            return
        if self._left is not None:
            self._left -= 1
        raise self._error

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        self.check("erase")
        return await self._store.erase(scope, part)

    async def describe(self) -> JsonObject:
        self.check("describe")
        return await self._store.describe()

    async def close(self) -> None:
        await self._store.close()


class _FlakyPort:
    """Any port: every verb first checks whether it is to fail."""

    def __init__(self, name: str, port: object, check: Callable[[str], None]) -> None:
        #: Only a vector store has these.
        self.name, self.apart = "", False
        self._prefix = name
        self._port = port
        self._check = check

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._port, verb)

        async def checked(*args: Any, **kwargs: Any) -> Any:
            self._check(f"{self._prefix}.{verb}")
            return await method(*args, **kwargs)

        return checked
