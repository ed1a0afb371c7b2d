"""The gateway's routes: providers' protocols, carried to the provider that the operator set.

Where a request goes is a setting and never part of it. Keys of providers pass through, or are replaced by the one in the settings;
they are neither stored nor logged.
"""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import perf_counter
from typing import Any, cast

import anyio
import httpx
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.errors import AccessError, PagefileError
from pagefile.gateway import ADAPTERS, identity
from pagefile.gateway.adapter import Adapter
from pagefile.gateway.carrying import Head, carry
from pagefile.gateway.prices import read_prices
from pagefile.gateway.session import DEADLINE, Call, Gateway
from pagefile.gateway.sse import dumped, request_object
from pagefile.inspector.traffic import Traffic
from pagefile.lru import Lru
from pagefile.records import Scope
from pagefile.service.auth import NOT_YOURS, about, is_anothers, open_memory, principal_of
from pagefile.service.gateway_observer import Observer
from pagefile.service.gateway_target import HOP, Target, nowhere, target_of
from pagefile.service.problems import answered, problem_of, to_problem
from pagefile.service.stopping import CUT_OFF, is_cutting
from pagefile.service.vendor_paths import is_vendors
from pagefile.settings import GatewaySettings, Settings
from pagefile.settings.sources import shown
from pagefile.shapes.skeleton import as_object
from pagefile.text.json_size import THREAD_FROM_BYTES
from pagefile.tiers.base import off_loop
from pagefile.wire.responses import Problem

logger = logging.getLogger("pagefile.service")

#: Of a body that cannot be read, so much is read again to say where.
_READ_AGAIN_BYTES = 1_000_000
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
        target = None if upstream is None else target_of(upstream.settings, request)
        if upstream is None or target is None:
            open_memory(request.app)
            detail = nowhere(None if upstream is None else upstream.settings, request)
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
            if call is None and self.request.method == "POST" and self._adapter is not None:
                # Only what can be read is known to reach nothing of another's.
                await answered(_unreadable(raw))(self.request.scope, self.request.receive, send)
                return
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
                self._log(error)
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

    @property
    def _adapter(self) -> Adapter | None:
        return ADAPTERS.get(self.request.scope["path"].removeprefix("/v1"))

    async def _call(self, raw: bytes) -> Call | None:
        """What memory has to do with the request; None if it only passes."""
        request = self.request
        adapter = self._adapter
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
        dropped = HOP | {"content-encoding"}
        kept = [(name, value) for name, value in pairs if name.lower() not in dropped]
        return [*kept, *ours.items(), *([] if length is None else [("content-length", str(length))])]

    async def _start(self, send: Send, status: int, headers: list[tuple[str, str]]) -> None:
        self.began = True
        raw = [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers
        ]
        await send({"type": "http.response.start", "status": status, "headers": raw})

    def _log(self, error: httpx.HTTPError) -> None:
        kind = type(error).__name__
        if self.began:
            logger.warning("a provider broke off: %s", kind)
        else:
            where = f"{self.target.setting} is {shown(self.target.base)}"
            logger.warning("a provider failed: %s (%s)", kind, where)

    def _words(self, error: httpx.HTTPError) -> str:
        """What went wrong, for people who know the settings and not httpx. Any caller may read it: an address is none of their business."""
        waited = f"{self.upstream.settings.timeout_s:g} s (gateway.timeout_s)"
        match error:
            case httpx.ConnectTimeout() | httpx.ConnectError() | httpx.UnsupportedProtocol():
                return f"The provider cannot be reached: look at {self.target.setting}."
            case httpx.PoolTimeout():
                return f"No connection to the provider became free in {waited}."
            case httpx.WriteTimeout():
                return f"The provider took nothing for {waited}."
            case httpx.TimeoutException():
                return f"The provider sent nothing for {waited}."
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


def _unreadable(raw: bytes) -> Problem:
    """What to say of a body that is no JSON object; one of megabytes is not read again for that."""
    try:
        json.loads(raw[:_READ_AGAIN_BYTES])
    except json.JSONDecodeError as error:
        if error.pos < _READ_AGAIN_BYTES - 4:
            return to_problem("invalid-json", f"The body is not JSON: it breaks at character {error.pos}.")
    except (ValueError, RecursionError):
        pass
    return to_problem("invalid-json", "The body is not an object in JSON, or has too many values to read.")


class _VendorRoute(Route):
    """Matches every path of a provider's, whatever the method."""

    def matches(self, scope: AsgiScope) -> Any:
        match, child = super().matches(scope)
        # Logs and spans name the route and never the path.
        mine = is_vendors(scope.get("path", ""))
        return (match, {**child, "route": self}) if mine else (type(match).NONE, {})


routes = [_VendorRoute("/v1/{vendor:path}", Passage(), name="gateway", include_in_schema=False)]
