"""Middleware around every route: host and size checks, headers, access log, last-resort error handler.

Plain ASGI, because the framework's middleware wraps bodies and would copy every response.

No other site's web page can make a browser change anything here (CSRF). For any page, browsers send forms, and `fetch` with a form's
content type, without a preflight. They do state the origin of such a request, which no page can forge, and they send a preflight
before any other content type. Both origin and content type are checked on every path, because a service without keys trusts every
caller.
"""

import logging
import re
from time import monotonic, perf_counter
from typing import NamedTuple
from urllib.parse import unquote_to_bytes
from uuid import uuid4

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.inspector import urls
from pagefile.service.auth import key_of
from pagefile.service.exposure import ANY, host_name, is_loopback, named_origins
from pagefile.service.problems import answered, to_problem, unforeseen
from pagefile.service.stopping import CUT_OFF, is_cutting
from pagefile.settings import ServiceSettings
from pagefile.wire.responses import Problem

logger = logging.getLogger("pagefile.service")

#: On every response; pages set their own Content-Security-Policy.
_SECURITY_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)

#: Where MCP is served. Its specification wants the origin checked of every request, also of those that only read.
MCP = "/mcp"
#: How long a client may take for a body, and how many bytes a second buy more time.
_BODY_S = 30.0
_LEAST_BYTES_PER_S = 10_000

#: The one route whose body is spooled to disk and may be larger.
UPLOAD = "/v1/import"

#: Where OpenTelemetry's exporters send spans, and how: browsers send a preflight before that, too.
SPANS, PROTOBUF = "/v1/traces", "application/x-protobuf"

_MISDIRECTED = "This service only accepts the host names of its own machine: an operator adds others with the setting service.hosts."
#: Methods that change nothing.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: JSON or JSON lines: browsers send a preflight before sending these to another site.
_JSON = re.compile(r"application/(?:json|x-ndjson|x-jsonlines|jsonl|[\w.-]+\+json)", re.ASCII)


