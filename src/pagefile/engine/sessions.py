"""The session values of a memory, complete, and from a cache where there is one.

A cached value counts when it is sealed with the database's own secret and its version is the database's. Two things save
a query: a caller that reads the log anyway gets the version with it, and a checked version is trusted
for `TRUST_S`. Every write through a memory invalidates the value before it is acknowledged, or waits until nobody trusts it
(`CacheDoubts`), so the two seconds matter only for writes of a process that has no cache.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar, Unpack

import anyio

from pagefile.engine.cache_doubts import TRUST_S, CacheDoubts
from pagefile.engine.ownership import on_behalf
from pagefile.errors import StoreError, StoreUnavailableError
from pagefile.lru import Lru
from pagefile.ports import (
    Beside,
    CachedSession,
    CheckpointDraft,
    Clock,
    ConversationQuery,
    LogView,
    Meter,
    ResetDraft,
    SessionCache,
    Store,
    TurnChange,
    TurnDraft,
    TurnLog,
    ViewRequest,
)
from pagefile.records import ConversationInfo, Entry, JsonObject, Scope, Turn
from pagefile.stores.session import WINDOW_TURNS, complete
from pagefile.stores.session_cache import head_version

logger = logging.getLogger("pagefile")

T = TypeVar("T")

#: Conversations whose version is remembered.
_REMEMBERED = 10_000
#: Tokens of the views that are held, and what a view takes besides.
_HELD_TOKENS, _VIEW_TOKENS = 2_000_000, 1_000

#: Has a job about a conversation done in the background.
Later = Callable[[Scope, Callable[[Scope], Awaitable[object]]], None]


class SessionRead(NamedTuple):
    """A view of the log and the session beside it."""

    #: None if the store could not be read.
    view: LogView | None
    session: JsonObject | None
    #: Why one of them is missing, or may be out of date.
    error: StoreError | None = None


class Sessions:
    """What is stored of a session, completed from the log."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    async def get(self, scope: Scope) -> JsonObject | None:
        """The session of a conversation, or None; another user's raises `ConflictError`."""
        return await self._get(scope, operator=False)

    async def get_for_operator(self, scope: Scope) -> JsonObject | None:
        """The same without an owner check, for code that knows conversations but not users."""
        return await self._get(scope, operator=True)

    async def read(self, scope: Scope, view: Callable[[], Awaitable[LogView]]) -> SessionRead:
        """The session beside a view that the caller needs anyway, the same one for a conversation each time.

        For code that knows conversations but no users: whose it is, the view decides.
        """
        found = None
        try:
            found = await view()
            return SessionRead(found, await self._stored(found))
        except StoreError as error:
            return SessionRead(found, None, error)

    async def snapshot(self, scope: Scope) -> JsonObject | None:
        """What a cache knows about the user while the store cannot be read."""
        return None

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        """Replace what is stored; refused with `ErasedError` if the conversation was erased since `epoch`."""
        await self._store.sessions.put(scope, value, epoch=epoch)
        await self._put(scope)

    async def change(self, scope: Scope, change: Callable[[JsonObject | None], JsonObject]) -> None:
        """Atomically replace the stored value with the result of `change`."""
        await self._store.sessions.change(scope, change)
        await self._put(scope)

    async def _put(self, scope: Scope) -> None:
        await self.changed(scope)

    async def changed(self, scope: Scope) -> None:
        """Note that the log or the session of a conversation was written to."""

    def forget(self) -> None:
        """Note that sessions were erased."""

    async def prepare(self) -> None:
        """Make the cache usable, if there is one."""

    async def from_store(self, scope: Scope) -> JsonObject | None:
        """The session of a conversation, whatever a cache has."""
        stored = await self._timed(self._store.sessions.get(scope))
        return None if stored is None else complete(scope, stored, await self._view(scope))

    async def _get(self, scope: Scope, *, operator: bool) -> JsonObject | None:
        return await self.from_store(await on_behalf(self._store.reader, scope) if operator else scope)

    async def _timed(self, read: Awaitable[T]) -> T:
        began = time.perf_counter()
        try:
            return await read
        finally:
            self._meter.observe("pagefile_session_seconds", time.perf_counter() - began)

    async def _stored(self, view: LogView) -> JsonObject | None:
        stored = await self._timed(self._store.sessions.get(view.head.scope))
        return None if stored is None else complete(view.head.scope, stored, view)

    async def _view(self, scope: Scope) -> LogView:
        return await self._store.reader.view(ViewRequest(scope, 0, WINDOW_TURNS))


