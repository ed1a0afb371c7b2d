"""What a session cache needs to know of its database: versions and erasures; and the function that opens one by its URL."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pagefile.errors import InvalidArgumentError, SettingsError, StoreUnavailableError
from pagefile.ports import Clock, SessionCache
from pagefile.records import ConversationInfo
from pagefile.stores.erasure import scope_key

#: Half an hour.
SESSION_TTL_S = 1800
#: The largest whole number that Lua keeps exactly.
MAX_VERSION = 2**53 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SCHEMES = frozenset({"redis", "rediss", "unix"})
#: How the names of session caches begin.
CACHE_NAME = "the session cache"
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