class ErrorMiddleware:
    """Turns every failure into a response with our headers and an access log line.

    The line names the route, not the path or the query string: those can hold ids and arbitrary user input.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, began, request = 0, perf_counter(), uuid4().hex

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", [])
                names = {name.lower() for name, _ in own}
                ours = (*_SECURITY_HEADERS, (b"x-pagefile-request", request.encode()))
                message["headers"] = [*own, *(one for one in ours if one[0] not in names)]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            answer = answered(unforeseen(error))
            if status:
                # The response has started: closing the connection is the only way to report the failure.
                raise
            await answer(scope, receive, sent)
        except anyio.get_cancelled_exc_class():
            if not is_cutting(scope):
                raise
            # One that has begun is not completed, which closes its connection.
            if not status:
                await answered(to_problem("closed", CUT_OFF))(scope, receive, sent)
        finally:
            _noted(scope, request, status, perf_counter() - began)


def _noted(scope: Scope, request: str, status: int, seconds: float) -> None:
    """Count a request and log it: who sent it is an address and the id of a key, which says nothing by itself."""
    app, method, route = scope["app"], _method(scope), _route(scope)
    app.state.meter.count("pagefile_http_requests_total", method=method, route=route, code=str(status))
    app.state.meter.observe("pagefile_http_seconds", seconds, route=route)
    if not logger.isEnabledFor(logging.INFO):
        return
    key, client = key_of(scope), (scope.get("client") or ("-",))[0]
    fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 1)}
    fields |= {"request": request, "key": key, "client": client}
    told = method, route, status, seconds * 1000, request, key, client
    logger.info("%s %s %d %.1f ms %s key=%s from=%s", *told, extra=fields)


def _method(scope: Scope) -> str:
    """Clients may make up methods: a metric has one word for those."""
    method = scope["method"]
    return method if method in SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"} else "other"


def _route(scope: Scope) -> str:
    """The route that answered, or, of a request that was refused before, the one that would have; `-` for none."""
    route = scope.get("route")
    if route is None:
        found = (one for one in scope["app"].routes if one.matches(scope)[0] is Match.FULL)
        route = next(found, None)
    return getattr(route, "path", "-")


class RequestGuard:
    """Rejects what no route should see: a foreign Host, a cross-site request, an oversized body, a query string that is not valid text."""

    def __init__(self, app: ASGIApp, *, names: frozenset[str], service: ServiceSettings) -> None:
        self._app = app
        self._names = names
        self._origins = named_origins(service)
        self._sizes = _Size("service.max_body_bytes", service.max_body_bytes)
        self._uploads = _Size("service.max_import_bytes", service.max_import_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        size = self._uploads if scope["path"] == UPLOAD else self._sizes
        length = headers.get("content-length", "")
        refusal = self._refused(scope, headers)
        if refusal is not None:
            await answered(refusal)(scope, receive, send)
        elif length.isdecimal() and int(length[:20]) > size.most:
            await _drain(receive, size)
            too_large = to_problem("body-too-large", size.exceeded())
            await answered(too_large, {"Connection": "close"})(scope, receive, send)
        else:
            await self._app(scope, _counted(receive, size), send)

    def _refused(self, scope: Scope, headers: Headers) -> Problem | None:
        name = host_name(headers.get("host", ""))
        if name not in self._names and not (name and ANY in self._names):
            return to_problem("misdirected", _MISDIRECTED)
        if not _is_text(scope["query_string"]):
            return to_problem("invalid-query")
        if scope["method"] in SAFE_METHODS and scope["path"] != MCP:
            return None
        # Forms of our own pages also carry a token.
        form = urls.is_inspector(scope["path"])
        if not self._is_known_origin(scope["scheme"], headers, own_only=form):
            return to_problem("cross-site")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        known = _JSON.fullmatch(kind) or (form and kind == "application/x-www-form-urlencoded")
        # Browsers send a preflight for every other unsafe method.
        if scope["path"] == SPANS and kind == PROTOBUF:
            return None
        return to_problem("media-type") if scope["method"] in {"POST", "PUT"} and not known else None

    def _is_known_origin(self, scheme: str, headers: Headers, *, own_only: bool) -> bool:
        match [origin.lower() for origin in headers.getlist("origin")]:
            case []:
                # Programs send neither header; a browser that omits one sends the other.
                return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
            case [origin]:
                host = headers.get("host", "").lower()
                # A TLS-terminating proxy may not announce itself; on a loopback host none is assumed.
                behind_tls = origin == f"https://{host}" and not is_loopback(host_name(host))
                own = origin == f"{scheme}://{host}" or behind_tls
                return own or (not own_only and origin in self._origins)
            case _:
                # No browser sends two Origin headers, and other programs may disagree on which one counts.
                return False


class _Size(NamedTuple):
    setting: str
    most: int

    def exceeded(self) -> str:
        return f"The body has more than {self.most:,} bytes: split it, or raise the setting {self.setting}."


def _counted(receive: Receive, size: _Size) -> Receive:
    total, more, began = 0, True, monotonic()

    async def received() -> Message:
        nonlocal total, more
        # Afterwards there is nothing to wait for but the end of the connection.
        left_s = began + _BODY_S + total / _LEAST_BYTES_PER_S - monotonic() if more else None
        try:
            with anyio.fail_after(left_s):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, headers={"Connection": "close"}) from None
        total, more = total + len(message.get("body", b"")), message.get("more_body", False)
        if total > size.most:
            if message.get("more_body"):
                await _drain(receive, size)
            raise HTTPException(413, size.exceeded(), {"Connection": "close"})
        return message

    return received


async def _drain(receive: Receive, size: _Size) -> None:
    """Read and discard the rest for a few seconds: a client cut off while sending never sees the response."""
    drained = 0
    with anyio.move_on_after(5):
        while drained <= 2 * size.most:
            message = await receive()
            drained += len(message.get("body", b""))
            if not message.get("more_body"):
                return


def _is_text(query: bytes) -> bool:
    try:
        unquote_to_bytes(query.decode("ascii")).decode()
    except UnicodeDecodeError:
        return False
    return True
