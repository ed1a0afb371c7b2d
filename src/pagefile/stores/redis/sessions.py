"""The session cache of `redis://…`: a failing server never gets in the way.

The value is plain JSON under a key of its own, so that any program can read it with `GET`. A second key holds a label
with the version, a digest and a seal: a value without a matching label (written or forged by another program, of another
database, half evicted, damaged, or an answer that was meant for another key) is not ours, and is a miss.
"""

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from importlib.resources import files
from secrets import token_hex
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

import anyio

from pagefile.errors import MissingExtraError, SettingsError, StoreUnavailableError
from pagefile.ports import CachedSession, SessionCache
from pagefile.records import DEFAULT_TENANT, JsonObject, Scope
from pagefile.stores import rules
from pagefile.stores.breaker import Breaker
from pagefile.stores.encoding import to_json
from pagefile.stores.session_cache import CACHE_NAME, SESSION_TTL_S, checked_version

try:
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError, ResponseError
except ImportError as error:
    raise MissingExtraError.of("redis", "A session cache in Redis") from error

logger = logging.getLogger("pagefile")

T = TypeVar("T")
_SCRIPTS = ("put.lua", "invalidate.lua")
#: Keys that one step of a scan looks at.
_AT_ONCE = 1000

#: The key of a session of the default tenant.
KEY = "short_term_memory:session:%s"
_TENANT_KEY = "short_term_memory:tenant:%s:session:%s"
# In a Redis Cluster the part in braces decides where a key lives: the label lives with its value.
_LABEL_KEY = "short_term_memory:version:{%s}"

#: The prefix of the keys that a listing scans.
ANY_KEY = "short_term_memory:*"
_KEYS = re.compile(r"short_term_memory:(?:tenant:([^:]*):)?session:(.*)", re.DOTALL)

#: Replaces the digest in the label of a value that was erased.
ERASED = "erased"

