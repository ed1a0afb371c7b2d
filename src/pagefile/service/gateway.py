"""The gateway's routes: providers' protocols, carried to the provider that the operator set.

Where a request goes is a setting and never part of it. Keys of providers pass through, or are replaced by the one in the settings;
they are neither stored nor logged.
"""

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import perf_counter
from typing import Any, cast
from urllib.parse import quote

import anyio
import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.errors import AccessError, PagefileError
from pagefile.gateway import ADAPTERS, identity
from pagefile.gateway.carrying import Head, carry
from pagefile.gateway.prices import read_prices
from pagefile.gateway.session import DEADLINE, Call, Gateway
from pagefile.gateway.sse import dumped, request_object
from pagefile.inspector.traffic import Traffic
from pagefile.lru import Lru
from pagefile.records import Scope
from pagefile.service.auth import NOT_YOURS, about, is_anothers, open_memory, principal_of
from pagefile.service.gateway_observer import Observer
from pagefile.service.problems import answered, problem_of, to_problem
from pagefile.service.stopping import CUT_OFF, is_cutting
from pagefile.service.vendor_paths import is_vendors
from pagefile.settings import GatewaySettings, Settings
from pagefile.settings.sources import shown
from pagefile.shapes.skeleton import as_object
from pagefile.stores.key_secrets import is_key
from pagefile.text.json_size import THREAD_FROM_BYTES
from pagefile.tiers.base import off_loop

logger = logging.getLogger("pagefile.service")

