"""A session cache without a server."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pagefile.errors import StoreUnavailableError
from pagefile.ports import CachedSession, Clock, SessionCache
from pagefile.records import JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.caching import SESSION_TTL_S, checked_version
from pagefile.stores.encoding import from_json, to_json


@dataclass(frozen=True, slots=True)
class _Kept:
    #: None for a tombstone.
    text: str | None
    version: int
    until: datetime


class InMemorySessions(SessionCache):
    """Keeps every promise of a session cache, with a clock controlled by the test; it can be emptied and taken down."""

    def __init__(self, clock: Clock, *, ttl_s: float = SESSION_TTL_S) -> None:
        self._clock = clock
        self._ttl = timedelta(seconds=ttl_s)
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._closed = False
        #: While set, every call fails as if the server were unreachable.
        self.down = False

    async def get(self, scope: Scope) -> CachedSession | None:
        kept = self._living(scope) if self._answers() else None
        if kept is None or kept.text is None:
            self.misses += 1
            return None
        self.hits += 1
        return CachedSession(from_json(kept.text), kept.version)

    async def put(self, scope: Scope, value: JsonObject, *, version: int) -> bool:
        text, place = to_json(value), _place(scope)
        checked_version(version)
        if not self._answers():
            return False
        kept = self._living(scope)
        if kept is not None and kept.version >= version:
            return False
        self._kept[place] = _Kept(text, version, self._clock.now() + self._ttl)
        return True

    async def drop(self, scope: Scope) -> None:
        place = _place(scope)
        kept = self._kept.get(place)
        # The mark of an erasure stays.
        if self._answers() and kept is not None and kept.text is not None:
            del self._kept[place]

    async def erase(self, scope: Scope, *, version: int) -> bool:
        place = _place(scope)
        checked_version(version)
        if not self._answers():
            return False
        self._kept[place] = _Kept(None, version, self._clock.now() + self._ttl)
        return True

    @property
    def name(self) -> str:
        return "a session cache in memory"

    async def kept(self) -> list[Scope]:
        if not self._answers():
            raise StoreUnavailableError("The session cache is down.")
        return [
            Scope(tenant, None, name) for (tenant, name), kept in self._kept.items() if kept.text is not None
        ]

    async def close(self) -> None:
        self._closed = True

    def flush(self) -> None:
        """Lose everything."""
        self._kept.clear()

    def _answers(self) -> bool:
        self.errors += self.down and not self._closed
        return not (self.down or self._closed)

    def _living(self, scope: Scope) -> _Kept | None:
        kept = self._kept.get(_place(scope))
        return kept if kept is not None and self._clock.now() < kept.until else None


def _place(scope: Scope) -> tuple[str, str]:
    return scope.tenant, rules.conversation_of(scope)