#: What labels say that have no value: it was erased, or is not valid any more.
_TOLD = re.compile(rb"(?:\d+ erased|invalid)\b")
_LABEL = re.compile(rb"(\d{1,16}) [0-9a-f]{40} ([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class RedisOptions:
    #: How long a value is kept after it was put.
    ttl_s: float = SESSION_TTL_S
    #: The most connections; further calls wait for one.
    connections: int = 8
    #: The longest a call may take once it has a connection, connecting included.
    timeout_s: float = 0.2

    def __post_init__(self) -> None:
        if self.ttl_s < 0.001 or self.timeout_s <= 0 or self.connections < 1:
            raise SettingsError("ttl_s and timeout_s must be above 0, and connections at least 1.")


class RedisSessions(SessionCache):
    """Session values in Redis or Valkey, as plain JSON for any program to read.

    A failure is a miss. One that takes time (the server is down, slow or loading) opens a circuit breaker: the first call
    costs one short timeout, those that follow cost nothing until one of them is let through to try again. A server that
    answers but refuses (full, read-only, no permission) costs a round trip. Each outage is logged once.

    Deleting a key does not reset the conversation: it cannot be told from an expiry, and an expiry must
    change nothing. To reset it, write a reset marker to the log.
    """

    def __init__(
        self,
        url: str,
        *,
        options: RedisOptions | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connects on first use. The clock is only for the breaker: values expire by the server's clock."""
        self._options = options or RedisOptions()
        self._breaker = Breaker(monotonic)
        # The pool would make waiting calls try a dead server one after another; behind this they ask the breaker first.
        self._slots = anyio.Semaphore(self._options.connections)
        pool = _pool(url, self._options)
        place: dict[str, Any] = pool.connection_kwargs
        host = f"{place.get('host', 'localhost')}:{place.get('port', 6379)}"
        self._address = str(place.get("path", host))
        self._redis = Redis.from_pool(pool)
        self._put, self._invalidate = (self._redis.register_script(_script(name)) for name in _SCRIPTS)
        self._refused: set[str] = set()
        self._closed = False

    async def get(self, scope: Scope) -> CachedSession | None:
        key, label = keys_of(scope)
        answer = await self._ask("get", lambda: self._redis.mget(key, label), None)
        found = read(key, answer, self.secret)
        if found is None and answer and all(answer) and not _is_told(answer[-1]):
            # Its version may be a lie that keeps others from being put.
            await self.drop(scope)
        self.misses += found is None
        self.hits += found is not None
        return found

    async def permit(self, scope: Scope) -> str | None:
        _, label = keys_of(scope)
        # MGET, unlike GET, also answers for a key of another type.
        match await self._ask("get", lambda: self._redis.mget([label]), None):
            case [bytes() as found]:
                return found.decode("latin-1")
            case [None]:
                return ""
            case _:
                return None

    async def put(self, scope: Scope, value: JsonObject, *, version: int, permit: str | None = None) -> bool:
        keys, life_ms = keys_of(scope), round(self._options.ttl_s * 1000)
        text = to_json(value)
        seal = sealed(self.secret, keys[0], checked_version(version), text.encode())
        given = [text, version, life_ms, seal, *([] if permit is None else [permit.encode("latin-1")])]
        return await self._ask("put", lambda: self._put(keys, given), 0) == 1

    async def drop(self, scope: Scope) -> None:
        key, _ = keys_of(scope)
        # A label is useless without its value, except the mark of an erasure, which has to stay.
        await self._ask("drop", lambda: self._redis.delete(key), 0)

    async def invalidate(self, scope: Scope) -> bool:
        _, label = keys_of(scope)
        given = [token_hex(8), round(self._options.ttl_s * 1000)]
        return await self._ask("invalidate", lambda: self._invalidate([label], given), None) is not None

    async def erase(self, scope: Scope, *, version: int) -> bool:
        key, label = keys_of(scope)
        mark, life_ms = f"{checked_version(version)} {ERASED}", round(self._options.ttl_s * 1000)

        async def both() -> bool:
            async with self._redis.pipeline(transaction=True) as commands:
                commands.delete(key)
                commands.set(label, mark, px=life_ms)
                return bool(await commands.execute())

        return await self._ask("erase", both, otherwise=False)

    @property
    def answers(self) -> bool:
        return not (self._breaker.failing or self._refused)

    @property
    def name(self) -> str:
        return f"{CACHE_NAME} at {self._address}"

    async def kept(self) -> list[Scope]:
        keys, cursor = set[bytes](), -1
        while cursor:
            # redis-py does not type the arguments that it passes on.
            scan: Any = partial(self._redis.scan, max(cursor, 0), match=ANY_KEY, count=_AT_ONCE)  # pyright: ignore[reportUnknownMemberType]
            answer = await self._ask("scan", scan, otherwise=None)
            if answer is None:
                raise StoreUnavailableError(f"The session cache at {self._address} could not be listed.")
            cursor, found = answer
            keys.update(found)
        scopes = (scope_of(key.decode(errors="replace")) for key in keys)
        return [scope for scope in scopes if scope is not None]

    async def close(self) -> None:
        self._closed = True
        with suppress(RedisError, OSError):
            await self._redis.aclose()

    async def _ask(self, verb: str, command: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """The server's answer; `otherwise` when there is none."""
        if self._closed or self._breaker.resting:
            return otherwise
        async with self._slots:
            ticket = self._breaker.enter()
            if self._closed or ticket is None:
                return otherwise
            try:
                async with asyncio.timeout(self._options.timeout_s):
                    answer = await command()
            except ResponseError as error:
                self._reached(ticket)
                self._failed(f"refuses to {verb}", error, first=verb not in self._refused)
                self._refused.add(verb)
                return otherwise
            except (RedisError, OSError) as error:
                self._failed("cannot be used", error, first=self._breaker.failed(ticket))
                return otherwise
        self._reached(ticket)
        self._refused.discard(verb)
        return answer

    def _reached(self, ticket: int) -> None:
        if self._breaker.succeeded(ticket):
            logger.info("The session cache at %s answers again.", self._address)

    def _failed(self, how: str, error: Exception, *, first: bool) -> None:
        self.errors += 1
        self.failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if first:
            told = f"The session cache at {self._address} {how} ({self.failure}): sessions come from the database for now."
            logger.warning("%s", told)


def _pool(url: str, options: RedisOptions) -> BlockingConnectionPool:
    """The pool of a URL; whatever is wrong with the URL, its password stays out of the message."""
    scheme, _, rest = url.partition("://")
    user_part = rest.rpartition("@")[0]
    if scheme != "unix" and set(user_part) & set("/?#"):
        raise SettingsError(
            "The Redis URL has a password with '/', '?' or '#': write them as %2F, %3F and %23."
        )
    given: dict[str, Any] = {
        "max_connections": options.connections,
        **dict.fromkeys(("timeout", "socket_timeout", "socket_connect_timeout"), options.timeout_s),
        "retry": Retry(NoBackoff(), 0),
        # The older protocol needs no handshake, and every server speaks it.
        "protocol": 2,
    }
    try:
        # redis-py does not type the arguments that it passes on.
        pool = BlockingConnectionPool.from_url(url, **given)  # pyright: ignore[reportUnknownMemberType]
        pool.make_connection()
    except (TypeError, ValueError, RedisError):
        # The driver's message quotes parts of the URL.
        raise SettingsError(
            "The Redis URL cannot be read: write redis://[user:password@]host:port/0, or unix:///path/to/socket, "
            "with special characters percent-encoded and only options that redis-py knows."
        ) from None
    return pool


def keys_of(scope: Scope) -> tuple[str, str]:
    """The keys of a conversation's value and of its label.

    A conversation of the default tenant has the plain key, whatever its id is; those of other tenants have another prefix,
    and a tenant's colons are escaped, so no two conversations share a key.
    """
    conversation = rules.conversation_of(scope)
    if scope.tenant == DEFAULT_TENANT:
        key = KEY % conversation
    else:
        key = _TENANT_KEY % (quote(scope.tenant, safe=""), conversation)
    return key, _LABEL_KEY % key


def scope_of(key: str) -> Scope | None:
    """The tenant and conversation of a key; None when it is not a session's."""
    found = _KEYS.fullmatch(key)
    if found is None:
        return None
    return Scope(DEFAULT_TENANT if found[1] is None else unquote(found[1]), None, found[2])


def _script(name: str) -> str:
    return files("pagefile.stores.redis").joinpath(name).read_text(encoding="utf-8")


def _is_told(label: object) -> bool:
    """Whether a label says itself that nothing is to be believed."""
    return isinstance(label, bytes) and _TOLD.match(label) is not None


def sealed(secret: bytes, key: str, version: int, value: bytes) -> str:
    """What only a holder of the secret can write beside this value."""
    about = f"{version} {key}\n".encode()
    return hashlib.blake2b(about + value, key=secret, digest_size=20).hexdigest()


def read(key: str, answer: object, secret: bytes) -> CachedSession | None:
    """The session in the values of these two keys, or None when the two do not belong together."""
    match answer:
        case [bytes() as value, bytes() as label]:
            found = _LABEL.fullmatch(label)
        case _:
            return None
    if found is None or not compare_digest(found[2].decode(), sealed(secret, key, int(found[1]), value)):
        return None
    try:
        session: Any = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return CachedSession(cast("JsonObject", session), int(found[1])) if isinstance(session, dict) else None
