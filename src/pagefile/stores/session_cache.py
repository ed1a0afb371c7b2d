"""A session cache in front of a database, and the function that opens one by its URL."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pagefile.errors import InvalidArgumentError, SettingsError, StoreError, StoreUnavailableError
from pagefile.ports import Clock, ConversationQuery, Erasures, LogReader, SessionCache, SessionStore
from pagefile.records import ConversationInfo, JsonObject, Scope
from pagefile.stores.erasure import scope_key

logger = logging.getLogger("pagefile")

#: Half an hour.
SESSION_TTL_S = 1800
#: The largest whole number that Lua keeps exactly.
MAX_VERSION = 2**53 - 1

#: The version of a conversation's session in the database; None when there is no such conversation for this user.
VersionOf: TypeAlias = Callable[[Scope], Awaitable[int | None]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SCHEMES = frozenset({"redis", "rediss", "unix"})
_KNOWN = "redis://host:6379/0, rediss://host:6379/0, unix:///path/to/redis.sock?db=0"


def checked_version(version: int) -> int:
    if not 0 <= version <= MAX_VERSION:
        raise InvalidArgumentError(f"A session's version is from 0 to {MAX_VERSION}, not {version}.")
    return version


def head_version(head: ConversationInfo) -> int:
    """The version of the session that belongs to this head: a caller that has the head needs no query.

    Neither part ever decreases: every entry raises the first, and every other write, clocks permitting, the second.
    """
    return head.last_seq + (head.updated - _EPOCH) // _MICROSECOND


def erased_version(at: datetime) -> int:
    """A version above that of every session written before now; those written in the next second are not cached either."""
    return (at - _EPOCH) // _MICROSECOND + 1_000_000


def versions_in(reader: LogReader) -> VersionOf:
    """Versions read from the log, one small query each."""

    async def version_of(scope: Scope) -> int | None:
        heads = await reader.heads(ConversationQuery(scope, limit=1))
        return head_version(heads[0]) if heads else None

    return version_of


class CachedSessions(SessionStore):
    """The sessions of a database through a cache; what is read is what the database holds, whatever the cache does.

    A cached value counts only when its version is the database's present one. So it does not matter how the cache came to
    be out of date: turns written past it, an outage in which writes were lost, another process, an erasure.
    """

    def __init__(
        self, sessions: SessionStore, cache: SessionCache, version_of: VersionOf, erasures: Erasures
    ) -> None:
        self._sessions = sessions
        self._cache = cache
        self._version_of = version_of
        self._erasures = erasures
        self._follows = False
        self._told = False

    async def get(self, scope: Scope) -> JsonObject | None:
        version = await self._version_of(scope)
        if version is None:
            # Nothing was written, or another user owns it: the database knows which.
            return await self._sessions.get(scope)
        cached = await self._cache.get(scope)
        if cached is not None and cached.version == version:
            return cached.value
        return await self._fill(scope, version)

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        await self._sessions.put(scope, value, epoch=epoch)
        # A slow clock leaves the version unchanged, and the cache would not replace an equal version.
        await self._cache.drop(scope)
        version = await self._version_of(scope)
        if version is not None:
            await self._fill(scope, version)

    async def _fill(self, scope: Scope, version: int) -> JsonObject | None:
        """The value from the database, kept under a version that was read before it: it may be newer, never older."""
        follows = await self._follows_erasures()
        value = await self._sessions.get(scope)
        cached = value is not None and follows and await self._cache.put(scope, value, version=version)
        # It may have been erased while it was on its way to the cache.
        if cached and await self._version_of(scope) != version:
            await self._cache.drop(scope)
        return value

    async def _follows_erasures(self) -> bool:
        """Register this cache with the database, so that erasures by any process reach it; otherwise nothing is cached."""
        try:
            if not self._follows:
                await self._erasures.begin(self._cache.name)
            self._follows = True
        except StoreError as error:
            level = logging.DEBUG if self._told else logging.WARNING
            logger.log(
                level, "sessions are not cached, because erasures would not reach the cache: %s", error
            )
            self._told = True
        return self._follows


class ErasedSessions:
    """A cache as one of the places outside the database that follow erasures (`Elsewhere`), whichever process made them."""

    leaves = ""

    def __init__(self, cache: SessionCache, clock: Clock) -> None:
        self.name = cache.name
        self._cache = cache
        self._clock = clock

    async def erase_before(self, erased: Mapping[str, int]) -> int:
        """Erase the sessions of what is noted under these keys; a cache has no rows to count."""
        version = erased_version(self._clock.now())
        for scope in await self._cache.kept():
            keys = {scope_key(scope.tenant), scope_key(scope.tenant, None, scope.conversation)}
            if keys & erased.keys() and not await self._cache.erase(scope, version=version):
                raise StoreUnavailableError(f"{self.name} cannot be reached.")
        return 0


def open_sessions(url: str) -> SessionCache:
    """The session cache of this URL, which connects when it is first used; close it after use."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise SettingsError(f"No session cache is known for this URL: use one of {_KNOWN}.")
    from pagefile.stores.redis import RedisSessions  # noqa: PLC0415 - the extra redis, which others do not have

    return RedisSessions(url)