#: Hop-by-hop headers, those that a proxy writes itself, and cookies: they are this host's, and the inspector's is a key.
_HOP = frozenset(
    {
        "connection", "content-length", "cookie", "date", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "server", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
#: Characters that are not encoded in a path (RFC 3986), and what is already encoded.
_IN_PATHS = "/%!$&'()*+,;=:@~"
#: Headers that say on whose account a key of OpenAI's is used: they belong to the client's own.
_OF_A_KEY = frozenset({"openai-organization", "openai-project"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LEAVE_NOTHING = frozenset({("POST", "/v1/embeddings"), ("POST", "/v1/messages/count_tokens")})


@dataclass(slots=True)
class Upstreams:
    """The providers, and the memory before them."""

    gateway: Gateway
    client: httpx.AsyncClient
    observer: Observer
    #: One per user: a history that takes long to record must not cost everybody the memory.
    _edges: Lru[Scope, FailOpen] = field(default_factory=lambda: Lru(1_000))

    def edge(self, call: Call) -> FailOpen:
        whose = call.who.scope
        if whose not in self._edges:
            self._edges[whose] = FailOpen(
                self.gateway.memory,
                "gateway",
                timeout_s=self.settings.deadline_s,
                limit=DEADLINE,
                of_many=True,
            )
        return self._edges[whose]

    @property
    def settings(self) -> GatewaySettings:
        return self.gateway.settings

    def target(self, request: Request) -> "Target | None":
        """Where a request goes; None if no provider is set for it."""
        settings, path = self.settings, cast("str", request.scope["path"])
        # As the client wrote it: decoding and encoding again would change which segments it has.
        sent = quote(request.scope["raw_path"], safe=_IN_PATHS)
        base = settings.anthropic_url and settings.anthropic_url.rstrip("/").removesuffix("/v1")
        anthropic = Target(base, sent, "x-api-key", settings.anthropic_api_key, "gateway.anthropic_url")
        openai = Target(
            settings.openai_url,
            sent.removeprefix("/v1"),
            "authorization",
            settings.openai_api_key,
            "gateway.openai_url",
        )
        is_anthropics = "anthropic-version" in request.headers or path.startswith("/v1/messages")
        chosen = anthropic if is_anthropics else openai
        return chosen if chosen.base is not None and _stays_below(path) else None


@dataclass(frozen=True, slots=True)
class Target:
    base: str | None
    path: str
    #: The header that holds its key, and the key if the settings have one.
    header: str
    key: str | None
    #: What its address is called.
    setting: str = ""

    def url(self, query: str) -> str:
        return f"{(self.base or '').rstrip('/')}{self.path}" + (f"?{query}" if query else "")

    def headers(self, given: Headers, *, plain: bool) -> list[tuple[str, str]]:
        """The client's headers without ours; `plain` for an answer that has to be read."""
        named = {word.strip().lower() for word in ",".join(given.getlist("connection")).split(",")}
        dropped = _HOP | identity.OURS | named | ({"accept-encoding"} if plain else set[str]())
        dropped |= _OF_A_KEY if self.key else frozenset[str]()
        kept = [
            (name, value)
            for name, value in given.items()
            if name not in dropped
            and not (name in {"authorization", "x-api-key"} and (self.key or is_key(value)))
        ]
        if self.key:
            kept.append((self.header, f"Bearer {self.key}" if self.header == "authorization" else self.key))
        return [*kept, ("accept-encoding", "identity")] if plain else kept


def _stays_below(path: str) -> bool:
    """Whether no server reads a decoded path as one that leads upwards, or as more than a path."""
    names = {name.partition(";")[0] for name in path.replace("\\", "/").split("/")}
    return ".." not in names and _CONTROL.search(path) is None


@asynccontextmanager
async def upstreams(memory: Memory, settings: Settings) -> AsyncGenerator[Upstreams | None]:
    """The providers of a running service; None if none is set."""
    gateway = settings.gateway
    if gateway.openai_url is None and gateway.anthropic_url is None:
        yield None
        return
    timeout = httpx.Timeout(gateway.timeout_s, connect=10.0)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    # All users share the client: it must not keep what a provider set for one of them.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    async with httpx.AsyncClient(
        timeout=timeout, limits=limits, cookies=cookies, follow_redirects=False, trust_env=False
    ) as client:
        prices = read_prices(gateway.prices)
        observer = Observer(prices, Traffic(prices.currency), memory.engine)
        yield Upstreams(Gateway(memory, gateway), client, observer)


@dataclass(frozen=True, slots=True)
class _Upstream:
    response: httpx.Response
    raw: bool = False

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self.response.headers

    def pieces(self) -> AsyncIterator[bytes]:
        return self.response.aiter_raw() if self.raw else self.response.aiter_bytes()


class Passage:
    """The endpoint of every path that belongs to a provider."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        upstream = cast("Upstreams | None", request.app.state.upstreams)
        target = None if upstream is None else upstream.target(request)
        if upstream is None or target is None:
            open_memory(request.app)
            detail = (
                "This is a provider's route: set gateway.openai_url or gateway.anthropic_url, and start again. "
                "Its path may not have `..` or control characters."
            )
            await answered(to_problem("route-not-found", detail))(scope, receive, send)
            return
        try:
            await _Carried(upstream, target, request).answer(send)
        except PagefileError as error:
            await answered(problem_of(error))(scope, receive, send)


@dataclass(slots=True)
class _Carried:
    upstream: Upstreams
    target: Target
    request: Request
    began: bool = False
    #: Whether the answer is a stream of events.
    events: bool = False
    #: The status of an answer that the client got to its end.
    code: int | None = None

    async def answer(self, send: Send) -> None:
        raw = await self.request.body()
        call = await self._call(raw)
        if self.target.key and principal_of(self.request).tenant is not None:
            await self._refuse_others(call)
        if call is not None and principal_of(self.request).user is not None:
            await self._refuse_anothers(call)
        started = perf_counter()
        try:
            await self._answered(raw, call, send)
        finally:
            if call is not None:
                seconds = perf_counter() - started
                self.upstream.observer.note(call, self.request.scope, seconds, self.code)
                await self.upstream.observer.keep(call, seconds)

    async def _answered(self, raw: bytes, call: Call | None, send: Send) -> None:
        refused: PagefileError | None = None
        async with anyio.create_task_group() as together:
            together.start_soon(self._until_gone, together.cancel_scope)
            try:
                await (self._pass(raw, send) if call is None else self._carry(call, send))
            except httpx.HTTPError as error:
                logger.warning(
                    "a provider %s: %s", "broke off" if self.began else "failed", type(error).__name__
                )
                await (
                    self._broken(call, self._words(error), send) if self.began else self._failed(error, send)
                )
            except anyio.get_cancelled_exc_class():
                if self.began and is_cutting(self.request.scope):
                    await self._broken(call, CUT_OFF, send)
                raise
            except PagefileError as error:
                if self.began:
                    raise
                # Out of the group it would come as one of several.
                refused = error
            together.cancel_scope.cancel()
        if refused is not None:
            raise refused

    async def _call(self, raw: bytes) -> Call | None:
        """What memory has to do with the request; None if it only passes."""
        request = self.request
        adapter = ADAPTERS.get(request.scope["path"].removeprefix("/v1"))
        if adapter is None or request.method != "POST":
            return None
        body = await off_loop(partial(request_object, raw), len(raw), THREAD_FROM_BYTES)
        if body is None:
            return None
        principal = principal_of(request)
        settings = self.upstream.settings
        who = identity.who(
            request.headers, body, tenant=principal.tenant, user=principal.user, default=settings.user_id
        )
        about(request.scope, replace(who.scope, conversation=who.conversation))
        mode = identity.mode(request.headers, settings.mode)
        return Call(self.upstream.gateway, adapter, who, raw, body, mode)

    async def _refuse_others(self, call: Call | None) -> None:
        """One key of the provider's serves all holders of our keys: refuse what reaches anything that another left there."""
        method, path = self.request.method, cast("str", self.request.scope["path"])
        if call is None:
            reads = method == "GET" and f"{path}/".startswith("/v1/models/")
            if not reads and (method, path) not in _LEAVE_NOTHING:
                raise AccessError(
                    "The gateway holds the provider's key: with a key of Pagefile's, only JSON requests for answers, "
                    "embeddings, token counts and the list of models pass."
                )
            return
        known, given = self.upstream.gateway.provider_ids, call.body
        thread = (as_object(given.get("thread")) or {}).get("previous_message_id")
        for value in filter(None, (given.get("conversation"), given.get("previous_response_id"), thread)):
            name = (as_object(value) or {}).get("id", value)
            if not isinstance(name, str) or await known.find(call.who.scope, name) is None:
                raise AccessError("This user has no such response or conversation here: send the history.")

    async def _refuse_anothers(self, call: Call) -> None:
        own, memory = (
            replace(call.who.scope, conversation=call.who.conversation),
            self.upstream.gateway.memory,
        )
        check = partial(is_anothers, memory, own)
        if await self.upstream.edge(call).attempt("looking for a conversation's owner", check, False):
            raise AccessError(NOT_YOURS)

    async def _until_gone(self, scope: anyio.CancelScope) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _carry(self, call: Call, send: Send) -> None:
        head: Head | None = None
        async with aclosing(carry(call, self.upstream.edge(call), self._post)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Head):
                    head = piece
                    self.events = head.events
                    if head.events:
                        await self._start(send, head.status, self._back(head.headers, call.headers()))
                elif head is not None:
                    if not self.began:
                        length = None if call.reply.overrun else len(piece)
                        await self._start(send, head.status, self._back(head.headers, call.headers(), length))
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        if head is not None and not self.began:
            await self._start(send, head.status, self._back(head.headers, call.headers(), 0))
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.code = None if head is None else head.status

    async def _pass(self, raw: bytes, send: Send) -> None:
        """Byte for byte, both ways."""
        async with self._sent(raw, plain=False) as response:
            length = response.headers.get("content-length")
            headers = self._back(
                response.headers, {"x-pagefile-status": "passed"}, None if length is None else int(length)
            )
            encoding = (
                [("content-encoding", response.headers["content-encoding"])]
                if "content-encoding" in response.headers
                else []
            )
            await self._start(send, response.status, [*headers, *encoding])
            async for piece in response.pieces():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _post(self, body: bytes) -> Any:
        return self._sent(body, plain=True)

    @asynccontextmanager
    async def _sent(self, body: bytes, *, plain: bool) -> AsyncGenerator[_Upstream]:
        request = self.request
        headers = self.target.headers(request.headers, plain=plain)
        url = self.target.url(request.scope["query_string"].decode("latin-1"))
        content = body if body or request.method in {"POST", "PUT", "PATCH"} else None
        async with self.upstream.client.stream(
            request.method, url, headers=headers, content=content
        ) as response:
            yield _Upstream(response, raw=not plain)

    def _back(
        self, given: Mapping[str, str], ours: Mapping[str, str], length: int | None = None
    ) -> list[tuple[str, str]]:
        pairs = given.multi_items() if isinstance(given, httpx.Headers) else given.items()
        dropped = _HOP | {"content-encoding"}
        kept = [(name, value) for name, value in pairs if name.lower() not in dropped]
        return [*kept, *ours.items(), *([] if length is None else [("content-length", str(length))])]

    async def _start(self, send: Send, status: int, headers: list[tuple[str, str]]) -> None:
        self.began = True
        raw = [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers
        ]
        await send({"type": "http.response.start", "status": status, "headers": raw})

    def _words(self, error: httpx.HTTPError) -> str:
        """What went wrong, for people who know the settings and not httpx."""
        match error:
            case httpx.ConnectTimeout() | httpx.ConnectError() | httpx.UnsupportedProtocol():
                return f"The provider cannot be reached ({self.target.setting} is {shown(self.target.base)})."
            case httpx.TimeoutException():
                return f"The provider sent nothing for {self.upstream.settings.timeout_s:g} s (gateway.timeout_s)."
            case httpx.RemoteProtocolError() | httpx.ReadError() if self.began:
                return "The provider broke off its answer."
            case httpx.RemoteProtocolError() | httpx.ReadError():
                return "The provider closed the connection without an answer."
            case _:
                return f"The request to the provider failed: {type(error).__name__}."

    async def _broken(self, call: Call | None, why: str, send: Send) -> None:
        """The end of a stream that is not complete: an event says so. The connection is closed as well, but a proxy may hide that."""
        if call is not None and self.events:
            event = call.reply.error_event({"type": "api_error", "message": why, "code": "upstream_broken"})
            await send({"type": "http.response.body", "body": event, "more_body": True})

    async def _failed(self, error: httpx.HTTPError, send: Send) -> None:
        """In the words that both providers' clients understand."""
        timeout = isinstance(error, httpx.TimeoutException)
        told = {"type": "api_error", "message": self._words(error), "code": "upstream_unreachable"}
        body = dumped({"type": "error", "error": told})
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        self.code = 504 if timeout else 502
        await self._start(send, self.code, headers)
        await send({"type": "http.response.body", "body": body, "more_body": False})


class _VendorRoute(Route):
    """Matches every path of a provider's, whatever the method."""

    def matches(self, scope: AsgiScope) -> Any:
        match, child = super().matches(scope)
        # Logs and spans name the route and never the path.
        mine = is_vendors(scope.get("path", ""))
        return (match, {**child, "route": self}) if mine else (type(match).NONE, {})


routes = [_VendorRoute("/v1/{vendor:path}", Passage(), name="gateway", include_in_schema=False)]