class _Trust(NamedTuple):
    """What the database said about a conversation, and until when it is believed."""

    owner: str | None
    version: int
    until: float


class CachedSessions(Sessions):
    """The same through a cache, in which other programs find the complete value."""

    def __init__(
        self,
        store: Store,
        cache: SessionCache,
        meter: Meter,
        clock: Clock,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        super().__init__(store, meter)
        self._cache = cache
        self._now = monotonic
        self._doubts = CacheDoubts(store.leases, clock, monotonic, sleep)
        self._trusted: Lru[tuple[str, str], _Trust] = Lru(_REMEMBERED)
        #: Views as they were at the version in their head, which a cached value of the same version confirms.
        self._views: Lru[tuple[str, str], LogView] = Lru(_HELD_TOKENS, _weight)
        self._ready = False
        #: What was logged once already.
        self._logged = False
        #: Refreshes a value in the background after a write; None leaves it to the next reader.
        self.later: Later | None = None

    async def read(self, scope: Scope, view: Callable[[], Awaitable[LogView]]) -> SessionRead:
        await self.prepare()
        held = self._views.get(_place(scope))
        if held is not None and self._trusts(scope) is not None:
            cached = await self._cached(scope)
            if cached is not None and cached.version == head_version(held.head):
                return SessionRead(held, cached.value)
        began = self._now()
        cached, found = await self._beside_cache(scope, _caught(view))
        if isinstance(found, StoreError):
            usable = cached is not None and isinstance(found, StoreUnavailableError)
            return SessionRead(None, cached.value if usable and cached else None, found)
        version = head_version(found.head)
        self._views[_place(scope)] = found
        if cached is not None and cached.version == version:
            self._trust(found.head, version, began)
            return SessionRead(found, cached.value)
        try:
            return SessionRead(found, await self._fill(found.head.scope, found))
        except StoreError as error:
            return SessionRead(found, None, error)

    async def snapshot(self, scope: Scope) -> JsonObject | None:
        cached = await self._cached(scope)
        known = cached.value.get("user_snapshot") if cached is not None and _is_of(cached, scope) else None
        return known if isinstance(known, dict) else None

    async def _put(self, scope: Scope) -> None:
        await self._invalidate(scope)
        await self._refresh(scope)

    async def changed(self, scope: Scope) -> None:
        await self._invalidate(scope)
        if self.later is not None and scope.conversation is not None:
            self.later(scope, self._refresh)

    async def _invalidate(self, scope: Scope) -> None:
        self._trusted.pop(_place(scope), None)
        self._views.pop(_place(scope), None)
        tell = partial(self._cache.invalidate, scope)
        if not await tell():
            await self._doubts.outlast(tell)

    def forget(self) -> None:
        self._trusted.clear()
        self._views.clear()

    async def _get(self, scope: Scope, *, operator: bool) -> JsonObject | None:
        await self.prepare()
        trust, began = self._trusts(scope), self._now()
        if trust is not None and (operator or trust.owner == scope.user):
            cached = await self._cached(scope)
            if cached is not None and cached.version >= trust.version:
                return cached.value
            head = await self._head(scope, operator=operator)
        else:
            cached, found = await self._beside_cache(
                scope, _caught(lambda: self._head(scope, operator=operator))
            )
            if isinstance(found, StoreError):
                if (
                    cached is not None
                    and isinstance(found, StoreUnavailableError)
                    and (operator or _is_of(cached, scope))
                ):
                    self._log("the store cannot be read, sessions come from the cache for now: %s", found)
                    return cached.value
                raise found
            head = found
        if head is None:
            # Nothing was written, or another user owns it: the database knows which.
            return None if operator else await self.from_store(scope)
        version = head_version(head)
        if cached is not None and cached.version == version:
            self._trust(head, version, began)
            return cached.value
        return await self._fill(head.scope)

    async def _fill(self, scope: Scope, view: LogView | None = None) -> JsonObject | None:
        """The value from the database, cached unless the conversation is written to meanwhile.

        Its version is read before it: it may be newer, never older. A view counts if nothing was written since.
        """
        began = self._now()
        permit = await self._cache.permit(scope) if self._ready else None
        head = await self._head(scope) if permit is not None else None
        if view is not None and len(view.turns) >= min(WINDOW_TURNS, view.head.live_turns):
            value = await self._stored(view)
            if head is not None and head_version(head) != head_version(view.head):
                return value
        else:
            value = await self.from_store(scope)
        if value is None or head is None:
            return value
        version = head_version(head)
        if await self._cache.put(scope, value, version=version, permit=permit):
            self._trust(head, version, began)
        return value

    async def _refresh(self, scope: Scope) -> None:
        try:
            await self.prepare()
            await self._fill(await on_behalf(self._store.reader, scope))
        except StoreError as error:
            # What the error says names the conversation, which is nobody else's to read in a log.
            logger.debug("the cached session was not refreshed, the next reader does it: %s", error.code)

    async def _head(self, scope: Scope, *, operator: bool = False) -> ConversationInfo | None:
        if operator:
            scope = await on_behalf(self._store.reader, scope)
        heads = await self._store.reader.heads(ConversationQuery(scope, limit=1))
        return heads[0] if heads else None

    async def _beside_cache(self, scope: Scope, read: Awaitable[T]) -> tuple[CachedSession | None, T]:
        """A cached value, and what is read of the database at the same time."""
        found: list[CachedSession | None] = []
        other: list[T] = []

        async def ask() -> None:
            found.append(await self._cached(scope))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(self._doubts.look)
            other.append(await read)
        return found[0], other[0]

    async def _cached(self, scope: Scope) -> CachedSession | None:
        cached = await self._timed(self._cache.get(scope)) if self._ready else None
        result = "hit" if cached is not None else "miss" if self._cache.answers else "down"
        self._meter.count("pagefile_session_cache_total", result=result)
        return cached

    async def prepare(self) -> None:
        """Register the cache with the database, so that erasures by any process reach it, and get the secret that seals values."""
        if self._ready:
            return
        try:
            await self._store.erasures.begin(self._cache.name)
            self._cache.secret = await self._store.sessions.secret()
            self._ready = True
        except StoreError as error:
            self._log("sessions are not cached, because erasures would not reach the cache: %s", error)

    def _trusts(self, scope: Scope) -> _Trust | None:
        trust = self._trusted.get(_place(scope))
        until = min(trust.until, self._doubts.clear_until) if trust is not None else 0
        return trust if until > self._now() else None

    def _trust(self, head: ConversationInfo, version: int, compared: float) -> None:
        """Believe what the database said when it was asked at that time, or later."""
        self._trusted[_place(head.scope)] = _Trust(head.scope.user, version, compared + TRUST_S)

    def _log(self, line: str, error: Exception) -> None:
        logger.log(logging.DEBUG if self._logged else logging.WARNING, line, error)
        self._logged = True


async def _caught(read: Callable[[], Awaitable[T]]) -> T | StoreError:
    """What is read, or the error: a task group would wrap it."""
    try:
        return await read()
    except StoreError as error:
        return error


def _weight(view: LogView) -> int:
    return _VIEW_TOKENS + view.head.live_tokens


def _place(scope: Scope) -> tuple[str, str]:
    return scope.tenant, scope.conversation or ""


def _is_of(cached: CachedSession, scope: Scope) -> bool:
    meta = cached.value.get("meta")
    return isinstance(meta, dict) and meta.get("user_id") == (scope.user or "")


class FollowedLog(TurnLog):
    """A turn log that notifies the session store of its writes."""

    def __init__(self, log: TurnLog, changed: Callable[[Scope], Awaitable[None]]) -> None:
        self._log = log
        self._changed = changed

    async def append(self, draft: TurnDraft) -> Turn:
        return await self._then(draft.scope, self._log.append(draft))

    async def advance(self, change: TurnChange) -> Turn:
        return await self._then(change.scope, self._log.advance(change))

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        return await self._then(marker.scope, self._log.mark(marker))

    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        await self._then(scope, self._log.claim(scope, epoch=epoch))

    async def restore(self, entries: Sequence[Entry], **beside: Unpack[Beside]) -> int:
        write = self._log.restore(entries, **beside)
        return await self._then(entries[0].scope, write) if entries else await write

    async def _then(self, scope: Scope, write: Awaitable[T]) -> T:
        try:
            return await write
        finally:
            # A failed write may still have been committed.
            await self._changed(scope)
