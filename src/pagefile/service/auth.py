"""Authentication and authorization.

A key is bound to a tenant and optionally to one of its users. `AuthMiddleware` authenticates the caller before any body is read.
`guarded` authorizes the request in the one place that every API route passes through: a missing tenant or user is filled in from
the key, another's is refused. Where the schema requires a user, `KeyedRoute` fills it in before validation. Without a key, and
where none is required, everything is open, as suits a single-user machine.
"""

import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from inspect import iscoroutinefunction
from math import ceil
from secrets import compare_digest
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from pagefile import records
from pagefile.engine import Memory
from pagefile.errors import (
    AccessError,
    ClosedError,
    PagefileError,
    StoreUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from pagefile.inspector import urls
from pagefile.service.exposure import requires_keys
from pagefile.service.problems import refused
from pagefile.service.vendor_paths import FACES, is_vendors, may_have_foreign_keys
from pagefile.settings import ServiceSettings
from pagefile.stores.key_secrets import is_key, presented
from pagefile.text.json_size import MAX_VALUES, THREAD_FROM_BYTES, has_many_values
from pagefile.tiers.base import off_loop
from pagefile.tiers.fair_pool import working_for

if TYPE_CHECKING:
    from pagefile.service.known_keys import KnownKeys

logger = logging.getLogger("pagefile.service")

#: How stale a key's last-used time may be; saves a write per request.
LAST_USED_EVERY = timedelta(hours=1)
#: Holds our key where a provider's occupies the usual headers.
OWN_HEADER = "x-pagefile-key"
#: The inspector's sign-in pages and their assets.
SIGNING_IN = frozenset({urls.LOGIN, urls.LOGOUT, urls.STYLE, urls.SCRIPT, urls.ICON, urls.FAVICON})
#: Its numbers are wanted most when the database is down.
METRICS = "/metrics"
#: Paths that need no key: API documentation and health checks. None of them exposes any memory.
PUBLIC = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz"}) | SIGNING_IN
#: Public pages that show more to a caller with a key.
TELLS_MORE = frozenset({"/", "/healthz"})
#: Routes that name no tenant, and why that is safe: their responses expose no memory.
FOR_EVERYBODY: Mapping[str, str] = {
    "/v1/{vendor:path}": "the gateway takes the tenant and the user from the key itself",
    "/v1/traces": "spans are recorded for the tenant and the user of the key",
    "/mcp": "the MCP server takes the tenant and the user from the key itself, and narrows each call to them",
    **dict.fromkeys(
        [path for face in FACES for path in (face, f"{face}/{{rest:path}}")],
        "the faces of other vendors take the tenant and the user from the key themselves",
    ),
    "/v1/tools": "the tools to offer are the same for everyone",
    "/v1/settle": "it only waits, and says whether it waited long enough",
    METRICS: "totals of the whole service, without names; where keys are required, it needs one",
}
#: Routes where the user is never filled in: an erasure must name its target explicitly.
SAID_ALOUD = frozenset({"/v1/forget"})

NOT_YOURS = "This key may not use this conversation: use an id of your own."

_STATE = "pagefile.principal"
_SUBJECT = "pagefile.subject"
_ACTION = "pagefile.action"
_GUARDED = "__pagefile_guarded__"

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a key's holder, bound to a tenant and perhaps a user; or a local caller without a key, bound to neither."""

    key_id: str | None = None
    tenant: str | None = None
    user: str | None = None
    #: False for a caller without a key on a public page of a service that requires keys.
    is_known: bool = True


class RateLimit:
    """Allows each caller a number of requests per minute (0: any), in a burst or evenly spread: one token bucket per key.

    Each worker counts separately, so N workers together allow N times as many requests.
    """

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        self._most = per_minute
        self._now = now
        #: By caller: the tokens left, and when they were counted.
        self._left: dict[str, tuple[float, float]] = {}

    def wait_s(self, caller: str) -> int:
        """Take a token and return 0, or return the whole seconds until the next request is allowed."""
        if not self._most:
            return 0
        now = self._now()
        left, then = self._left.get(caller, (float(self._most), now))
        left = min(float(self._most), left + (now - then) * self._most / 60)
        allowed = left >= 1
        self._left[caller] = left - allowed, now
        return 0 if allowed else max(1, ceil((1 - left) * 60 / self._most))


class AuthMiddleware:
    """Authentication middleware. A key that is sent is always checked; where keys are required, a request without one is refused."""

    def __init__(self, app: ASGIApp, *, service: ServiceSettings) -> None:
        self._app = app
        self._require = requires_keys(service)
        self._limit = RateLimit(service.requests_per_minute)
        self._metrics_key = service.metrics_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            scope[_STATE] = principal = await self._admitted(scope)
        except PagefileError as error:
            await refused(error, shown=(StoreUnavailableError,))(scope, receive, send)
        else:
            # Some routes take the tenant from the key alone.
            working_for.set(principal.tenant or records.DEFAULT_TENANT)
            await self._app(scope, receive, send)

    def _opens_metrics(self, shown: str) -> bool:
        return bool(self._metrics_key) and compare_digest(shown.encode(), self._metrics_key.encode())

    async def _admitted(self, scope: Scope) -> Principal:
        shown, public = _presented_key(Headers(scope=scope), scope["path"]), is_public(scope["path"])
        if public and (shown is None or scope["path"] not in TELLS_MORE):
            return Principal(is_known=not self._require)
        if shown is None and self._require:
            raise UnauthorizedError(
                "This service requires a key: send `Authorization: Bearer pf_…`, `X-API-Key: pf_…` or `X-Pagefile-Key: pf_…`; "
                "`pagefile keys add` makes one."
            )
        if shown is not None and scope["path"] == METRICS and self._opens_metrics(shown):
            return Principal()
        principal = Principal() if shown is None else await _holder(scope["app"], shown, scope["path"])
        wait = 0 if public else self._limit.wait_s(principal.key_id or "")
        if wait:
            raise TooManyRequestsError(f"Too many requests: try again in {wait} s.", retry_after_s=wait)
        return principal


def is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(("/problems/", "/docs/"))


def principal_of(request: Request) -> Principal:
    """The authenticated caller. Raises `KeyError` without the `AuthMiddleware` middleware, so a misconfigured app fails closed."""
    return cast("Principal", request.scope[_STATE])


def caller_of(scope: Scope) -> Principal:
    """The same, of a plain ASGI scope."""
    return cast("Principal", scope[_STATE])


def key_of(scope: Scope) -> str:
    """The id of the caller's key, which is no secret; `-` for none, or none that is known."""
    return getattr(scope.get(_STATE), "key_id", None) or "-"


def about(scope: Scope, whom: records.Scope) -> None:
    """Say whom a request is about: the audit log names them."""
    scope[_SUBJECT] = whom


def doing(scope: Scope, what: str) -> None:
    """Say what a request does, where its route does not: the audit log names it."""
    scope[_ACTION] = what


def action_of(scope: Scope) -> str:
    return cast("str", scope.get(_ACTION, ""))


def subject_of(scope: Scope) -> records.Scope | None:
    return cast("records.Scope | None", scope.get(_SUBJECT))


def _presented_key(headers: Headers, path: str) -> str | None:
    """The key of a request. Headers that hold anything but a key are ignored: they may be meant for a proxy.

    On paths of a provider, the headers that it uses hold its own keys, unless they have the form of one of ours.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    named = {token.strip()} if scheme.lower() in {"bearer", "token"} else set[str]()
    if "x-api-key" in headers:
        named.add(headers["x-api-key"].strip())
    if may_have_foreign_keys(path):
        named = {key for key in named if is_key(key)}
    if OWN_HEADER in headers:
        # Settings of a coding agent send an empty one where its environment has no key.
        named = {key for key in named if is_key(key)} | ({headers[OWN_HEADER].strip()} - {""})
    if len(named) > 1:
        raise UnauthorizedError("The request contains two different keys: send one.")
    return named.pop() if named else None


async def _holder(app: FastAPI, shown: str, path: str) -> Principal:
    keys, asked, now = open_memory(app).engine.store.keys, presented(shown), datetime.now(UTC)
    known, key, is_new = cast("KnownKeys", app.state.known_keys), None, False
    if asked is not None and (path == METRICS or is_vendors(path)):
        # Metrics are read, and models answer, while the database is down, too.
        key, is_new = await known.find_in_outage(keys, asked.id)
    elif asked is not None:
        key, is_new = await known.find(keys, asked.id), True
    if asked is None or not asked.is_for(key) or key is None or not key.usable_at(now):
        # One message for every case, so that a wrong key reveals nothing about valid ones.
        raise UnauthorizedError(
            "This key is unknown, revoked or expired: `pagefile keys list` shows which are valid."
        )
    stale = key.last_used is None or now - key.last_used >= LAST_USED_EVERY
    if stale and is_new and path != METRICS:
        try:
            await keys.used(key.id, now)
        except PagefileError as error:
            # A read-only database must still serve requests.
            logger.warning("could not note that key %s was used: %s", key.id, error)
    return Principal(key.id, key.scope.tenant, key.scope.user)


def open_memory(app: FastAPI) -> Memory:
    memory = memory_in(app)
    if memory is None:
        raise ClosedError
    return memory


def memory_in(app: FastAPI) -> Memory | None:
    """The memory of a service; None before startup and after shutdown."""
    return app.state.memory


# -- authorization -------------------------------------------------------------------------------------------------------


class GuardedRouter(APIRouter):
    """A router whose routes all check the tenant and user that a request names."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().add_api_route(path, guarded(endpoint), **options)


class KeyedRoute(APIRoute):
    """Fills in the key's user in a request that names none, before validation."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        named = self.path in SAID_ALOUD or not _takes("user_id", self.endpoint)

        async def keyed(request: Request) -> Response:
            bound = principal_of(request).user is not None and not named
            kind = _UsersRequest if bound else _BoundedRequest
            return await answer(kind(request.scope, request.receive))

        return keyed


class _BoundedRequest(Request):
    """A request whose body is read only if that takes little time and memory: nobody else is answered meanwhile."""

    async def json(self) -> Any:
        body = await self.body()
        return await off_loop(partial(_read, body), len(body), THREAD_FROM_BYTES)


def _read(body: bytes) -> Any:
    if has_many_values(body):
        raise HTTPException(
            413,
            f"The body has more than {MAX_VALUES:,} JSON values: split it into several requests, "
            "and send the result of a tool as one string of JSON.",
        )
    return json.loads(body)


class _UsersRequest(_BoundedRequest):
    """A request whose query string and body name the key's user unless they name one themselves."""

    @property
    def query_params(self) -> QueryParams:
        given = super().query_params
        user = cast("str", principal_of(self).user)
        return given if "user_id" in given else QueryParams([*given.multi_items(), ("user_id", user)])

    async def json(self) -> Any:
        said = await super().json()
        if not isinstance(said, dict):
            return said
        named = cast("dict[str, Any]", said)
        return named if named.get("user_id") is not None else {**named, "user_id": principal_of(self).user}


def guarded(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The endpoint, called only with arguments the caller is authorized for. It takes the `request`, which says who that is."""
    if not iscoroutinefunction(endpoint):
        raise TypeError(f"{endpoint.__qualname__} must be an async function to be guarded.")

    @wraps(endpoint)
    async def guard(request: Request, **given: Any) -> Any:
        principal = principal_of(request)
        named = next((one.tenant for one in given.values() if getattr(one, "tenant", None)), None)
        working_for.set(principal.tenant or named or records.DEFAULT_TENANT)
        given = {name: await narrowed(value, principal, request.app) for name, value in given.items()}
        about(request.scope, _named(given.values()))
        return await endpoint(request=request, **given)

    # Whether requests carry a tenant, explicitly or through the key.
    setattr(guard, _GUARDED, _takes("tenant", endpoint))
    return guard


def _named(given: Iterable[Any]) -> records.Scope:
    """The tenant, the user and the conversation that a request names."""
    tenant, user, conversation = (
        next((found for one in given if isinstance(found := getattr(one, field, None), str)), None)
        for field in ("tenant", "user_id", "conversation_id")
    )
    return records.Scope(tenant or records.DEFAULT_TENANT, user, conversation)


def _takes(field: str, endpoint: Callable[..., Any]) -> bool:
    """Whether the endpoint takes a request model with this field."""
    kinds = [kind for kind in get_type_hints(endpoint).values() if isinstance(kind, type)]
    return any(issubclass(kind, BaseModel) and field in kind.model_fields for kind in kinds)


def unguarded(app: FastAPI) -> Iterator[str]:
    """Routes of an app that do not check which tenant a request names; there must be none."""
    for route in iter_route_contexts(app.routes):
        path = route.path or ""
        names = cast("bool | None", getattr(route.endpoint, _GUARDED, None))
        if not (names or is_public(path) or path in FOR_EVERYBODY):
            yield path


async def narrowed(value: R, principal: Principal, app: FastAPI) -> R:
    """The request with the key's tenant and user filled in. Another's is refused, whether or not it exists."""
    if (
        principal.tenant is None
        or not isinstance(value, BaseModel)
        or "tenant" not in type(value).model_fields
    ):
        return value
    mine: dict[str, str] = {"tenant": _own(value, "tenant", principal.tenant)}
    if principal.user is not None:
        if "user_id" not in type(value).model_fields:
            raise AccessError("This needs a key for the whole tenant; this key is for one user.")
        mine["user_id"] = _own(value, "user_id", principal.user)
        own = records.Scope(mine["tenant"], principal.user, getattr(value, "conversation_id", None))
        if await is_anothers(open_memory(app), own):
            raise AccessError(NOT_YOURS)
    return cast("R", value.model_copy(update=mine))


async def is_anothers(memory: Memory, own: records.Scope) -> bool:
    """Whether a user's key may not use a conversation: those of others, and those without a user, need a tenant key."""
    return own.conversation is not None and await memory.engine.store.reader.owner(own) not in {None, own}


def _own(value: BaseModel, name: str, own: str) -> str:
    if getattr(value, name) not in {None, own}:
        raise AccessError(
            f"This key is for another {name.removesuffix('_id')}: leave {name} out, or give its own."
        )
    return own
