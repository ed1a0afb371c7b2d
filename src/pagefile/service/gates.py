"""What every request passes before and after a route: host, size, headers, the log line, the last handler.

Plain ASGI, because a framework middleware that wraps bodies would copy every response.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import unquote_to_bytes

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.inspector import places
from pagefile.service.binding import ANY, host_name
from pagefile.service.origins import Origins
from pagefile.service.problems import answered, internal, told
from pagefile.wire.problem import Problem

logger = logging.getLogger("pagefile.service")

#: On every answer; a page brings its own policy for contents.
SECURITY_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

#: As they go over the wire.
_SECURITY_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

#: The one route whose body is kept on disk while it comes in, and may be larger.
UPLOAD = "/v1/import"

_ESCAPED = re.compile(rb"%[89a-fA-F]")
_MISDIRECTED = "This service answers to the names of its own machine only: an operator adds others with the setting service.hosts."
#: How long a body that is too large is read on, in seconds.
_DRAIN_S = 5.0


class LastHandler:
    """Nothing gets out of the service but an answer, with its headers and its line in the log.

    The line names the route, not the path or the query string: those can hold ids and whatever a stranger typed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 0, perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", [])
                names = {name.lower() for name, _ in own}
                message["headers"] = [
                    *own,
                    *(header for header in _SECURITY_HEADERS if header[0] not in names),
                ]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            answer = internal(error)
            if status:
                # Half an answer is out: only cutting the connection tells the client.
                raise
            await answer(scope, receive, sent)
        finally:
            if logger.isEnabledFor(logging.INFO):
                _log(scope, status, (perf_counter() - began) * 1000)


def _log(scope: Scope, status: int, taken_ms: float) -> None:
    route = getattr(scope.get("route"), "path", "-")
    fields = {"method": scope["method"], "route": route, "status": status, "ms": round(taken_ms, 1)}
    logger.info("%s %s %d %.1f ms", scope["method"], route, status, taken_ms, extra=fields)


class Gate:
    """Turns away what no route should see: another host's name, another site's page, a body too large, a query that is no text."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: frozenset[str],
        origins: frozenset[str],
        max_body_bytes: int,
        max_import_bytes: int,
    ) -> None:
        self._app = app
        self._names = names
        self._origins = Origins(origins)
        self._sizes = _Size("service.max_body_bytes", max_body_bytes)
        self._uploads = _Size("service.max_import_bytes", max_import_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        size = self._uploads if scope["path"] == UPLOAD else self._sizes
        refusal = self._refused(scope, headers)
        if refusal is not None:
            await answered(refusal)(scope, receive, send)
            return
        if _announced(headers) > size.most:
            await _drain(receive, size)
            close = {"Connection": "close"}
            await answered(told("body-too-large", size.exceeded()), close)(scope, receive, send)
            return
        await self._app(scope, _counted(receive, size), send)

    def _refused(self, scope: Scope, headers: Headers) -> Problem | None:
        if not self._knows(headers.get("host", "")):
            return told("misdirected", _MISDIRECTED)
        if not _is_text(scope["query_string"]):
            return told("invalid-query")
        return self._origins.refusal(
            scope["method"], scope["scheme"], headers, form=places.is_inspector(scope["path"])
        )

    def _knows(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or (ANY in self._names and name != "")


@dataclass(frozen=True, slots=True)
class _Size:
    """How large a body may be, and which setting says so."""

    setting: str
    most: int

    def exceeded(self) -> str:
        return f"The body has more than {self.most:,} bytes: split it, or raise the setting {self.setting}."


def _counted(receive: Receive, size: _Size) -> Receive:
    total = 0

    async def received() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > size.most:
            if message.get("more_body"):
                await _drain(receive, size)
            raise HTTPException(413, size.exceeded(), {"Connection": "close"})
        return message

    return received


async def _drain(receive: Receive, size: _Size) -> None:
    """Read on for a while without keeping anything: a client that is cut off while sending never sees the answer."""
    drained = 0
    with anyio.move_on_after(_DRAIN_S):
        while drained <= 2 * size.most:
            message = await receive()
            drained += len(message.get("body", b""))
            if not message.get("more_body"):
                return


def _announced(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isdecimal() else 0


def _is_text(query: bytes) -> bool:
    if not query.isascii():
        return False
    if not _ESCAPED.search(query):
        return True
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        return False
    return True
